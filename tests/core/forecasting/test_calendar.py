"""Periods against Python's own calendar and against polars, before and after 1970."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccmtl_core import DataError
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
    with pytest.raises(DataError, match="row 0: the time is missing"):
        Frequency.DAY.to_period(times)


@pytest.mark.parametrize("times", [["yesterday"], [1.5], [{}]])
def test_what_is_not_a_time_is_refused(times: list[object]) -> None:
    with pytest.raises(DataError, match="not a time"):
        Frequency.DAY.to_period(times)


def test_frequencies_are_those_of_the_wire() -> None:
    assert [frequency.value for frequency in Frequency] == ["h", "D", "W", "MS"]
    with pytest.raises(ValueError, match="'Q' is not a valid Frequency"):
        Frequency("Q")
