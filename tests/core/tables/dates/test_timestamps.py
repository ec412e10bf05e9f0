"""Text becomes a time only when it is exactly in the format, and then the right one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccmtl_core.base.exceptions import ParameterError
from ccmtl_core.tables.dates.timestamps import time_format


def parse(ds_format: str | None, *texts: str, in_utc: bool = True) -> list[datetime | None]:
    parsed = time_format(ds_format, in_utc=in_utc).parse(pl.col("text"))
    return pl.DataFrame({"text": texts}).select(parsed).to_series().to_list()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2000-02-29", datetime(2000, 2, 29)),
        ("2000-02-29T23:59", datetime(2000, 2, 29, 23, 59)),
        ("2000-02-29 23:59", datetime(2000, 2, 29, 23, 59)),
        ("2000-02-29T23:59:58", datetime(2000, 2, 29, 23, 59, 58)),
        ("2000-02-29 23:59:58.25", datetime(2000, 2, 29, 23, 59, 58, 250000)),
        ("2000-02-29T23:59:58.123456789", datetime(2000, 2, 29, 23, 59, 58, 123456)),
        ("2000-02-29T23:59Z", datetime(2000, 2, 29, 23, 59)),
        ("2000-02-29T23:59:58+01:30", datetime(2000, 2, 29, 22, 29, 58)),
        ("2000-02-29 23:59:58-0130", datetime(2000, 3, 1, 1, 29, 58)),
        ("2000-02-29T23:59:58.5+02", datetime(2000, 2, 29, 21, 59, 58, 500000)),
    ],
)
def test_iso_8601_is_read(text: str, expected: datetime) -> None:
    assert parse(None, text) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2001-02-29",
        "2000-2-9",
        "00-02-09",
        "0000-01-01",
        "12000-01-01",
        "+2000-01-01",
        " 2000-01-01",
        "2000-01-01 ",
        "2000-01-01\n",
        "2000-01-01T",
        "2000-01-01T1:00",
        "2000-01-01T24:00",
        "2000-01-01T00:60",
        "2000-01-01t00:00",
        "2000-12-31T23:59:60",
        "2000-12-31 23:59:60.5Z",
        "2000-01-01T00:00:00.",
        "2000-01-01T00:00 Z",
        "2000-01-01T00:00+99:00",
        "2000-01-01Z",
        "20000101",
        "2000/01/01",
        "01/02/2000",
        "٢٠٠٠-01-01",
    ],
)
def test_what_is_not_iso_8601_is_not_guessed_at(text: str) -> None:
    assert parse(None, text) == [None]


def test_a_us_date_may_be_padded_or_not() -> None:
    assert parse("%m/%d/%Y", "1/2/2000", "01/02/2000", "11/1/2000") == [
        datetime(2000, 1, 2),
        datetime(2000, 1, 2),
        datetime(2000, 11, 1),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "13/1/2000",
        "2/30/2001",
        " 1/2/2000",
        "1/2/00",
        "1/2/12345",
        "+1/2/2000",
        "1/2/+2000",
        "1 /2/2000",
        "1-2-2000",
    ],
)
def test_another_date_is_not_a_us_date(text: str) -> None:
    assert parse("%m/%d/%Y", text) == [None]


@pytest.mark.parametrize(
    ("ds_format", "text", "expected"),
    [
        ("%d.%m.%y", "5.1.99", datetime(1999, 1, 5)),
        ("%Y%m%d", "20000105", datetime(2000, 1, 5)),
        ("%Y-%m", "2000-07", datetime(2000, 7, 1)),
        ("%b %d, %Y", "Jan 5, 2000", datetime(2000, 1, 5)),
        ("%d %B %Y", "5 January 2000", datetime(2000, 1, 5)),
        ("%Y-%j", "2000-366", datetime(2000, 12, 31)),
        ("%Y年%m月%d日", "2000年1月5日", datetime(2000, 1, 5)),
        ("%m/%d/%Y %I:%M %p", "1/5/2000 1:02 PM", datetime(2000, 1, 5, 13, 2)),
        ("%Y-%m-%d %H:%M:%S %z", "2000-01-05 01:00:00 +0200", datetime(2000, 1, 4, 23)),
        ("(%Y.%m.%d)", "(2000.01.05)", datetime(2000, 1, 5)),
    ],
)
def test_patterns_of_many_kinds_are_read(ds_format: str, text: str, expected: datetime) -> None:
    assert parse(ds_format, text) == [expected]


def test_digits_that_touch_must_have_their_full_width() -> None:
    assert parse("%Y%m%d", "2000111", "2000011", "20001101") == [None, None, datetime(2000, 11, 1)]


@pytest.mark.parametrize(
    ("ds_format", "day"), [("%Y-%m-%d %H:%M:%S", "2000-12-31 23:59:"), ("%d%m%Y%H%M%S", "311220002359")]
)
def test_a_leap_second_is_not_moved_to_the_next_day(ds_format: str, day: str) -> None:
    assert parse(ds_format, f"{day}60", f"{day}59") == [None, datetime(2000, 12, 31, 23, 59, 59)]


def test_a_pattern_is_text_and_not_a_regular_expression() -> None:
    assert parse("%Y.%m.%d", "2000-01-05", "2000.01.05") == [None, datetime(2000, 1, 5)]


@pytest.mark.parametrize(
    ("ds_format", "rule"),
    [
        ("%Q", "%Q cannot be used"),
        ("%Y-%m-%", "cannot be used"),
        ("%Y-%m-%d %s", "%s cannot be used"),
        ("date", "one year"),
        ("%Y %d", "one month"),
        ("%Y %y %m", "one year"),
        ("%Y-%m-%d %d", "each directive once"),
        ("%Y-%m-%b", "one month"),
        ("%Y-%j-%d", "at most one day"),
        ("%Y-%m-%d %H", "the hour and the minute"),
        ("%Y-%m %H:%M", "a day beside the hour"),
        ("%Y-%m-%d %I:%M", "%p beside %I"),
        ("%Y-%m-%d %H:%M %p", "%p beside %I"),
        ("%Y-%m-%d %z", "hour and minute beside"),
    ],
)
def test_a_pattern_that_names_no_moment_is_refused(ds_format: str, rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        time_format(ds_format)


moments = st.datetimes(datetime(1000, 1, 2), datetime(9999, 12, 30))
offsets = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(moment=moments, zone=st.none() | offsets, separator=st.sampled_from(["T", " "]))
def test_python_and_we_agree_on_iso_8601(moment: datetime, zone: timezone | None, separator: str) -> None:
    aware = moment.replace(tzinfo=zone)
    expected = moment if zone is None else aware.astimezone(UTC).replace(tzinfo=None)
    assert parse(None, aware.isoformat(separator)) == [expected]
    assert parse(None, aware.isoformat(separator), in_utc=False) == [moment]


@given(moment=moments, ds_format=st.sampled_from(["%m/%d/%Y", "%d.%m.%Y %H:%M:%S", "%Y%m%d", "%d %b %Y"]))
def test_python_and_we_agree_on_patterns(moment: datetime, ds_format: str) -> None:
    text = moment.strftime(ds_format)
    assert parse(ds_format, text) == [datetime.strptime(text, ds_format)]


@given(moment=moments, zone=offsets, ds_format=st.sampled_from(["%Y%m%d %H:%M%z", "%z-%d%m%H/%Y %M"]))
def test_python_and_we_agree_on_local_clocks(moment: datetime, zone: timezone, ds_format: str) -> None:
    aware = moment.replace(second=0, microsecond=0, tzinfo=zone)
    (local,) = parse(ds_format, aware.strftime(ds_format), in_utc=False)
    assert local == aware.replace(tzinfo=None)


@pytest.mark.parametrize("in_utc", [True, False])
def test_an_offset_that_no_zone_has_is_refused(in_utc: bool) -> None:
    assert parse(None, "2000-01-01T00:00+99:00", in_utc=in_utc) == [None]


@given(st.text("0123456789-+:TZ ./", max_size=25))
def test_whatever_is_read_python_reads_too(text: str) -> None:
    (moment,) = parse(None, text)
    if moment is not None:
        assert datetime.fromisoformat(text[:10]).year == int(text[:4])


def test_a_zone_is_seen_only_where_there_is_one() -> None:
    texts = ["2000-01-01", "2000-01-01T00:00", "2000-01-01T00:00Z", "2000-01-01 00:00:00-05:00", ""]
    seen = time_format(None).has_zone(pl.col("text"))
    assert pl.DataFrame({"text": texts}).select(seen).to_series().to_list() == [
        False,
        False,
        True,
        True,
        False,
    ]


def test_fractions_of_seconds_and_names_of_weekdays_are_read() -> None:
    texts = pl.DataFrame({"text": ["Mon 01-JAN-24 01.02.03.500000 PM", "Tue 01-JAN-24 01.02.03.5 PM"]})
    formats = time_format("%a %d-%b-%y %I.%M.%S.%f %p")
    read = texts.select(formats.parse(pl.col("text"))).to_series().to_list()
    assert read == [datetime(2024, 1, 1, 13, 2, 3, 500_000), None], "it was no Tuesday"


@pytest.mark.parametrize("ds_format", ["%Y-%m-%d %H:%M.%f", "%Y-%m-%d %H:%M:%S%f"])
def test_a_fraction_needs_a_point_and_a_second_before_it(ds_format: str) -> None:
    with pytest.raises(ParameterError, match="%f"):
        time_format(ds_format)
