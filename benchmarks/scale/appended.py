"""Measure what it saves to add Ta-Feng's last week to the statistics that an earlier run kept of the rest.

Both runs begin from files and end with a certified model of the same rows. The cold run reads all
transactions; the other reads the kept statistics, the last days before the new week, and that week.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from benchmarks.report import Bar, Row, Section, step
from benchmarks.stopwatch import Stopwatch
from benchmarks.ta_feng import N_LAGS, daily_sums, day, filled, transactions
from ccmtl_core import (
    FitResult,
    SufficientStatistics,
    append_statistics,
    fit,
    read_statistics,
    statistics_frame,
)
from ccmtl_core.forecasting import SeriesPanel, lag_dataset
from examples.ta_feng import COLUMNS, NotToBeHad, Transactions

STRENGTHS = (3e3, 1e4, 1e5)
TOLERANCE = 1e-4
NEW_DAYS = 7
MAX_SHARE = 0.2


class Files(NamedTuple):
    """What lies on disk before the clock starts: transactions old and new, and what the earlier run kept."""

    old: Path
    new: Path
    recent: Path
    statistics: Path


def measure(folder: Path) -> Section:
    """Compare at each strength, or say why the data could not be had."""
    try:
        with tempfile.TemporaryDirectory() as scratch:
            return compare(transactions(folder), Path(scratch), STRENGTHS)
    except NotToBeHad as reason:
        return Section(skipped=str(reason))


def compare(source: Transactions, scratch: Path, strengths: Sequence[float]) -> Section:
    """Split the transactions in two files, fit the older, and time both ways to the model of all."""
    names = "old.csv", "new.csv", "recent.parquet", "statistics.parquet"
    files = Files(*(scratch / name for name in names))
    _write_transactions(source, files)
    rows = [_row(files, strength) for strength in strengths]
    bars = [
        Bar("largest gap", max(max(row["cold gap"], row["gap"]) for row in rows), TOLERANCE),
        Bar("largest share of the cold run", max(row["share"] for row in rows), MAX_SHARE),
        Bar("largest difference of J", max(abs(row["difference of J"]) for row in rows), TOLERANCE),
    ]
    notes = [
        "Both from files, the graph rebuilt in both. The share is one of processor seconds.",
        "Read by the other: statistics of the earlier run, its last five days, the new week.",
    ]
    return Section({f"Ta-Feng, {NEW_DAYS} of 120 days appended": rows}, bars, notes)


def _row(files: Files, strength: float) -> Row:
    step(f"  strength {strength:g}: all rows, then the new ones alone")
    _keep(files)
    cold, warm = Stopwatch(), Stopwatch()
    with cold.running():
        whole = _cold(files, strength)
    with warm.running():
        again = _appended(files, strength)
    J = whole.report.objective
    return {
        "fusion_strength": f"{strength:g}",
        "cold seconds": cold.seconds.cpu,
        "seconds": warm.seconds.cpu,
        "cold wall seconds": cold.seconds.wall,
        "wall seconds": warm.seconds.wall,
        "share": warm.seconds.cpu / cold.seconds.cpu,
        "cold rounds": whole.report.rounds,
        "rounds": again.report.rounds,
        "cold gap": whole.report.gap,
        "gap": again.report.gap,
        "difference of J": (again.report.objective - J) / J,
    }


def _write_transactions(source: Transactions, files: Files) -> None:
    """Write the transactions before the last week and those of it, all columns as they are."""
    table = pl.read_csv(b"".join(source.blocks()), infer_schema=False)
    when = day(pl.col(COLUMNS["ds"]))
    is_new = when > when.max() - timedelta(days=NEW_DAYS)
    table.filter(is_new).write_csv(files.new)
    table.filter(~is_new).write_csv(files.old)


def _statistics(panel: SeriesPanel) -> SufficientStatistics:
    """Return the statistics of the days that have five before them."""
    return SufficientStatistics.from_dataset(lag_dataset(panel, N_LAGS).dataset)


def _keep(files: Files) -> None:
    """Do what the earlier run did, and keep what the next one reads."""
    panel = filled(daily_sums(files.old))
    statistics_frame(_statistics(panel)).write_parquet(files.statistics)
    last = panel.period > panel.period.max() - N_LAGS
    pl.DataFrame(
        {
            "unique_id": np.array(panel.unique_ids)[panel.series_index[last]],
            "ds": panel.period[last].astype("datetime64[D]"),
            "y": panel.values[last],
        }
    ).write_parquet(files.recent)


def _cold(files: Files, strength: float) -> FitResult:
    statistics = _statistics(filled(daily_sums(files.old, files.new)))
    return fit(statistics, fusion_strength=strength, tolerance=TOLERANCE)


def _appended(files: Files, strength: float) -> FitResult:
    daily = pl.concat([pl.read_parquet(files.recent), daily_sums(files.new)], how="vertical_relaxed")
    statistics = append_statistics(read_statistics(files.statistics), _statistics(filled(daily)))
    return fit(statistics, fusion_strength=strength, tolerance=TOLERANCE)
