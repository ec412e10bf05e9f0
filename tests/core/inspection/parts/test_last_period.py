"""Whether a file ends within its last period, told by its times and by those that are stored."""

from __future__ import annotations

from datetime import datetime, timedelta

import polars as pl
import pytest

from ccmtl_core.inspection.parts.last_period import last_times, partial_period
from ccmtl_core.series.calendar import Frequency


def times(first: str, last: str, *, hours: int = 24, weekdays: str = "1234567") -> list[datetime]:
    """Times so many hours apart, both ends included, on some weekdays."""
    moment, end = datetime.fromisoformat(first), datetime.fromisoformat(last)
    found = []
    while moment <= end:
        found += [moment] if str(moment.isoweekday()) in weekdays else []
        moment += timedelta(hours=hours)
    return found


def on(*days: str) -> list[datetime]:
    return [datetime.fromisoformat(day) for day in days]


def opened(first: str, last: str, begin: int = 8, end: int = 18) -> list[datetime]:
    """Each hour in which a shop is open."""
    return [moment for moment in times(first, last, hours=1) if begin <= moment.hour < end]


JAN_FEB = times("2024-01-01", "2024-02-29")
MONTHS = on("2024-01-01", "2024-02-01")
OPEN = opened("2024-03-01", "2024-03-09T23:00")
CASES: dict[str, tuple[str, list[datetime], list[datetime], str | None]] = {
    "half a month after whole ones": ("MS", JAN_FEB, times("2024-03-01", "2024-03-15"), "2024-03-01"),
    "one day of a month after whole ones": ("MS", JAN_FEB, on("2024-03-01"), "2024-03-01"),
    "the rest of a month": ("MS", JAN_FEB + times("2024-03-01", "2024-03-15"), on("2024-03-31"), None),
    "a whole month after whole ones": ("MS", JAN_FEB, times("2024-03-01", "2024-03-31"), None),
    "a correction within what is stored": ("MS", JAN_FEB, on("2024-01-10"), None),
    "another series of a stored month": ("MS", JAN_FEB, times("2024-02-01", "2024-02-10"), None),
    "half a month alone": ("MS", [], times("2024-03-01", "2024-03-15"), "2024-03-01"),
    "a month alone": ("ME", [], times("2024-03-01", "2024-03-31"), None),
    "a month told by one date": ("MS", [], on("2024-03-01"), None),
    "a month told by one date as those before": ("MS", MONTHS, on("2024-03-01"), None),
    "days after months told by one date": ("MS", MONTHS, times("2024-03-01", "2024-03-09"), "2024-03-01"),
    "a last day, and days of the next month": ("MS", [], times("2024-03-31", "2024-04-09"), "2024-04-01"),
    "a month whose last days are a weekend": (
        "MS", [], times("2024-06-03", "2024-06-28", weekdays="12345"), None
    ),
    "a month without its last working day": (
        "MS", [], times("2024-05-01", "2024-05-30", weekdays="12345"), "2024-05-01"
    ),
    "a month to a Saturday, closed then, after others": (
        "MS", [], times("2024-07-01", "2024-08-30", weekdays="12345"), None
    ),
    "each second week of a month": ("MS", [], on("2024-03-08", "2024-03-22"), None),
    "three days of a week after whole ones": (
        "W", times("2024-01-01", "2024-01-28"), times("2024-01-29", "2024-01-31"), "2024-01-29"
    ),
    "three days of a week alone": ("W", [], times("2024-01-29", "2024-01-31"), "2024-01-29"),
    "working days of a week alone": ("W", [], times("2024-01-29", "2024-02-02"), None),
    "a week to Saturday of a shop closed on Sundays": (
        "W-SUN", times("2024-01-01", "2024-01-28", weekdays="123456"), times("2024-01-29", "2024-02-03"), None
    ),
    "two months of a quarter": ("QS", [], on("2024-01-01", "2024-02-01"), "2024-01-01"),
    "three months of a quarter": ("QS", [], on("2024-01-01", "2024-02-01", "2024-03-01"), None),
    "quarters of a year": ("YE", [], on("2024-01-01", "2024-04-01", "2024-07-01", "2024-10-01"), None),
    "half a day of hours alone": ("D", [], times("2024-03-01", "2024-03-01T11:00", hours=1), "2024-03-01"),
    "a day of hours alone": ("D", [], times("2024-03-01", "2024-03-01T23:00", hours=1), None),
    "the open hours of a day alone": ("D", [], opened("2024-03-01", "2024-03-01T23:00"), None),
    "a morning after open days": ("D", OPEN, opened("2024-03-10", "2024-03-10T11:00"), "2024-03-10"),
    "the open hours after open days": ("D", OPEN, opened("2024-03-10", "2024-03-10T23:00"), None),
    "a day a little shorter than uneven ones": (
        "D", [*OPEN, *opened("2024-03-08", "2024-03-08T23:00", end=20)],
        opened("2024-03-10", "2024-03-10T16:00"), None,
    ),
    "a Friday after a Friday with a weekend": (
        "B", opened("2024-03-01", "2024-03-07T23:00"), opened("2024-03-08", "2024-03-08T23:00"), None
    ),
    "quarters of hours": (
        "h", times("2024-03-01", "2024-03-01T09:45", hours=1) + on("2024-03-01T00:15", "2024-03-01T00:30"),
        on("2024-03-01T10:00"), None,
    ),
    "dates alone at days": ("D", [], times("2024-03-01", "2024-03-15"), None),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_partial_last_period_is_told(name: str) -> None:
    frequency, stored, sent, expected = CASES[name]
    of = Frequency(frequency)
    known = last_times(pl.Series("ds", stored, dtype=pl.Datetime("us")), of)
    period = partial_period(pl.Series("ds", sent, dtype=pl.Datetime("us")), of, known)
    begin = None if expected is None else of.to_period(expected)
    assert period == begin, None if period is None else of.text(period)


def test_the_times_of_the_last_nine_periods_are_kept() -> None:
    days = pl.Series(times("2023-01-01", "2023-12-31"))
    kept = last_times(days, Frequency.MONTH)
    assert (kept[0], kept[-1]) == (datetime(2023, 4, 1), datetime(2023, 12, 31))
    assert len(last_times(pl.Series(times("2023-01-01", "2023-12-31", hours=6)), Frequency.YEAR)) == 365
    assert len(last_times(days, Frequency.INTEGER)) == 0
