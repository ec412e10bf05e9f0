"""A date far away from all others is accepted with a warning that names it; ordinary gaps have none."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pytest

from tests.app.datasets.conftest import Shop

HEADER = "unique_id,ds,y\n"
YEAR = [f"a,{date(2024, 1, 1) + timedelta(days=d)},1\n" for d in range(366)]
FILL = {"method": "zero", "start": "dataset"}


def found(report: dict[str, Any]) -> list[tuple[int, str]]:
    return [(w["count"], w["message"]) for w in report["warnings"] if w["code"] == "isolated_period"]


@pytest.mark.parametrize("fill", [FILL, None])
def test_a_mistyped_year_is_named_with_its_row(shop: Shop, fill: dict[str, str] | None) -> None:
    name = shop.series(fill=fill)
    file = HEADER + "".join([*YEAR[:100], "b,2042-01-01,1\n", *YEAR[100:]])
    outcome = shop.upload(name, file, dry_run=True)
    assert outcome.status_code == 200
    ((count, message),) = found(outcome.json()["report"])
    assert count == 1
    assert "the 6,209 periods between 2024-12-31 and 2042-01-01" in message
    assert "values from 2042-01-01 on: 1 of 367 (the first in row 101); is a date mistyped?" in message
    assert ("Filling in adds" in message) == (fill is not None)
    assert found(shop.accepted(name, file)) == [(count, message)]


def test_one_at_each_end_makes_two_warnings(shop: Shop) -> None:
    file = HEADER + "a,1924-01-01,1\n" + "".join(YEAR) + "a,2034-01-01,1\na,2042-01-01,1\n"
    early, late = found(shop.accepted(shop.series(), file))
    assert "values up to 1924-01-01: 1 of 369 (the first in row 1)" in early[1]
    assert "between 2034-01-01 and 2042-01-01" in late[1]


def test_an_append_names_its_own_rows_and_no_others(shop: Shop) -> None:
    name = shop.series(fill=FILL)
    assert found(shop.accepted(name, HEADER + "".join(YEAR))) == []
    late = found(shop.accepted(name, HEADER + "a,2025-01-01,1\nb,2052-01-02,1\n", mode="append"))
    assert "row 2" in late[0][1]
    again = found(shop.accepted(name, HEADER + "a,2025-01-02,1\n", mode="append"))
    assert "2052-01-02" in again[0][1]
    assert "row" not in again[0][1]


@pytest.mark.parametrize(
    "rows",
    [
        YEAR[:1],
        ["a,2024-01-01,1\n", "a,2034-01-01,1\n"],
        [row for row in YEAR if row[10:12] == "01"],
        YEAR[:100] + YEAR[131:],
        YEAR[::50],
        YEAR[:20] + YEAR[50:],
    ],
    ids=["one", "two", "monthly", "a month absent", "rare", "thirty absent"],
)
def test_ordinary_gaps_have_no_warning(shop: Shop, rows: list[str]) -> None:
    assert found(shop.accepted(shop.series(fill=FILL), HEADER + "".join(rows))) == []
