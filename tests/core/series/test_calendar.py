"""Periods against Python's own calendar and against polars, before and after 1970."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccmtl_core import DataError, ParameterError
from ccmtl_core.forecasting import Frequency

EPOCH = datetime(1970, 1, 1)
MOMENTS = st.datetimes(datetime(1601, 1, 1), datetime(2399, 12, 31))
every_frequency = pytest.mark.parametrize("frequency", list(Frequency))


def start_of(moment: datetime, frequency: Frequency) -> datetime:
    midnight = datetime(moment.year, moment.month, moment.day)
    return {
        Frequency.HOUR: midnight + timedelta(hours=moment.hour),
        Frequency.DAY: midnight,
        Frequency.WEEK: midnight - timedelta(days=moment.weekday()),
        Frequency.MONTH: midnight.replace(day=1),
    }[frequency]


@every_frequency
@given(moment=MOMENTS)
def test_a_period_starts_where_the_calendar_says(frequency: Frequency, moment: datetime) -> None:
    period = frequency.to_period([moment])
    assert frequency.to_datetime(period)[0] == np.datetime64(start_of(moment, frequency))
    assert frequency.to_period(frequency.to_datetime(period)).tolist() == period.tolist()


@every_frequency
@given(moment=MOMENTS)
def test_polars_truncates_to_the_same_start(frequency: Frequency, moment: datetime) -> None:
    truncated = pl.Series([moment]).dt.truncate(frequency.polars_interval)
    assert truncated[0] == start_of(moment, frequency)


@every_frequency
@given(start=st.integers(-10_000, 10_000))
def test_periods_follow_one_another_without_gap(frequency: Frequency, start: int) -> None:
    first, second = frequency.to_datetime([start, start + 1])
    assert frequency.to_period([second - np.timedelta64(1, "us")]).tolist() == [start]
    assert first < second


@every_frequency
def test_the_epoch_lies_in_period_zero(frequency: Frequency) -> None:
    assert frequency.to_period([EPOCH]).tolist() == [0]


def test_dates_units_and_text_are_times() -> None:
    for times in (
        np.array(["2000-11-01"], dtype="datetime64[D]"),
        np.array(["2000-11-01T23:59:59"], dtype="datetime64[ns]"),
        ["2000-11-01"],
        pl.Series(["2000-11-01"]).str.to_date().to_numpy(),
    ):
        assert Frequency.DAY.to_period(times).tolist() == [11262]


@pytest.mark.parametrize("times", [["NaT"], [None]])
def test_a_missing_time_is_refused(times: list[object]) -> None:
    with pytest.raises(DataError, match="row 1: the time is missing"):
        Frequency.DAY.to_period(times)


@pytest.mark.parametrize(
    "times", [["yesterday"], [1.5], [{}], [2**70], np.array([1], dtype=object), ["2024-01-01T00:00+99:00"]]
)
def test_what_is_not_a_time_is_refused(times: Any) -> None:
    with pytest.raises(DataError, match="not a time"):
        Frequency.DAY.to_period(times)


def test_frequencies_are_those_of_the_wire() -> None:
    assert [frequency.value for frequency in Frequency] == ["h", "D", "W", "MS"]
    unknown: list[Any] = ["Q", None, 1, {}]
    for value in unknown:
        with pytest.raises(ParameterError, match="is not a valid Frequency; there are 'h', 'D', 'W', 'MS'"):
            Frequency(value)


def in_london(*moments: datetime) -> pl.Series:
    return pl.Series(moments).dt.replace_time_zone("Europe/London")


@every_frequency
def test_a_time_with_a_zone_keeps_its_local_date_and_its_hour_in_utc(frequency: Frequency) -> None:
    midnight = datetime(2024, 7, 1, tzinfo=ZoneInfo("Europe/London"))
    read = datetime(2024, 6, 30, 23) if frequency is Frequency.HOUR else datetime(2024, 7, 1)
    given: list[Any] = [[midnight], ["2024-07-01T00:00+01:00"], in_london(datetime(2024, 7, 1))]
    for times in given:
        assert frequency.to_period(times).tolist() == frequency.to_period([read]).tolist()


@every_frequency
@pytest.mark.parametrize("periods", [[1.7], [1.0], ["3"], [True], [2**70], [[1], [1, 2]]])
def test_periods_are_numbered_by_integers(frequency: Frequency, periods: Any) -> None:
    with pytest.raises(DataError, match=r"period must hold integers|not a rectangular array"):
        frequency.to_datetime(periods)


@every_frequency
@pytest.mark.parametrize("period", [2**62, -(2**62), 2**63 - 1, -(2**63)])
def test_periods_beyond_the_calendar_are_refused(frequency: Frequency, period: int) -> None:
    with pytest.raises(DataError, match=f"period {period} is beyond the calendar"):
        frequency.to_datetime([0, period])


@every_frequency
@pytest.mark.parametrize("unit", ["Y", "M", "D", "s", "ms"])
def test_times_beyond_the_calendar_are_refused(frequency: Frequency, unit: str) -> None:
    with pytest.raises(DataError, match="is beyond the calendar"):
        frequency.to_period(np.array([0, 2**62]).astype(f"datetime64[{unit}]"))


@every_frequency
def test_the_calendars_ends_are_read_back(frequency: Frequency) -> None:
    ends = np.array([-261_969, 258_030]).astype("datetime64[Y]")
    period = frequency.to_period(ends)
    assert frequency.to_period(frequency.to_datetime(period)).tolist() == period.tolist()
