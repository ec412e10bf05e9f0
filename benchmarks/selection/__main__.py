"""Options in, tables or JSON out; the code is 1 if the project's bars are missed. Two cores."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from benchmarks.selection import models, timing
from benchmarks.solver.one_core import ONE_THREAD, load, machine
from benchmarks.solver.report import Measured, Section, missed, print_json, print_tables

DATA = Path(__file__).parents[3] / "shared" / "data"
SECTIONS: dict[str, Callable[[Path], Section]] = {"timing": timing.measure, "models": models.measure}


def options(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.selection", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--only", help=f"sections with commas between them, of {', '.join(SECTIONS)}")
    parser.add_argument("--no-bar", action="store_true", help="exit with 0 even if a bar is missed")
    parser.add_argument("--data", type=Path, default=DATA, help="folder with ta_feng/, sales_weekly/ …")
    chosen = parser.parse_args(arguments)
    chosen.only = chosen.only.split(",") if chosen.only else list(SECTIONS)
    if unknown := set(chosen.only) - SECTIONS.keys():
        parser.error(f"there is no section {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}")
    return chosen


def run(chosen: argparse.Namespace) -> int:
    """Measure the chosen sections, print them, and return the exit code."""
    about, measured = machine(), []
    for name in chosen.only:
        Console(stderr=True).print(f"measuring {name} ...")
        start, before = time.perf_counter(), load()
        section = SECTIONS[name](chosen.data)
        measured.append(Measured(name, section, time.perf_counter() - start, (before, load())))
    (print_json if chosen.json else print_tables)(about, measured)
    failures = missed(measured)
    for failure in failures:
        Console(stderr=True, highlight=False).print(f"missed: {failure}", markup=False)
    return 1 if failures and not chosen.no_bar else 0


def run_with_one_thread_each() -> None:
    """Start this command anew with one thread for each library, unless it has that: folds share the cores."""
    if not ONE_THREAD.items() <= os.environ.items():
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, **ONE_THREAD})


if __name__ == "__main__":
    chosen_options = options()
    run_with_one_thread_each()
    sys.exit(run(chosen_options))
