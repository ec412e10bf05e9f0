"""Definitions of datasets that cannot be: each fault is said, with its place in the request."""

from __future__ import annotations

from typing import Any

import pytest

from app.http.request_body import MAX_FORM_BYTES
from tests.app.datasets.conftest import Shop

SALES = {"name": "sales", "kind": "series", "frequency": "D"}


@pytest.mark.parametrize(
    ("definition", "locations"),
    [
        ({"name": "with space"}, ["body.name"]),
        ({"name": ".hidden"}, ["body.name"]),
        ({"name": "x" * 101}, ["body.name"]),
        ({"kind": "cube"}, ["body.kind"]),
        ({"kind": ["series"]}, ["body.kind"]),
        ({"frequency": "Y"}, ["body.frequency"]),
        ({"frequency": None, "duplicates": "max"}, ["body.frequency", "body.duplicates"]),
        ({"fill": {"method": "linear"}}, ["body.fill.method"]),
        ({"fill": {"method": "zero", "start": "now"}}, ["body.fill.start"]),
        ({"columns": {"unique_id": "y"}}, ["body.columns"]),
        ({"columns": {"ds": ""}}, ["body.columns.ds"]),
        ({"columns": {"future": ["price"], "past": ["price"]}}, ["body.columns"]),
        ({"columns": {"y": "sold", "attributes": ["y"]}}, ["body.columns"]),
        ({"ds_format": "%d of %Q"}, ["body.ds_format"]),
        ({"ds_format": "%H:%M"}, ["body.ds_format"]),
        ({"colour": "red"}, ["body.colour"]),
        ({"kind": "regression"}, ["body.columns", "body.frequency"]),
        ({"kind": "regression", "columns": {"features": []}}, ["body.columns.features", "body.frequency"]),
        (
            {"kind": "regression", "columns": {"features": ["y", "x", "x"]}},
            ["body.columns", "body.frequency"],
        ),
    ],
)
def test_every_fault_of_a_definition_is_placed(
    shop: Shop, definition: dict[str, Any], locations: list[str]
) -> None:
    before = shop.client.get("/v1/datasets").json()
    answer = shop.client.post("/v1/datasets", json={**SALES, **definition})
    assert answer.status_code == 422
    assert answer.json()["code"] == "invalid_request"
    assert [e["location"] for e in answer.json()["errors"]] == locations
    assert shop.client.get("/v1/datasets").json() == before


@pytest.mark.parametrize(
    ("kind", "detail", "message", "near"),
    [
        ({}, "is missing", "must be 'series' or 'regression'", []),
        (
            {"kind": "serie"},
            "no such kind",
            "must be 'series' or 'regression'; did you mean 'series'?",
            ["series"],
        ),
        ({"kind": "cube"}, "no such kind", "must be 'series' or 'regression'", []),
        ({"kind": 3}, "no such kind", "must be 'series' or 'regression'", []),
        ({"kind": None}, "no such kind", "must be 'series' or 'regression'", []),
    ],
)
def test_a_kind_that_is_not_there_is_told_from_one_that_does_not_exist(
    shop: Shop, kind: dict[str, Any], detail: str, message: str, near: list[str]
) -> None:
    answer = shop.client.post("/v1/datasets", json={"name": "sales", "frequency": "D", **kind}).json()
    assert detail in answer["detail"]
    assert answer["errors"][0]["message"] == message
    assert answer["suggestions"] == near


@pytest.mark.parametrize(
    ("columns", "locations"),
    [
        ({"unique_id": "y"}, ["body.kind", "body.columns", "body.name"]),
        ({"features": []}, ["body.kind", "body.columns.features", "body.name", "body.frequency"]),
    ],
)
def test_without_a_kind_all_other_faults_are_told_too(
    shop: Shop, columns: dict[str, Any], locations: list[str]
) -> None:
    form = {"name": "with space", "frequency": "D", "columns": columns}
    answer = shop.client.post("/v1/datasets", json=form).json()
    assert [fault["location"] for fault in answer["errors"]] == locations


def test_a_fault_is_said_in_its_own_words(shop: Shop) -> None:
    answer = shop.client.post("/v1/datasets", json={**SALES, "columns": {"unique_id": "y"}})
    assert answer.json()["errors"][0]["message"] == "unique_id, ds and y must be three different columns"


@pytest.mark.parametrize(
    ("definition", "near"),
    [
        ({"frequncy": "W"}, "frequency"),
        ({"columns": {"unqiue_id": "sku"}}, "unique_id"),
        ({"fill": {"method": "zero", "form": "series"}}, None),
        ({"kind": "regression", "columns": {"features": ["x"], "feature": ["z"]}}, "features"),
    ],
)
def test_an_unknown_field_comes_with_its_near_match(
    shop: Shop, definition: dict[str, Any], near: str | None
) -> None:
    answer = shop.client.post("/v1/datasets", json={**SALES, **definition})
    assert answer.status_code == 422
    message = answer.json()["errors"][0]["message"]
    expected = "there are: method, start" if near is None else f"did you mean {near!r}?"
    assert message == f"there is no such field; {expected}"


def test_a_body_that_is_no_json_object_is_refused(shop: Shop) -> None:
    headers = {"content-type": "application/json"}
    for body in (b"", b"{", b"[]", b"1", b"\xff"):
        assert shop.client.post("/v1/datasets", content=body, headers=headers).status_code == 400
    assert (
        shop.client.post("/v1/datasets", content=b"{}", headers={"content-type": "text/csv"}).status_code
        == 415
    )


def test_a_body_over_the_limit_is_refused(shop: Shop) -> None:
    body = b'{"name": "' + b"x" * MAX_FORM_BYTES + b'"}'
    answer = shop.client.post("/v1/datasets", content=body, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")


@pytest.mark.parametrize("text", ["\\ud800", "\\u0000"])
def test_characters_that_cannot_be_stored_are_refused(shop: Shop, text: str) -> None:
    body = f'{{"name": "n", "kind": "series", "frequency": "D", "columns": {{"y": "{text}"}}}}'
    answer = shop.client.post("/v1/datasets", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 422
    assert [e["location"] for e in answer.json()["errors"]] == ["body.columns.y"]
