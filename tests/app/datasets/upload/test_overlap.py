"""Appends with rows that the dataset may have already: told, and refused unless they are called new."""

from __future__ import annotations

from typing import Any

import pytest

from tests.app.datasets.conftest import Shop

JANUARY = "unique_id,ds,y\na,2000-01-01,1\na,2000-01-02,2\nb,2000-01-02,3\n"
FEBRUARY = "a,2000-02-01,4\nc,2000-01-01,5\n"
CUMULATIVE = JANUARY + FEBRUARY
ROWS = "unique_id,y,price\na,1,2\na,1,2\nb,3,2.5\n"


def without_request(problem: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in problem.items() if key != "request_id"}


def refused(shop: Shop, name: str, text: str, **params: Any) -> Any:
    """Append what must be refused, as must a dry run of it; return the problem."""
    before = shop.files()
    dry = shop.upload(name, text, mode="append", dry_run=True, **params)
    answer = shop.upload(name, text, mode="append", **params)
    assert answer.status_code == 409, answer.text
    assert dry.status_code == 409
    assert without_request(dry.json()) == without_request(answer.json())
    assert shop.files() == before
    return answer.json()


@pytest.mark.parametrize(("aggregation", "effect"), [("sum", "added to"), ("mean", "averaged with")])
def test_a_cumulative_file_is_not_appended(shop: Shop, aggregation: str, effect: str) -> None:
    name = shop.series(aggregation=aggregation, fill={"method": "zero"})
    shop.accepted(name, JANUARY)
    problem = refused(shop, name, CUMULATIVE)
    assert (problem["code"], problem["error_count"]) == ("overlapping_rows", 3)
    assert "3 of 5 rows" in problem["detail"]
    assert "row 1 (series 'a', period 2000-01-01)" in problem["detail"]
    assert f"they would be {effect} the values there" in problem["detail"]
    assert "mode=full" in problem["detail"]
    assert "overlap=accept" in problem["detail"]
    (first,) = problem["errors"]
    assert (first["row"], first["value"]) == (1, "a")


def test_every_earlier_segment_counts(shop: Shop) -> None:
    name = shop.series(aggregation="sum")
    shop.accepted(name, JANUARY)
    shop.accepted(name, "unique_id,ds,y\n" + FEBRUARY, mode="append")
    problem = refused(shop, name, "unique_id,ds,y\nd,2000-02-01,1\nc,2000-01-01,1\nc,2000-01-01T09:00,1\n")
    assert "2 of 3 rows" in problem["detail"]
    assert "row 2 (series 'c', period 2000-01-01)" in problem["detail"]


def test_rows_that_the_sender_calls_new_are_merged_and_counted(shop: Shop) -> None:
    name = shop.series(aggregation="sum")
    shop.accepted(name, JANUARY)
    further = "unique_id,ds,y\na,2000-01-02,7\na,2000-01-03,1\na,2000-01-02T18:00,8\na,2000-01-03T18:00,1\n"
    report = shop.accepted(name, further, mode="append", overlap="accept")
    assert (report["overlapping_rows"], report["aggregated_rows"]) == (2, 3)
    assert report["version"]["values"] == 4
    told = {warning["code"]: warning for warning in report["warnings"]}
    assert told.keys() == {"overlapping_rows", "history_changed", "short_series"}
    warning = told["overlapping_rows"]
    assert warning["count"] == 2
    assert "row 1 (series 'a', period 2000-01-02)" in warning["message"]
    assert "were added to" in warning["message"]


def test_new_periods_and_new_series_are_no_overlap(shop: Shop) -> None:
    name = shop.series(aggregation="sum", fill={"method": "zero"})
    shop.accepted(name, JANUARY)
    report = shop.accepted(name, "unique_id,ds,y\n" + FEBRUARY, mode="append")
    assert (report["overlapping_rows"], report["aggregated_rows"]) == (0, 0)
    assert [warning["code"] for warning in report["warnings"]] == ["short_series"]


def test_a_full_upload_overlaps_with_nothing(shop: Shop) -> None:
    name = shop.series(aggregation="sum")
    shop.accepted(name, JANUARY)
    assert shop.accepted(name, CUMULATIVE, mode="full")["overlapping_rows"] == 0


def test_without_an_aggregation_nothing_can_be_accepted(shop: Shop) -> None:
    name = shop.series()
    shop.accepted(name, JANUARY)
    answer = shop.upload(name, CUMULATIVE, mode="append", overlap="accept")
    assert answer.status_code == 422
    message = answer.json()["errors"][0]["message"]
    assert "2000-01-01" in message
    assert "`duplicates`" in message


@pytest.mark.parametrize("duplicates", ["sum", "error"])
def test_the_very_rows_of_a_segment_are_never_appended(shop: Shop, duplicates: str) -> None:
    name = shop.series(duplicates=duplicates)
    shop.accepted(name, JANUARY)
    shop.accepted(name, "unique_id,ds,y\n" + FEBRUARY, mode="append")
    for text, version in ((JANUARY, "1"), ("unique_id,ds,y\n" + FEBRUARY, "2")):
        problem = refused(shop, name, text, overlap="accept")
        assert (problem["code"], problem["suggestions"]) == ("already_appended", [version])


def test_rows_of_a_regression_that_hold_an_earlier_upload_are_refused(shop: Shop) -> None:
    name = shop.regression(["price"])
    shop.accepted(name, "unique_id,y,price\nz,1,1\n")
    shop.accepted(name, ROWS, mode="append")
    problem = refused(shop, name, "unique_id,y,price\nb,3,2.5\na,1,2\nc,1,1\na,1,2.0\n")
    assert problem["code"] == "overlapping_rows"
    assert "3 of 4 rows equal" in problem["detail"]
    assert "row 1 (task 'b')" in problem["detail"]
    report = shop.accepted(name, ROWS + "c,1,1\n", mode="append", overlap="accept")
    assert (report["overlapping_rows"], report["aggregated_rows"], report["version"]["values"]) == (3, 0, 8)


def test_some_equal_rows_of_a_regression_are_accepted_with_a_warning(shop: Shop) -> None:
    name = shop.regression(["price"])
    shop.accepted(name, ROWS)
    report = shop.accepted(name, "unique_id,y,price\nc,9,9\na,1,2\nb,3,2.5\nb,3,2.5\n", mode="append")
    assert report["overlapping_rows"] == 2
    (warning,) = report["warnings"]
    assert (warning["code"], warning["count"]) == ("overlapping_rows", 2)
    assert "row 2 (task 'a')" in warning["message"]
