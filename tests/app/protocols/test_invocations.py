"""What MLflow's clients send to ``/invocations``: four forms of JSON, and CSV."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.persistence.database import Database
from tests.support.models import add_version, trained

ROWS = [
    {"unique_id": "0001", "price": 1.0, "promotion": 2},
    {"unique_id": "b", "price": 3.0, "promotion": 4},
    {"unique_id": "c", "price": 5.0, "promotion": 6},
]
COLUMNS = {name: [row[name] for row in ROWS] for name in ROWS[0]}
SPLIT = {"columns": list(COLUMNS), "data": [list(row.values()) for row in ROWS]}
ANSWER = {"predictions": [5.0, 9.0, None], "status": ["ok", "ok", "unknown_unique_id"]}
URL = "/v1/models/sales/invocations"
CSV = {"Content-Type": "text/csv; charset=utf-8"}


@pytest.fixture(scope="module")
def database_kind() -> str:
    return "sqlite"


@pytest.fixture(autouse=True)
def _published(database: Database) -> None:
    add_version(
        database, trained([[1.0, 2.0], [3.0, 0.0]], ["0001", "b"], feature_names=["price", "promotion"])
    )


@pytest.mark.parametrize(
    "body",
    [
        {"dataframe_split": {**SPLIT, "index": [0, 1, 2]}},
        {"dataframe_records": ROWS},
        {"instances": ROWS, "params": {}},
        {"inputs": COLUMNS},
        {"inputs": ROWS},
    ],
)
@pytest.mark.parametrize("url", [URL, "/invocations?model=sales", "/invocations?model=sales/versions/1"])
def test_every_form_of_json_is_answered(client: TestClient, body: dict[str, Any], url: str) -> None:
    assert client.post(url, json=body).json() == ANSWER


@pytest.mark.parametrize("index", [False, True])
def test_csv_is_answered_as_pandas_writes_it(client: TestClient, index: bool) -> None:
    lines = [",".join(COLUMNS), *(",".join(map(str, row.values())) for row in ROWS)]
    if index:
        lines = [f"{'' if n == 0 else n - 1},{line}" for n, line in enumerate(lines)]
    assert client.post(URL, content="\n".join(lines) + "\n", headers=CSV).json() == ANSWER


@pytest.mark.parametrize(
    ("body", "location"),
    [
        ({}, None),
        ({"inputs": COLUMNS, "instances": ROWS}, None),
        ({"inputs": COLUMNS, "x": 1}, None),
        ({"inputs": [[1.0, 2.0]]}, "body.inputs"),
        ({"inputs": {}}, "body.inputs.unique_id"),
        ({"inputs": {**COLUMNS, "price": [1.0]}}, "body.inputs"),
        ({"inputs": {**COLUMNS, "price": [1.0, "2", 3.0]}}, "body.inputs.price.1"),
        ({"inputs": {**COLUMNS, "price": [1.0, None, 3.0]}}, "body.inputs.price.1"),
        ({"inputs": {**COLUMNS, "x": [1, 2, 3]}}, "body.inputs.x"),
        ({"dataframe_records": []}, "body.dataframe_records.unique_id"),
        ({"dataframe_records": [ROWS[0], {"unique_id": "b"}]}, "body.dataframe_records"),
        ({"dataframe_split": {"columns": list(COLUMNS), "data": [[1]]}}, "body.dataframe_split"),
        ({"dataframe_split": {"columns": ["a", "a"], "data": []}}, "body.dataframe_split"),
        ({"dataframe_split": ROWS}, "body.dataframe_split"),
    ],
)
def test_tables_that_cannot_be_read_are_refused(
    client: TestClient, body: dict[str, Any], location: str | None
) -> None:
    answer = client.post(URL, json=body)
    assert answer.status_code == 422, answer.text
    assert [e["location"] for e in answer.json()["errors"]][:1] == ([location] if location else [])


@pytest.mark.parametrize(
    ("content", "status", "location"),
    [
        ("unique_id,price\n0001,1\n", 422, "body.promotion"),
        ("unique_id,price,promotion\n0001,1,\n", 422, "body.promotion.0"),
        ("unique_id,price,promotion\n0001,x,1\n", 422, "body.price.0"),
        ("unique_id,price,promotion\n,1,1\n", 422, "body.the CSV"),
        ("unique_id,price,promotion\n", 422, "body.the CSV"),
        ("", 400, None),
        ("a,b\n1,2,3\n", 400, None),
    ],
)
def test_csv_that_cannot_be_read_is_refused(
    client: TestClient, content: str, status: int, location: str | None
) -> None:
    answer = client.post(URL, content=content, headers=CSV)
    assert answer.status_code == status, answer.text
    assert [e["location"] for e in answer.json()["errors"]][:1] == ([location] if location else [])


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ('001,nan,1\n"', "row 2 has a quote that is not closed"),
        ('"00"1,2,1\n', "row 1 has a quote that is not closed, or text after one"),
        ('"00\n1",2,1\nb,1,2,3\n', "row 2 has 4 values; the header names 3"),
        ("001,2,1\n\xe9,1,1\n", "row 2 has bytes that are no UTF-8"),
    ],
)
def test_the_row_of_a_broken_csv_is_named_in_plain_words(client: TestClient, rows: str, said: str) -> None:
    content = f"unique_id,price,promotion\n{rows}".encode("latin-1")
    told = client.post(URL, content=content, headers=CSV).json()
    assert told["code"] == "malformed_csv"
    assert told["detail"].startswith(f"The body cannot be read as CSV: {said}")


def test_an_empty_csv_is_called_that(client: TestClient) -> None:
    assert "it is empty" in client.post(URL, content=b"\n", headers=CSV).json()["detail"]


def test_true_and_false_are_1_and_0(client: TestClient) -> None:
    rows = [
        {"unique_id": "0001", "price": True, "promotion": 2},
        {"unique_id": "b", "price": 3.0, "promotion": False},
    ]
    expected = {"predictions": [5.0, 9.0], "status": ["ok", "ok"]}
    assert client.post(URL, json={"dataframe_records": rows}).json() == expected
    content = "unique_id,price,promotion\n0001,True,2\nb,3,false\n"
    assert client.post(URL, content=content, headers=CSV).json() == expected
    wrong = client.post(URL, json={"dataframe_records": [{**rows[0], "price": "true"}]}).json()
    assert wrong["errors"][0]["message"] == "must be a finite number, true or false"


def test_nan_and_other_types_are_refused(client: TestClient) -> None:
    body = json.dumps({"inputs": {**COLUMNS, "price": [1.0, float("nan"), 3.0]}})
    answer = client.post(URL, content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["errors"][0]["location"]) == (422, "body.price.1")
    assert client.post(URL, content=b"", headers={"Content-Type": "application/xml"}).status_code == 415
    assert client.post("/invocations?model=nobody", json={"inputs": COLUMNS}).status_code == 404
    assert client.post("/invocations", json={"inputs": COLUMNS}).status_code == 422
