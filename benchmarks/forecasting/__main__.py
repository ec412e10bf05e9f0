"""Hold out the last window of real series, forecast it, and compare with rivals; 1 if a bar is missed."""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial

from benchmarks.forecasting.measure import measure
from benchmarks.forecasting.rivals import NAMES, USUAL
from benchmarks.forecasting.sets import SETS
from benchmarks.one_core import run_with_one_thread_each
from benchmarks.report import Section
from benchmarks.runner import Sections, command_line, run

DATA_HELP = (
    "folder with walmart_store_sales/walmart-recruiting-store-sales-forecasting.zip (Kaggle: Walmart "
    "Recruiting - Store Sales Forecasting), r_demand_sets/expsmooth_carparts.csv and expsmooth_hospital.csv "
    "(the R package expsmooth: carparts, hospital) and ta_feng/ta_feng.csv.zip, which pip fetches if it is "
    "not there; a set without its file is left out"
)


def _section(name: str, chosen: argparse.Namespace) -> Section:
    return measure(name, chosen.data, chosen.rivals, chosen.candidates, chosen.on_all_series)


SECTIONS: Sections = {name: partial(_section, name) for name in SETS}


def _rivals(text: str) -> list[str]:
    names = [name for name in text.split(",") if name]
    if unknown := set(names) - set(NAMES):
        raise argparse.ArgumentTypeError(
            f"there is no rival {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}"
        )
    return names


if __name__ == "__main__":
    options = command_line("forecasting", __doc__, SECTIONS, DATA_HELP)
    options.add_argument(
        "--rivals",
        type=_rivals,
        default=list(USUAL),
        help=f"rivals with commas between them, of {', '.join(NAMES)}; by default all but auto_ets, which "
        "takes long",
    )
    options.add_argument(
        "--candidates", action="store_true", help="score each set of rows that validation compared, too"
    )
    options.add_argument(
        "--on-all-series", action="store_true", help="let auto_ets forecast each series, not 400 of them"
    )
    chosen_options = options.parse_args()
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # threads of trees that wait would count as work
    run_with_one_thread_each()
    sys.exit(run(SECTIONS, chosen_options))
