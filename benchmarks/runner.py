"""The command line of each package of benchmarks: it measures sections by name, and fails on missed bars."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from rich.console import Console

from benchmarks.one_core import load, machine
from benchmarks.report import Measured, Section, missed, print_json, print_tables, step

DATA = Path(__file__).parents[2] / "shared" / "data"
Sections = Mapping[str, Callable[[argparse.Namespace], Section]]


def command_line(
    package: str, about: str | None, sections: Sections, data: str | None = None
) -> argparse.ArgumentParser:
    """Return the options that every package of benchmarks has; ``data`` says which folders it reads."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{package}", description=about)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--only",
        type=partial(_names, sections),
        default=list(sections),
        help=f"sections with commas between them, of {', '.join(sections)}",
    )
    parser.add_argument("--no-bar", action="store_true", help="exit with 0 even if a bar is missed")
    if data is not None:
        parser.add_argument("--data", type=Path, default=DATA, help=data)
    return parser


def run(sections: Sections, chosen: argparse.Namespace) -> int:
    """Measure the chosen sections, print them, and return the exit code."""
    about, measured = machine(), []
    for name in chosen.only:
        step(f"measuring {name}")
        start, before = time.perf_counter(), load()
        section = sections[name](chosen)
        measured.append(Measured(name, section, time.perf_counter() - start, (before, load())))
    (print_json if chosen.json else print_tables)(about, measured)
    failures = missed(measured)
    for failure in failures:
        Console(stderr=True, highlight=False).print(f"missed: {failure}", markup=False)
    return 1 if failures and not chosen.no_bar else 0


def _names(sections: Sections, text: str) -> list[str]:
    names = text.split(",")
    if unknown := set(names) - sections.keys():
        raise argparse.ArgumentTypeError(
            f"there is no section {', '.join(sorted(unknown))}; there are {', '.join(sections)}"
        )
    return names
