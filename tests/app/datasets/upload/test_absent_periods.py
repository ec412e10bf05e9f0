"""An upload says which periods its series lack, where nothing fills them in."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.app.datasets.conftest import Shop

HEADER = "unique_id,ds,y\n"
START = datetime(2024, 1, 1)  # a Monday
WORKDAYS = [24 * (7 * week + day) for week in range(26) for day in range(5)]
BUT_SUMMER = [24 * 31 * month for month in range(24) if (START + timedelta(31 * month)).month not in (7, 8)]


def rows(hours: list[int], name: str = "a") -> str:
    return "".join(f"{name},{(START + timedelta(hours=hour)).isoformat()},1\n" for hour in hours)


def told(report: dict[str, Any]) -> tuple[int, str]:
    (warning,) = [w for w in report["warnings"] if w["code"] == "absent_periods"]
    return warning["count"], warning["message"]


def test_weekdays_that_no_series_has_are_named_with_the_remedies(shop: Shop) -> None:
    file = HEADER + rows(WORKDAYS) + rows(WORKDAYS, "b")
    count, message = told(shop.accepted(shop.series(), file))
    assert count == 2 * 50
    assert message.startswith(f"100 of the {2 * 180} periods between the first and the last value")
    assert "No series has a value on Saturdays, on Sundays (50 of 180 periods)." in message
    for remedy in ('`"fill": {"method": "zero"}`', "few lags", '`"frequency": "W"`'):
        assert remedy in message


def test_a_holiday_beside_the_weekends_is_named_by_its_date(shop: Shop) -> None:
    file = HEADER + rows([hour for hour in WORKDAYS if hour != WORKDAYS[7]])
    count, message = told(shop.accepted(shop.series(), file))
    assert count == 51
    assert "on Saturdays, on Sundays, in 1 other period, first 2024-01-10 (51 of 180 periods)" in message


def test_gaps_that_other_series_fill_are_counted(shop: Shop) -> None:
    days = [24 * day for day in range(20)]
    file = HEADER + rows(days) + rows([days[2], days[5]], "b") + rows(days[:3], "c")
    count, message = told(shop.accepted(shop.series(), file))
    assert (count, "No series" in message) == (2, False)


def test_an_append_speaks_of_the_whole_version(shop: Shop) -> None:
    name = shop.series()
    shop.accepted(name, HEADER + rows(WORKDAYS[:5]))
    count, message = told(shop.accepted(name, HEADER + rows(WORKDAYS[5:]), mode="append"))
    assert (count, "on Saturdays, on Sundays" in message) == (50, True)


@pytest.mark.parametrize(
    ("frequency", "hours", "words"),
    [
        ("h", [24 * day + hour for day in range(5) for hour in range(1, 23)], "at 00:00, at 23:00 (8 of 118"),
        ("W", [24 * 7 * week for week in range(9) if week != 4], "in 1 period, first 2024-01-29 (1 of 9"),
        ("MS", BUT_SUMMER, "in July, in August"),
        ("D", [0, 24, 96], "in 2 periods, first 2024-01-03 (2 of 5"),
    ],
)
def test_each_frequency_has_its_words(shop: Shop, frequency: str, hours: list[int], words: str) -> None:
    assert words in told(shop.accepted(shop.series(frequency=frequency), HEADER + rows(hours)))[1]


@pytest.mark.parametrize("fill", [None, {"method": "zero"}])
def test_nothing_is_said_where_nothing_is_absent_or_it_is_filled(
    shop: Shop, fill: dict[str, str] | None
) -> None:
    days = [24 * day for day in range(20)]
    file = rows(days) + rows(days[5:15], "b") + (rows(days[::3], "c") if fill else "")
    warnings = shop.accepted(shop.series(fill=fill), HEADER + file)["warnings"]
    assert {one["code"] for one in warnings} <= {"constant_series", "mixed_frequencies", "short_series"}
