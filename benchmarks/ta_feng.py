"""The real Ta-Feng transactions as statistics: daily sums, zeros filled in, five lags, last half held out."""

from __future__ import annotations

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
    """Return the file where the folder has it; else the demo's, which pip fetches at the first use.

    Raises
    ------
    NotToBeHad
        Neither way.
    """
    if folder is not None and (folder / FILE).exists():
        return Transactions(folder / FILE)
    FOLDER.mkdir(exist_ok=True)
    return fetch(FOLDER)


def read_panel(source: Transactions | None = None) -> SeriesPanel:
    """Return 23,812 series of 120 days, fetched by pip at the first use if no file is given."""
    table = pl.read_csv(
        b"".join((source or transactions()).blocks()),
        columns=list(COLUMNS.values()),
        schema_overrides={COLUMNS["unique_id"]: pl.String, COLUMNS["y"]: pl.Float64},
    ).select(
        unique_id=pl.col(COLUMNS["unique_id"]),
        ds=pl.col(COLUMNS["ds"]).str.to_date("%m/%d/%Y"),
        y=pl.col(COLUMNS["y"]),
    )
    daily = table.group_by("unique_id", "ds").agg(pl.col("y").sum())
    panel, _ = SeriesPanel.from_frame(daily, "D").filled("zero", "dataset")
    return panel


def lagged_panel(source: Transactions | None = None) -> LaggedPanel:
    """Return a row for each product and day that has five days before it."""
    return lag_dataset(read_panel(source), N_LAGS)


def training_and_held_out(lagged: LaggedPanel) -> tuple[SufficientStatistics, SufficientStatistics]:
    """Return the statistics of the first and of the last half in time."""
    fold, _ = split_by_time(lagged, HOLDOUT)
    training, held_out = SufficientStatistics.by_fold(lagged.dataset, fold, 2)
    return training, held_out
