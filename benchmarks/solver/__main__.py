"""Options in, tables or JSON out; the code is 1 if the project's bars are missed.

One core, one thread for each library. The whole takes about a quarter of an hour: most of it is the rivals'.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from benchmarks.solver import gram_pass, roofline, school, small_problems, ta_feng
from benchmarks.solver.one_core import load, machine, run_on_one_core
from benchmarks.solver.report import Measured, Section, missed, print_json, print_tables

DATA = Path(__file__).parents[3] / "shared" / "data"
RIVAL_CAP = 120.0


def options(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.solver", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--only", help=f"sections with commas between them, of {', '.join(SECTIONS)}")
    parser.add_argument("--no-bar", action="store_true", help="exit with 0 even if a bar is missed")
    parser.add_argument("--cap", type=float, default=60.0, help="seconds of the Ta-Feng reference (60)")
    parser.add_argument("--seeds", type=int, default=2, help="small problems of each kind (2)")
    parser.add_argument("--repeats", type=int, default=3, help="runs of ours; the fastest counts (3)")
    parser.add_argument("--data", type=Path, default=DATA, help="folder with school/ and ta_feng/")
    chosen = parser.parse_args(arguments)
    chosen.only = chosen.only.split(",") if chosen.only else list(SECTIONS)
    if unknown := set(chosen.only) - SECTIONS.keys():
        parser.error(f"there is no section {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}")
    return chosen


SECTIONS: dict[str, Callable[[argparse.Namespace], Section]] = {
    "school": lambda chosen: school.measure(chosen.data, chosen.repeats),
    "ta-feng": lambda chosen: ta_feng.measure(chosen.data, chosen.cap, chosen.repeats),
    "small": lambda chosen: small_problems.measure(chosen.seeds, chosen.repeats, RIVAL_CAP),
    "gram": lambda chosen: gram_pass.measure(*gram_pass.SHAPE),
    "roofline": lambda chosen: roofline.measure(chosen.data),
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
    chosen_options = options()
    run_on_one_core()
    sys.exit(run(chosen_options))
