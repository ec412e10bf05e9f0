"""Measure many tasks, many rows and new rows; the exit code is 1 if the project's bars are missed.

Uses all cores that it may. The whole takes some ten minutes on two cores and 8 GB of memory.
"""

from __future__ import annotations

import sys

from benchmarks.runner import Sections, command_line, run
from benchmarks.scale import appended, many_tasks, million, neighbours

DATA_HELP = "folder with ta_feng/ta_feng.csv.zip, which pip fetches if it is not there"
SECTIONS: Sections = {
    "apart": lambda chosen: many_tasks.measure(spreads=["apart"]),
    "overlapping": lambda chosen: many_tasks.measure(spreads=["overlapping"]),
    "million": lambda chosen: million.measure(),
    "neighbours": lambda chosen: neighbours.measure(chosen.data),
    "append": lambda chosen: appended.measure(chosen.data),
}

if __name__ == "__main__":
    sys.exit(run(SECTIONS, command_line("scale", __doc__, SECTIONS, DATA_HELP).parse_args()))
