"""Appends to a dataset whose last period was dropped, as it was not over."""

from __future__ import annotations

from typing import Any

import pytest

from app.datasets.upload import streamed
from tests.app.datasets.conftest import Shop


def rows(first: int, last: int, *ids: str) -> str:
    days = range(first, last + 1)
    return "".join(f"{one},2024-01-{day:02d},{day}\n" for one in ids or ("a",) for day in days)


def days(first: int, last: int, *ids: str) -> str:
    return "unique_id,ds,y\n" + rows(first, last, *ids)


def weekly(shop: Shop, policy: str = "drop", duplicates: str = "sum") -> str:
    return shop.series(frequency="W", duplicates=duplicates, partial_last=policy)


def refusal(shop: Shop, name: str, text: str) -> Any:
    answer = shop.upload(name, text, mode="append")
    assert answer.status_code == 422, answer.text
    (fault,) = answer.json()["errors"]
    assert fault["code"] == "dropped_period"
    assert "dropped_period" in {finding["code"] for finding in answer.json()["report"]["findings"]}
    return fault


@pytest.mark.parametrize("is_streamed", [False, True])
def test_the_rest_of_a_period_that_was_dropped_is_refused(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, is_streamed: bool
) -> None:
    monkeypatch.setattr(streamed, "STREAMED_FROM_BYTES", 0 if is_streamed else 10**9)
    name = weekly(shop)
    report = shop.accepted(name, days(1, 17))
    assert report["dropped_periods"] == [
        {"period": "2024-01-15", "first": "2024-01-15T00:00:00", "last": "2024-01-17T00:00:00", "rows": 3}
        | {"version": None}
    ]
    fault = refusal(shop, name, days(18, 21))
    assert (fault["row"], fault["value"]) == (1, "a")
    assert fault["message"] == (
        "rows of the period 2024-01-15, from 2024-01-15 on, were dropped by the upload of version 1, as the "
        "period was not over (`partial_last`), and this file has its rows from 2024-01-18 on: send the whole "
        "period again, or all data with `mode=full`"
    )
    report = shop.accepted(name, days(15, 21), mode="append")
    assert (report["dropped_periods"], report["version"]["last"]) == ([], "2024-01-15")
    assert shop.accepted(name, days(18, 18, "b"), mode="append")["dropped_periods"] == []


def test_a_dropped_period_is_remembered_until_its_rows_were_sent_again(shop: Shop) -> None:
    name = weekly(shop)
    shop.accepted(name, days(1, 17, "a", "b"))
    shop.accepted(name, days(8, 10, "c"), mode="append")
    (left,) = shop.accepted(name, days(15, 21, "a"), mode="append")["dropped_periods"]
    assert (left["period"], left["rows"], left["version"]) == ("2024-01-15", 3, 1)
    assert "version 1" in refusal(shop, name, days(18, 21, "b"))["message"]
    assert shop.accepted(name, days(15, 21, "b"), mode="append")["dropped_periods"] == []


def test_a_period_may_begin_on_the_day_on_which_its_dropped_rows_began(shop: Shop) -> None:
    name = weekly(shop)
    shop.accepted(name, days(2, 7) + rows(9, 14) + rows(16, 17))
    assert shop.accepted(name, days(16, 21), mode="append")["dropped_periods"] == []


def test_a_period_that_is_dropped_again_keeps_its_first_day(shop: Shop) -> None:
    name = weekly(shop)
    shop.accepted(name, days(1, 16))
    (left,) = shop.accepted(name, days(8, 14, "b") + rows(17, 18), mode="append")["dropped_periods"]
    assert (left["first"][:10], left["last"][:10], left["rows"]) == ("2024-01-15", "2024-01-18", 4)


def test_an_upload_of_all_data_forgets_what_was_dropped_before(shop: Shop) -> None:
    name = weekly(shop)
    shop.accepted(name, days(1, 17))
    assert shop.accepted(name, days(1, 21))["dropped_periods"] == []


@pytest.mark.parametrize(("duplicates", "whole"), [("sum", 126.0), ("mean", 18.0), ("last", 21.0)])
def test_the_rest_of_a_period_that_was_kept_is_put_together_with_it(
    shop: Shop, duplicates: str, whole: float
) -> None:
    name = weekly(shop, "keep", duplicates)
    shop.accepted(name, days(1, 17))
    assert shop.upload(name, days(18, 21), mode="append").status_code == 409
    report = shop.accepted(name, days(18, 21), mode="append", overlap="accept")
    assert report["dropped_periods"] == []
    told = {one["code"]: one for one in report["inspection"]["findings"]}
    assert told["history_changed"]["samples"][0]["value"].endswith(f"→ {whole:g}")


@pytest.mark.parametrize("last", [15, 17])
def test_an_append_that_ends_within_its_only_period_is_left_out(shop: Shop, last: int) -> None:
    name = weekly(shop)
    shop.accepted(name, days(1, 14))
    answer = shop.upload(name, days(15, last), mode="append")
    assert (answer.status_code, answer.json()["errors"][0]["code"]) == (422, "no_rows")
    told = {one["code"]: one["count"] for one in answer.json()["report"]["findings"]}
    assert told["partial_last"] == last - 14
    report = shop.accepted(name, days(15, 21), mode="append")
    assert (report["dropped_periods"], report["version"]["last"]) == ([], "2024-01-15")


@pytest.mark.parametrize("is_streamed", [False, True])
def test_an_append_that_ends_within_its_only_period_is_warned_of(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, is_streamed: bool
) -> None:
    monkeypatch.setattr(streamed, "STREAMED_FROM_BYTES", 0 if is_streamed else 10**9)
    name = weekly(shop, "keep")
    shop.accepted(name, days(1, 14))
    for first in (15, 16):
        report = shop.accepted(name, days(first, first), mode="append", overlap="accept")["inspection"]
        (finding,) = (one for one in report["findings"] if one["code"] == "partial_last")
        assert (finding["severity"], finding["count"]) == ("warning", 1)
    report = shop.accepted(name, days(17, 21), mode="append", overlap="accept")["inspection"]
    assert "partial_last" not in {one["code"] for one in report["findings"]}


def test_a_row_that_was_forgotten_is_not_of_a_partial_period(shop: Shop) -> None:
    name = weekly(shop)
    shop.accepted(name, days(1, 14))
    report = shop.accepted(name, days(9, 9), mode="append", overlap="accept")
    assert (report["dropped_periods"], report["inspection"]["rows_dropped"]) == ([], {})
