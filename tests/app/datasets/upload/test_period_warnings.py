"""An upload says which series ended long ago, and for which periods times were taken."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pytest

from tests.app.datasets.conftest import Shop

START = date(2010, 2, 5)  # a Friday


def weekly(name: str, n_weeks: int) -> str:
    return "".join(f"{name},{START + timedelta(weeks=week)},1\n" for week in range(n_weeks))


def warned(report: dict[str, Any], code: str) -> list[tuple[int, str]]:
    return [(w["count"], w["message"]) for w in report["warnings"] if w["code"] == code]


@pytest.mark.parametrize(("n_weeks", "is_over"), [(148, False), (147, True)])
def test_series_that_ended_more_than_a_season_before_are_warned_of(
    shop: Shop, n_weeks: int, is_over: bool
) -> None:
    file = "unique_id,ds,y\n" + weekly("on", 200) + weekly("over", n_weeks)
    assert bool(warned(shop.accepted(shop.series(frequency="W"), file), "series_ended")) == is_over


def test_the_warning_names_the_first_series_that_ended_and_when(shop: Shop) -> None:
    file = "unique_id,ds,y\n" + weekly("on", 200) + weekly("gone", 100) + weekly("over", 140)
    ((count, message),) = warned(shop.accepted(shop.series(frequency="W"), file), "series_ended")
    assert count == 2
    assert message.startswith(
        "2 of 3 series end more than 52 periods before the dataset, which ends with 2013-11-25; the first is "
        "'gone', which ends with 2011-12-26. Each is forecast from its own end on."
    )


def test_series_that_are_filled_end_together(shop: Shop) -> None:
    file = "unique_id,ds,y\n" + weekly("on", 200) + weekly("gone", 100)
    name = shop.series(frequency="W", fill={"method": "zero"})
    assert warned(shop.accepted(name, file), "series_ended") == []


def test_the_day_that_stands_for_a_week_is_named(shop: Shop) -> None:
    report = shop.accepted(shop.series(frequency="W"), "unique_id,ds,y\n" + weekly("a", 3))
    ((count, message),) = warned(report, "moved_to_period_start")
    assert count == 3
    assert message == (
        "Times inside a period count for the whole period: 2010-02-05 (row 1) for the one that begins on "
        "Monday, 2010-02-01. Forecasts carry the beginnings of periods."
    )
