"""Tell whether a file ends within its last period, from its own times and those of the data before it."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ccmtl_core.base.types import BoolArray, IntArray
from ccmtl_core.series.calendar import DAYS_FROM_MONDAY_TO_EPOCH, Frequency

_PERIODS_BEFORE = 8
"""Periods that the last one is compared with."""
_FEWEST_BEFORE = 3
"""Days that tell when a day usually ends, or hours."""
_DAYS_OF_A_MONTH = 28
_DAY = np.timedelta64(1, "D")
_UNITS = {"m": np.timedelta64(60, "m"), "h": np.timedelta64(24, "h")}
"""The length of periods that are told by minutes, and by hours."""


def last_times(times: pl.Series, frequency: Frequency) -> pl.Series:
    """Return what tells later how whole periods end: the distinct times of the last ones.

    Parameters
    ----------
    times : polars Series of Datetime
        Those of a table.
    frequency : Frequency
        What a period is.

    Returns
    -------
    polars Series of Datetime
        In order; of hours to the minute, of days to the hour, of longer periods to the day. None of whole
        numbers.

    Examples
    --------
    >>> from datetime import datetime
    >>> last_times(pl.Series([datetime(2024, 3, 1, 9), datetime(2024, 3, 1, 17)]), Frequency.MONTH).to_list()
    [datetime.datetime(2024, 3, 1, 0, 0)]
    """
    if frequency is Frequency.INTEGER or not len(times):
        return times.clear()
    moments = np.unique(times.to_numpy().astype(f"datetime64[{_unit(frequency)}]"))
    period = frequency.to_period(moments)
    first = np.unique(period)[-_PERIODS_BEFORE - 1 :][0]
    return pl.Series(times.name, moments[period >= first].astype("datetime64[us]"))


def partial_period(times: pl.Series, frequency: Frequency, stored: pl.Series | None = None) -> int | None:
    """Return the last period, if the times end within it.

    They do if they end earlier in it than in the periods before. Where there are none to compare with, they
    do if more times were to come: there is a day left that is no weekday on which nothing ever happens, and
    which is as far away as one time is from the next.

    Parameters
    ----------
    times : polars Series of Datetime
        The distinct times of rows with a value.
    frequency : Frequency
        What a period is.
    stored : polars Series of Datetime, optional
        The :func:`last_times` of the data that the table is appended to.

    Returns
    -------
    int or None
        None where the last period is whole, where one time stands for a whole period, where the stored data
        go on after it, or where nothing tells.

    Examples
    --------
    >>> from datetime import datetime
    >>> days = pl.Series([datetime(2024, 3, day) for day in range(1, 16)])
    >>> period = partial_period(days, Frequency.MONTH)
    >>> Frequency.MONTH.text(period)
    '2024-03-01'
    """
    known = last_times(times if stored is None else pl.concat([stored, times]), frequency)
    if not len(known):
        return None
    unit = _unit(frequency)
    moments = known.to_numpy().astype(f"datetime64[{unit}]")
    period, n = np.unique(frequency.to_period(moments), return_counts=True)
    if n.max() < 2 or period[-1] > frequency.to_period(times.to_numpy()).max():
        return None
    last = moments[np.cumsum(n) - 1]
    is_told_by_more = len(n) > 1 and bool(n[:-1].max() > 1)
    n_before = len(n) - 1 if is_told_by_more else 0
    ends_early = _day_ends_early if unit == "D" else _hour_ends_early
    return int(period[-1]) if ends_early(frequency, moments, period, last, n_before) else None


def _unit(frequency: Frequency) -> str:
    """The times by which the end of a period is told."""
    if frequency is Frequency.HOUR:
        return "m"
    return "h" if frequency.value[0] in "BD" else "D"


def _day_ends_early(
    frequency: Frequency,
    days: NDArray[np.datetime64],
    period: IntArray,
    last: NDArray[np.datetime64],
    n_before: int,
) -> bool:
    """Whether the last of some weeks, months, quarters or years ends before its last day."""
    if frequency is frequency.kin:
        after = frequency.to_datetime(period + 1).astype("datetime64[D]")
    else:
        after = frequency.to_datetime(period).astype("datetime64[D]") + _DAY
    left = (after - last).astype(np.int64) - 1
    is_open = _open_weekdays(days)
    open_left = np.busday_count(last + _DAY, after, weekmask=is_open)
    if n_before:
        return bool(left[-1] > left[:-1].max() and open_left[-1] > open_left[:-1].max())
    steps = np.diff(days).astype(np.int64)
    step = steps.min() if steps.min() < _DAYS_OF_A_MONTH else steps.max()
    return bool(open_left[-1] > 0 and step <= left[-1])


def _open_weekdays(days: NDArray[np.datetime64]) -> BoolArray:
    """The weekdays that occur, Monday first, and working days of which none lay between the days."""
    number = days.astype(np.int64) + DAYS_FROM_MONDAY_TO_EPOCH
    is_open = np.arange(7) < 5
    is_open[np.arange(number[0], min(number[-1], number[0] + 6) + 1) % 7] = False
    is_open[number % 7] = True
    return is_open


def _hour_ends_early(
    frequency: Frequency,
    moments: NDArray[np.datetime64],
    period: IntArray,
    last: NDArray[np.datetime64],
    n_before: int,
) -> bool:
    """Whether the last of some days ends earlier than they differ in their ends, or an hour so.

    Of too few, one that begins at midnight is taken to go on to the next.
    """
    length = _UNITS[_unit(frequency)]
    begins = frequency.to_datetime(period).astype(moments.dtype)
    left = np.maximum((begins + length - last).astype(np.int64) - 1, 0)
    if n_before >= _FEWEST_BEFORE:
        return bool(left[-1] > 2 * left[:-1].max() - left[:-1].min())
    of_last = moments[moments >= begins[-1]]
    step = np.diff(of_last).astype(np.int64).min(initial=left[-1] + 1)
    return bool(of_last[0] == begins[-1] and step <= left[-1])
