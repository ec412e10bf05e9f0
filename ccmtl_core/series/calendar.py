"""The calendar: which numbered hour, day, week or month a time lies in, and when a period begins.

Period 0 holds 1970-01-01T00:00, and consecutive periods differ by one at every frequency, months included.
Days, weeks and months are local: a time with a zone counts for the date that its own clock shows. Hours are
in UTC, because a local clock shows one hour twice in autumn and skips one in spring.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from ccmtl_core.base.arrays import as_array, as_integers
from ccmtl_core.base.exceptions import DataError, ParameterError
from ccmtl_core.base.types import IntArray

DAYS_FROM_MONDAY_TO_EPOCH = 3  # 1970-01-01 was a Thursday

_LAST_YEAR = 260_000
"""The calendar ends with this year, and begins as long before. Those of int64 and polars are longer."""

_ZONE = re.compile("[T ].*(Z|[+-])")
"""Finds a zone, which follows the time of day, in the text of a time."""


class Frequency(StrEnum):
    """Length of a period.

    Weeks start on Monday (as in ISO 8601), months on their first day.

    Raises
    ------
    ParameterError
        ``Frequency(value)`` of any other value.

    Examples
    --------
    >>> Frequency.WEEK.to_period(["1970-01-04", "1970-01-05"])
    array([0, 1])
    >>> Frequency("W").to_datetime([0])
    array(['1969-12-29T00:00:00.000000'], dtype='datetime64[us]')
    """

    HOUR = "h"
    DAY = "D"
    WEEK = "W"
    MONTH = "MS"

    @classmethod
    def _missing_(cls, value: object) -> None:
        known = ", ".join(repr(frequency.value) for frequency in cls)
        raise ParameterError(f"{value!r} is not a valid Frequency; there are {known}")

    @property
    def polars_interval(self) -> str:
        """This period as polars names it, for ``polars.Expr.dt.truncate``."""
        return {"h": "1h", "D": "1d", "W": "1w", "MS": "1mo"}[self.value]

    def to_period(self, times: ArrayLike | pl.Series) -> IntArray:
        """Return the number of the period that each time lies in.

        Parameters
        ----------
        times : (n,) datetime64 of any unit, dates, datetimes, or text of them in ISO 8601
            With a zone: hours are converted to UTC, all else keeps its local date.

        Returns
        -------
        (n,) int64

        Raises
        ------
        DataError
            A missing time, one beyond the calendar, or something that is not a time.

        Examples
        --------
        >>> midnight = ["2024-07-01T00:00+01:00"]
        >>> Frequency.DAY.to_datetime(Frequency.DAY.to_period(midnight))
        array(['2024-07-01T00:00:00.000000'], dtype='datetime64[us]')
        """
        moments = _as_moments(times, in_utc=self is Frequency.HOUR)
        if self is Frequency.WEEK:
            days = moments.astype("datetime64[D]").astype(np.int64)
            return np.floor_divide(days + DAYS_FROM_MONDAY_TO_EPOCH, 7)
        return moments.astype(f"datetime64[{self._unit}]").astype(np.int64)

    def to_datetime(self, periods: ArrayLike) -> NDArray[np.datetime64]:
        """Return the start of each period as datetime64[us]; hours are in UTC, all else is local.

        Raises
        ------
        DataError
            Numbers that are not integers, or beyond the calendar.
        """
        numbers = self.checked_periods(periods)
        days = numbers * 7 - DAYS_FROM_MONDAY_TO_EPOCH if self is Frequency.WEEK else numbers
        return days.astype(f"datetime64[{self._unit}]").astype("datetime64[us]")

    def checked_periods(self, periods: ArrayLike) -> IntArray:
        """Return numbers of periods as int64.

        Raises
        ------
        DataError
            Numbers that are not integers, or beyond the calendar.
        """
        numbers = as_integers(periods, "period")
        years = np.array([-_LAST_YEAR - 1970, _LAST_YEAR - 1970]).astype("datetime64[Y]")
        first, last = self.to_period(years)
        if numbers.size and not first <= numbers.min() <= numbers.max() <= last:
            bad = numbers.flat[np.argmax((numbers < first) | (numbers > last))]
            raise DataError(
                f"period {bad} is beyond the calendar, which at frequency {self.value!r} has those from "
                f"{first} to {last}"
            )
        return numbers

    @property
    def _unit(self) -> str:
        return {"h": "h", "D": "D", "W": "D", "MS": "M"}[self.value]


def _as_moments(times: ArrayLike | pl.Series, *, in_utc: bool) -> NDArray[Any]:
    """Return times without a zone: in UTC, or as their own clock shows them."""
    array = as_array(times, "times")
    if array.dtype.kind not in "MOUS":
        raise DataError(f"not a time: {array.dtype}")
    if array.dtype.kind != "M":
        array = _moments_of_objects(array, in_utc)
    missing = np.flatnonzero(np.isnat(array))
    if missing.size:
        raise DataError(f"row {missing[0] + 1}: the time is missing", n_faults=missing.size)
    _refuse_beyond_calendar(array)
    if isinstance(times, pl.Series) and not in_utc and getattr(times.dtype, "time_zone", None) is not None:
        return times.dt.replace_time_zone(None).to_numpy()  # NumPy was given it in UTC
    return array


def _moments_of_objects(array: NDArray[Any], in_utc: bool) -> NDArray[Any]:
    values = array.astype(str) if array.dtype.kind == "S" else array
    moments = np.empty(array.shape, dtype="datetime64[us]")
    for row, value in enumerate(values.ravel().tolist()):
        if not (value is None or isinstance(value, str | date | np.datetime64)):
            raise DataError(f"row {row + 1}: not a time: {value!r}")
        try:
            moments.flat[row] = np.datetime64(_without_zone(value, in_utc), "us")
        except ValueError as error:
            raise DataError(f"row {row + 1}: not a time: {error}") from error
    return moments


def _without_zone(value: Any, in_utc: bool) -> Any:
    if isinstance(value, str) and _ZONE.search(value):
        value = datetime.fromisoformat(value)
    if isinstance(value, datetime) and value.tzinfo is not None:
        return (value.astimezone(UTC) if in_utc else value).replace(tzinfo=None)
    return value


def _refuse_beyond_calendar(moments: NDArray[Any]) -> None:
    if not moments.size:
        return
    ends = np.array([moments.min(), moments.max()])
    years = ends.astype("datetime64[Y]").astype(np.int64) + 1970
    for end, year in zip(ends, years, strict=True):
        if abs(year) > _LAST_YEAR:
            raise DataError(f"the time {end} is beyond the calendar, which ends with the year {_LAST_YEAR}")
