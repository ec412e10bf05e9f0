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
from ccmtl_core.series.calendar import WEEKDAYS

EPOCH = datetime(1970, 1, 1)
MOMENTS = st.datetimes(datetime(1601, 1, 1), datetime(2399, 12, 31))
every_frequency = pytest.mark.parametrize("frequency", list(Frequency))


def named_by(moment: datetime, frequency: Frequency) -> datetime:
    """Python's own calendar: the time that names the period of a moment."""
    midnight = datetime(moment.year, moment.month, moment.day)
    months = {"M": 1, "Q": 3, "Y": 12}.get(frequency.value[0])
    if frequency is Frequency.HOUR:
        return midnight + timedelta(hours=moment.hour)
    if months:
        n = (moment.year * 12 + moment.month - 1) // months * months
        if frequency.value.endswith("S"):
            return datetime(n // 12, n % 12 + 1, 1)
        n += months
        return datetime(n // 12, n % 12 + 1, 1) - timedelta(days=1)
    if frequency is Frequency.WEEK:
        return midnight - timedelta(days=moment.weekday())
    if frequency.value.startswith("W-"):
        return midnight + timedelta(days=(WEEKDAYS.index(frequency.value[2:]) - moment.weekday()) % 7)
    closed = {"B": ("SAT", "SUN"), "D": (), "1": ()}.get(frequency.value, (frequency.value[2:],))
    while WEEKDAYS[midnight.weekday()] in closed:
        midnight -= timedelta(days=1)
    return midnight


@every_frequency
@given(moment=MOMENTS)
def test_a_period_is_named_as_the_calendar_says(frequency: Frequency, moment: datetime) -> None:
    period = frequency.to_period([moment])
    assert frequency.to_datetime(period)[0] == np.datetime64(named_by(moment, frequency))
    assert frequency.to_period(frequency.to_datetime(period)).tolist() == period.tolist()


@every_frequency
@given(start=st.integers(-10_000, 10_000))
def test_periods_follow_one_another_without_gap(frequency: Frequency, start: int) -> None:
    first, second = frequency.to_datetime([start, start + 1])
    moments = np.arange(first, second, np.timedelta64(1, "h"))
    assert first < second
    assert set(frequency.to_period(moments).tolist()) <= {start, start + 1}


@every_frequency
def test_dated_and_text_name_periods_alike(frequency: Frequency) -> None:
    texts = [str(name).replace(" ", "T") for name in frequency.dated([0, 7]).to_list()]
    assert texts == [frequency.text(0), frequency.text(7)]
    assert frequency is not Frequency.INTEGER or texts == ["0", "7"]


def test_whole_numbers_are_periods_of_their_own() -> None:
    assert Frequency("1").to_period([3, 1]).tolist() == [3, 1]
    with pytest.raises(DataError, match="not a time: int64"):
        Frequency.DAY.to_period([3, 1])


def test_a_season_is_as_long_as_its_frequency_has_it() -> None:
    seasons = {"h": 24, "D": 7, "B": 5, "D-SUN": 6, "W": 52, "W-FRI": 52, "ME": 12, "QS": 4, "YE": 1, "1": 1}
    assert {name: Frequency(name).season for name in seasons} == seasons


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


def test_an_unknown_frequency_is_refused() -> None:
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
