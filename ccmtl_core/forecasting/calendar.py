"""Times in, whole-numbered periods out, and back: the calendar of one frequency.

A period's number counts from the period that holds 1970-01-01T00:00 UTC, so that consecutive
periods differ by one whatever the frequency, months included.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ccmtl_core._types import IntArray
from ccmtl_core.exceptions import DataError

DAYS_FROM_MONDAY_TO_EPOCH = 3  # 1970-01-01 was a Thursday


class Frequency(StrEnum):
    """Length of a period; times without a zone are UTC.

    Weeks start on Monday (as in ISO 8601), months on their first day.

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

    @property
    def polars_interval(self) -> str:
        """The same period for ``polars.Expr.dt.truncate``."""
        return {"h": "1h", "D": "1d", "W": "1w", "MS": "1mo"}[self.value]

    def to_period(self, times: ArrayLike) -> IntArray:
        """Number of the period that holds each time.

        Parameters
        ----------
        times : (n,) datetime64 of any unit, or what NumPy reads as such
            UTC.

        Returns
        -------
        (n,) int64

        Raises
        ------
        DataError
            A missing time, or something that is not a time.
        """
        moments = _as_moments(times)
        if self is Frequency.WEEK:
            days = moments.astype("datetime64[D]").astype(np.int64)
            return np.floor_divide(days + DAYS_FROM_MONDAY_TO_EPOCH, 7)
        unit = {"h": "h", "D": "D", "MS": "M"}[self.value]
        return moments.astype(f"datetime64[{unit}]").astype(np.int64)

    def to_datetime(self, periods: ArrayLike) -> NDArray[np.datetime64]:
        """Start of each period, datetime64[us], UTC."""
        numbers = np.asarray(periods, dtype=np.int64)
        if self is Frequency.WEEK:
            return _at_microseconds(numbers * 7 - DAYS_FROM_MONDAY_TO_EPOCH, "D")
        return _at_microseconds(numbers, {"h": "h", "D": "D", "MS": "M"}[self.value])


def _at_microseconds(numbers: IntArray, unit: str) -> NDArray[np.datetime64]:
    return numbers.astype(f"datetime64[{unit}]").astype("datetime64[us]")


def _as_moments(times: ArrayLike) -> NDArray[Any]:
    array = np.asarray(times)
    if array.dtype.kind not in "MOUS":
        raise DataError(f"not a time: {array.dtype}")
    if array.dtype.kind != "M":
        try:
            array = array.astype("datetime64[us]")
        except (TypeError, ValueError) as error:
            raise DataError(f"not a time: {error}") from error
    missing = np.flatnonzero(np.isnat(array))
    if missing.size:
        raise DataError(f"row {missing[0]}: the time is missing", n_faults=missing.size)
    return array
