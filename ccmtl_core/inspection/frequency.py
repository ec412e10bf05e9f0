"""Find out what a period of a table is, from its times and from how they are written."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from ccmtl_core.base.display import counted
from ccmtl_core.series.calendar import WEEKDAYS, WEEKEND, Frequency

_WRITTEN = {"V": Frequency.WEEK, "q": Frequency.QUARTER}
_DAYS_TO_TELL, _WEEKS_TO_TELL = 10, 4
_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True)
class FrequencyFound:
    """The frequency that fits the times of a table, and why; None where they do not tell."""

    frequency: Frequency | None
    evidence: str


def infer_frequency(times: pl.Series, ds_format: str | None = None) -> FrequencyFound:
    """Find out the frequency of a table's times.

    Parameters
    ----------
    times : polars Series of Datetime
        All times of the table.
    ds_format : str, optional
        How they were written: dates without days tell their frequency.

    Returns
    -------
    FrequencyFound

    Examples
    --------
    >>> from datetime import datetime
    >>> fridays = pl.Series([datetime(2024, 1, 5), datetime(2024, 1, 12), datetime(2024, 1, 26)])
    >>> infer_frequency(fridays)
    FrequencyFound(frequency=<Frequency.WEEK_TO_FRIDAY: 'W-FRI'>, evidence='all 3 dates are Fridays')
    """
    distinct = times.drop_nulls().unique().sort()
    if ds_format == "integer":
        return FrequencyFound(Frequency.INTEGER, "the periods are whole numbers")
    if ds_format and (found := _as_written(ds_format)):
        return FrequencyFound(found, f"dates are written as {ds_format}")
    days = distinct.dt.date().unique().sort()
    if len(days) < len(distinct) or (distinct.dt.time().n_unique() > 1):
        return _of_times(distinct, len(days))
    if len(days) < 2:
        return FrequencyFound(
            None, f"{counted(len(days), 'date')} cannot tell what a period is: state `frequency`"
        )
    return _of_months(days) or _of_weekdays(days) or FrequencyFound(Frequency.DAY, "dates on any day")


def _as_written(ds_format: str) -> Frequency | None:
    for letter, frequency in _WRITTEN.items():
        if f"%{letter}" in ds_format:
            return frequency if "%u" not in ds_format else None
    if any(f"%{letter}" in ds_format for letter in "djHI") or "%" not in ds_format:
        return None
    return Frequency.MONTH if any(f"%{letter}" in ds_format for letter in "mbB") else Frequency.YEAR


def _of_times(distinct: pl.Series, n_days: int) -> FrequencyFound:
    on_hours = bool((distinct == distinct.dt.truncate("1h")).all())
    if on_hours:
        return FrequencyFound(
            Frequency.HOUR, f"all {len(distinct):,} times are whole hours of {n_days:,} days"
        )
    return FrequencyFound(
        Frequency.DAY, f"{len(distinct):,} times of any minute on {n_days:,} days: of each the day"
    )


def _of_months(days: pl.Series) -> FrequencyFound | None:
    """Frequencies of months and longer: all dates are the first, last or same day of months."""
    all_of = f"all {len(days):,} dates are"
    months = set(days.dt.month().to_list())
    steps = set(np.diff(days.dt.year().to_numpy() * 12 + days.dt.month().to_numpy()).tolist())
    if 0 in steps:
        return None
    if (days.dt.day() == 1).all():
        names, word = (Frequency.YEAR, Frequency.QUARTER, Frequency.MONTH), "first"
    elif (days == days.dt.month_end()).all():
        names, word = (Frequency.YEAR_END, Frequency.QUARTER_END, Frequency.MONTH_END), "last"
    elif len(days) > 2 and days.dt.day().n_unique() == 1:
        return FrequencyFound(Frequency.MONTH, f"{all_of} the same day of their months")
    else:
        return None
    if all(step % 12 == 0 for step in steps) and months <= {1, 12}:
        return FrequencyFound(names[0], f"{all_of} the {word} days of years")
    if all(step % 3 == 0 for step in steps) and months <= (
        {1, 4, 7, 10} if word == "first" else {3, 6, 9, 12}
    ):
        return FrequencyFound(names[1], f"{all_of} the {word} days of quarters")
    return FrequencyFound(names[2], f"{all_of} the {word} days of months")


def _of_weekdays(days: pl.Series) -> FrequencyFound | None:
    """Weeks, where all dates are the same day of the week; days, where some days of the week never come."""
    present = set((days.dt.weekday() - 1).to_list())
    if len(present) == 1:
        day = present.pop()
        found = Frequency.WEEK if day == 0 else Frequency(f"W-{WEEKDAYS[day]}")
        return FrequencyFound(found, f"all {len(days):,} dates are {_NAMES[day]}s")
    closed = [name for i, name in enumerate(WEEKDAYS) if i not in present]
    span = (days[-1] - days[0]).days
    if len(days) < _DAYS_TO_TELL or span < 7 * _WEEKS_TO_TELL:
        return None
    if tuple(closed) == WEEKEND:
        return FrequencyFound(Frequency.BUSINESS_DAY, f"none of {len(days):,} dates is a Saturday or Sunday")
    if len(closed) == 1:
        name = _NAMES[WEEKDAYS.index(closed[0])]
        return FrequencyFound(Frequency(f"D-{closed[0]}"), f"none of {len(days):,} dates is a {name}")
    return None
