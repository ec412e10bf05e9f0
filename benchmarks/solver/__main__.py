"""Measure the solver and print tables or JSON; the exit code is 1 if the project's bars are missed.

One core, one thread for each library. The whole takes about a quarter of an hour: most of it is the rivals'.
"""

from __future__ import annotations

import argparse
import sys

from benchmarks.one_core import run_on_one_core
from benchmarks.runner import Sections, command_line, run
from benchmarks.solver import gram_pass, roofline, school, small_problems, ta_feng

RIVAL_CAP = 120.0
DATA_HELP = (
    "folder with school/school.mat (the MALSAR package: London schools), without which that section is left "
    "out, and ta_feng/ta_feng.csv.zip, which pip fetches if it is not there"
)
SECTIONS: Sections = {
    "school": lambda chosen: school.measure(chosen.data, chosen.repeats),
    "ta-feng": lambda chosen: ta_feng.measure(chosen.data, chosen.cap, chosen.repeats),
    "small": lambda chosen: small_problems.measure(chosen.seeds, chosen.repeats, RIVAL_CAP),
    "gram": lambda _: gram_pass.measure(),
    "roofline": lambda chosen: roofline.measure(chosen.data),
}


def options(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = command_line("solver", __doc__, SECTIONS, DATA_HELP)
    parser.add_argument("--cap", type=float, default=60.0, help="seconds of the Ta-Feng reference (60)")
    parser.add_argument("--seeds", type=int, default=2, help="small problems of each kind (2)")
    parser.add_argument("--repeats", type=int, default=3, help="runs of ours; the fastest counts (3)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    chosen_options = options()
    run_on_one_core()
    sys.exit(run(SECTIONS, chosen_options))
