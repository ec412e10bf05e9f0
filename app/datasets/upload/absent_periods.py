"""Warn of periods without a value in a dataset that has no `fill`: they cost training rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from app.datasets.schemas import Warned
from app.datasets.stored.period_values import period_text
from app.datasets.stored.runs import blocks
from ccmtl_core.forecasting import Frequency

_DAYS = ("Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday")
_MONTHS = "January February March April May June July August September October November December"
_CYCLES = {
    Frequency.HOUR: [f"at {hour:02d}:00" for hour in range(24)],
    Frequency.DAY: [f"on {day}s" for day in _DAYS],
    Frequency.MONTH: [f"in {month}" for month in _MONTHS.split()],
}
"""What recurs, from the period of 1970-01-01 on, with which the numbers of periods begin."""

_LONGER = {Frequency.HOUR: ', or the `frequency` "D"', Frequency.DAY: ', or the `frequency` "W"'}
_FEWEST_CYCLES = 2
_MAX_SEARCHED = 1_000_000


def absent_periods(runs: pl.DataFrame, frequency: Frequency) -> Iterator[Warned]:
    """Say how many periods the series lack inside their own time, and which no series has.

    Parameters
    ----------
    runs : DataFrame
        Of the whole version (see :mod:`app.datasets.stored.runs`).
    frequency : Frequency
        What a period is.

    Returns
    -------
    iterator of Warned
        One at most.
    """
    first, end = pl.col("first").min(), (pl.col("first") + pl.col("length")).max()
    spans = int(runs.group_by("unique_id").agg((end - first).alias("n"))["n"].sum())
    n_absent = spans - int(runs["length"].sum())
    if n_absent:
        yield Warned(
            code="absent_periods",
            message=f"{n_absent} of the {spans} periods between the first and the last value of their series "
            "have no value, and the dataset has no `fill`: training leaves out every row with one of them "
            f"among its lags.{_of_no_series(runs, frequency)} If nothing happened in these periods, create a "
            'dataset with `fill` {"method": "zero"}. If they do not count, as days on which a shop is closed '
            f"do not, take few `lags`{_LONGER.get(frequency, '')}.",
            count=n_absent,
        )


def _of_no_series(runs: pl.DataFrame, frequency: Frequency) -> str:
    """Name the periods that no series has a value in: what recurs, such as a weekday, and the first other."""
    starts, ends = blocks(runs["first"].to_numpy(), runs["length"].to_numpy())
    lengths, low, high = ends - starts, int(starts[0]), int(ends[-1])
    occupied = np.arange(lengths.sum()) + np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
    absent = np.setdiff1d(np.arange(low, min(high, low + _MAX_SEARCHED)), occupied, assume_unique=True)
    names, told = _CYCLES.get(frequency, []), []
    if names and high - low >= _FEWEST_CYCLES * len(names):
        missing = np.setdiff1d(np.arange(len(names)), occupied % len(names))
        absent = absent[~np.isin(absent % len(names), missing)]
        told = [names[place] for place in missing]
    if len(absent):
        other = " other" if told else ""
        plural = "s" if len(absent) > 1 else ""
        told.append(f"in {len(absent)}{other} period{plural}, first {period_text(frequency, int(absent[0]))}")
    share = f" ({high - low - len(occupied)} of {high - low} periods)"
    return f" No series has a value {', '.join(told)}{share}." if told else ""
