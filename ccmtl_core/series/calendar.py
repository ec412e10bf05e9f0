"""The calendar: which numbered period a time lies in, and by which time a period is named.

Consecutive periods differ by one at every frequency, months and business days included, and period 0 holds
1970-01-01T00:00. All but hours are local: a time with a zone counts for the date that its own clock shows.
Hours are in UTC, because a local clock shows one hour twice in autumn and skips one in spring.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from ccmtl_core.base.arrays import as_array, as_integers
from ccmtl_core.base.exceptions import DataError, ParameterError
from ccmtl_core.base.types import IntArray

DAYS_FROM_MONDAY_TO_EPOCH = 3  # 1970-01-01 was a Thursday
WEEKDAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
WEEKEND = ("SAT", "SUN")

_LAST_YEAR = 260_000
"""The calendar ends with this year, and begins as long before. Those of int64 and polars are longer."""

_ZONE = re.compile("[T ].*(Z|[+-])")
"""Finds a zone, which follows the time of day, in the text of a time."""


class Frequency(StrEnum):
    """Length of a period, under the names that pandas has for them.

    ``"h"`` hours, ``"D"`` days, ``"W"`` weeks from Monday, ``"MS"`` months, ``"QS"`` quarters and ``"YS"``
    years are named by their first day. ``"W-MON"`` to ``"W-SUN"``, weeks that end on that day, and ``"ME"``,
    ``"QE"`` and ``"YE"`` are named by their last day. ``"B"`` are days without Saturdays and Sundays, and
    ``"D-MON"`` to ``"D-SUN"`` days without that one; a time on a closed day counts for the open day before.
    ``"1"`` are whole numbers.

    Raises
    ------
    ParameterError
        ``Frequency(value)`` of any other value.

    Examples
    --------
    >>> Frequency.WEEK.to_period(["1970-01-04", "1970-01-05"])
    array([0, 1])
    >>> Frequency("W").to_datetime([0]), Frequency("W-FRI").to_datetime([0])
    (array(['1969-12-29T00:00:00.000000'], dtype='datetime64[us]'), \
array(['1970-01-02T00:00:00.000000'], dtype='datetime64[us]'))
    """

    HOUR = "h"
    DAY = "D"
    WEEK = "W"
    MONTH = "MS"
    BUSINESS_DAY = "B"
    DAY_BUT_MONDAY = "D-MON"
    DAY_BUT_TUESDAY = "D-TUE"
    DAY_BUT_WEDNESDAY = "D-WED"
    DAY_BUT_THURSDAY = "D-THU"
    DAY_BUT_FRIDAY = "D-FRI"
    DAY_BUT_SATURDAY = "D-SAT"
    DAY_BUT_SUNDAY = "D-SUN"
    WEEK_TO_MONDAY = "W-MON"
    WEEK_TO_TUESDAY = "W-TUE"
    WEEK_TO_WEDNESDAY = "W-WED"
    WEEK_TO_THURSDAY = "W-THU"
    WEEK_TO_FRIDAY = "W-FRI"
    WEEK_TO_SATURDAY = "W-SAT"
    WEEK_TO_SUNDAY = "W-SUN"
    MONTH_END = "ME"
    QUARTER = "QS"
    QUARTER_END = "QE"
    YEAR = "YS"
    YEAR_END = "YE"
    INTEGER = "1"

    @classmethod
    def _missing_(cls, value: object) -> None:
        known = ", ".join(repr(frequency.value) for frequency in cls)
        raise ParameterError(f"{value!r} is not a valid Frequency; there are {known}")

    @property
    def kin(self) -> Frequency:
        """The frequency of periods as long as these that are named by their first day."""
        ends = {"ME": Frequency.MONTH, "QE": Frequency.QUARTER, "YE": Frequency.YEAR}
        if self.value.startswith("W-"):
            return Frequency.WEEK
        return ends.get(self.value, self)

    @property
    def season(self) -> int:
        """Periods after which a usual season begins again: a day, a week or a year; 1 where there is none."""
        kin = {"h": 24, "D": 7, "B": 5, "W": 52, "MS": 12, "QS": 4}
        return 6 if self.value.startswith("D-") else kin.get(self.kin.value, 1)

    def to_period(self, times: ArrayLike | pl.Series) -> IntArray:
        """Return the number of the period that each time lies in.

        Parameters
        ----------
        times : (n,) datetime64 of any unit, dates, datetimes, or text of them in ISO 8601
            With a zone: hours are converted to UTC, all else keeps its local date. At the frequency "1",
            integers.

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
        >>> Frequency("B").to_period(["2024-07-05", "2024-07-06", "2024-07-08"])
        array([14221, 14221, 14222])
        """
        if self is Frequency.INTEGER and as_array(times, "times").dtype.kind in "iu":
            return as_integers(times, "times")
        moments = _as_moments(times, in_utc=self is Frequency.HOUR)
        if self is Frequency.HOUR:
            return moments.astype("datetime64[h]").astype(np.int64)
        if self.kin in _MONTHS:
            return np.floor_divide(moments.astype("datetime64[M]").astype(np.int64), _MONTHS[self.kin])
        days = moments.astype("datetime64[D]").astype(np.int64)
        if self.kin is Frequency.WEEK:
            return np.floor_divide(days + self._days_into_week, 7)
        weekdays = self._open_weekdays
        if len(weekdays) == 7:
            return days
        weeks, weekday = np.divmod(days + DAYS_FROM_MONDAY_TO_EPOCH, 7)
        place = np.searchsorted(weekdays, weekday, side="right") - 1
        return weeks * len(weekdays) + place - self._epoch_place

    def to_datetime(self, periods: ArrayLike) -> NDArray[np.datetime64]:
        """Return the time that names each period, its beginning or last day; hours in UTC, all else local.

        Parameters
        ----------
        periods : (n,) int64
            Numbers of periods.

        Returns
        -------
        (n,) datetime64[us]
            At the frequency "1" days from 1970-01-01 on stand for the numbers; :meth:`dated` gives these.

        Raises
        ------
        DataError
            Numbers that are not integers, or beyond the calendar.
        """
        numbers = self.checked_periods(periods)
        if self is Frequency.HOUR:
            return numbers.astype("datetime64[h]").astype("datetime64[us]")
        if self.kin in _MONTHS:
            n_months = _MONTHS[self.kin]
            if self is self.kin:
                return (numbers * n_months).astype("datetime64[M]").astype("datetime64[us]")
            after = ((numbers + 1) * n_months).astype("datetime64[M]").astype("datetime64[D]")
            return (after - np.timedelta64(1, "D")).astype("datetime64[us]")
        if self.kin is Frequency.WEEK:
            days = numbers * 7 - self._days_into_week + (0 if self is self.kin else 6)
        elif len(weekdays := self._open_weekdays) == 7:
            days = numbers
        else:
            weeks, place = np.divmod(numbers + self._epoch_place, len(weekdays))
            days = weeks * 7 + weekdays[place] - DAYS_FROM_MONDAY_TO_EPOCH
        return days.astype("datetime64[D]").astype("datetime64[us]")

    def dated(self, periods: ArrayLike) -> pl.Series:
        """Return what names each period in a table: a time in UTC, a whole number for "1", or a date.

        Parameters
        ----------
        periods : (n,) int64
            Numbers of periods.

        Returns
        -------
        polars Series
            Of Datetime, Int64 or Date.

        Examples
        --------
        >>> Frequency("ME").dated([0, 1]).to_list()
        [datetime.date(1970, 1, 31), datetime.date(1970, 2, 28)]
        """
        if self is Frequency.INTEGER:
            return pl.Series(self.checked_periods(periods))
        moments = pl.Series(self.to_datetime(periods))
        return moments if self is Frequency.HOUR else moments.cast(pl.Date)

    def text(self, period: int, unit: Literal["s", "m", "D"] | None = None) -> str:
        """Return what names a period: a date, for hours with the time, for "1" the number.

        Parameters
        ----------
        period : int
            Its number.
        unit : {"s", "m", "D"}, optional
            To which second, minute or day the time is written.

        Returns
        -------
        str

        Examples
        --------
        >>> Frequency("h").text(0), Frequency("QE").text(0), Frequency("1").text(7)
        ('1970-01-01T00:00:00', '1970-03-31', '7')
        """
        if self is Frequency.INTEGER:
            return str(period)
        unit = unit or ("s" if self is Frequency.HOUR else "D")
        return str(self.to_datetime([period])[0].astype(f"datetime64[{unit}]"))

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
    def _days_into_week(self) -> int:
        """How many days before 1970-01-01 its week begins."""
        last = 6 if self is Frequency.WEEK else WEEKDAYS.index(self.value[2:])
        return (DAYS_FROM_MONDAY_TO_EPOCH - last - 1) % 7

    @property
    def _open_weekdays(self) -> IntArray:
        """The days of a week that have a period, 0 for Monday."""
        closed = WEEKEND if self is Frequency.BUSINESS_DAY else (self.value[2:],)
        return np.array([d for d, name in enumerate(WEEKDAYS) if name not in closed])

    @property
    def _epoch_place(self) -> int:
        """How many open days of its week lie before the one that 1970-01-01, a Thursday, counts for."""
        return int(np.searchsorted(self._open_weekdays, DAYS_FROM_MONDAY_TO_EPOCH, side="right")) - 1


_MONTHS = {Frequency.MONTH: 1, Frequency.QUARTER: 3, Frequency.YEAR: 12}
"""Months of a period."""


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
