"""Options in, tables or JSON out; the code is 1 if the project's bars are missed.

Uses all cores that it may. The whole takes some ten minutes on two cores and 8 GB of memory.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from benchmarks.scale import appended, many_tasks, million
from benchmarks.solver.one_core import load, machine
from benchmarks.solver.report import Measured, Section, missed, print_json, print_tables

DATA = Path(__file__).parents[3] / "shared" / "data"


def options(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--only", help=f"sections with commas between them, of {', '.join(SECTIONS)}")
    parser.add_argument("--no-bar", action="store_true", help="exit with 0 even if a bar is missed")
    parser.add_argument("--data", type=Path, default=DATA, help="folder with ta_feng/")
    chosen = parser.parse_args(arguments)
    chosen.only = chosen.only.split(",") if chosen.only else list(SECTIONS)
    if unknown := set(chosen.only) - SECTIONS.keys():
        parser.error(f"there is no section {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}")
    return chosen


SECTIONS: dict[str, Callable[[argparse.Namespace], Section]] = {
    "apart": lambda chosen: many_tasks.measure(spreads=["apart"]),
    "overlapping": lambda chosen: many_tasks.measure(spreads=["overlapping"]),
    "million": lambda chosen: million.measure(),
    "append": lambda chosen: appended.measure(chosen.data),
}


def run(chosen: argparse.Namespace) -> int:
    """Measure the chosen sections, print them, and return the exit code."""
    about, measured = machine(), []
    for name in chosen.only:
        Console(stderr=True).print(f"measuring {name} ...")
        start, before = time.perf_counter(), load()
        section = SECTIONS[name](chosen)
        measured.append(Measured(name, section, time.perf_counter() - start, (before, load())))
    (print_json if chosen.json else print_tables)(about, measured)
    failures = missed(measured)
    for failure in failures:
        Console(stderr=True, highlight=False).print(f"missed: {failure}", markup=False)
    return 1 if failures and not chosen.no_bar else 0


if __name__ == "__main__":
    sys.exit(run(options()))
