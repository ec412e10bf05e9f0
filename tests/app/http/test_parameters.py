"""Query parameters that an endpoint does not have are refused; those that it documents are known."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from app.http.parameters import MAX_QUERY_BYTES

ROWS = "unique_id,ds,y\na,2024-01-01,1\n"

PARAMETERS = (
    "mode", "overlap", "dry_run", "delimiter", "encoding", "decimal", "thousands", "quote", "header_row",
    "comment", "currency", "empty", "ragged", "sheet", "member", "shape", "periods", "year",
)  # fmt: skip


@pytest.fixture
def database_kind() -> str:
    return "sqlite"


@pytest.mark.parametrize(
    ("query", "messages"),
    [
        ("dryrun=true", ["there is no such parameter; did you mean 'dry_run'?"]),
        ("mod=append", ["there is no such parameter; did you mean 'mode'?"]),
        ("zz=1&dry_run=true&q", ["there is no such parameter; there are: " + ", ".join(PARAMETERS)] * 2),
    ],
)
def test_a_misspelt_parameter_of_an_upload_stores_nothing(
    client: TestClient, query: str, messages: list[str]
) -> None:
    client.post("/v1/datasets", json={"name": "shop", "kind": "series", "frequency": "D"})
    url = f"/v1/datasets/shop/versions?{query}"
    answer = client.post(url, content=ROWS, headers={"Content-Type": "text/csv"})
    assert (answer.status_code, answer.json()["code"]) == (422, "unknown_parameter")
    assert [fault["message"] for fault in answer.json()["errors"]] == messages
    assert all(fault["location"].startswith("query.") for fault in answer.json()["errors"])
    assert client.get("/v1/datasets/shop").json()["newest_version"] is None


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("dry_run=true&dry_run=false", "dry_run"),
        ("mode=append&mode=append&dry_run=true&dry_run=true&mode=full", "mode"),
    ],
)
def test_a_repeated_parameter_of_an_upload_stores_nothing(client: TestClient, query: str, name: str) -> None:
    client.post("/v1/datasets", json={"name": "shop", "kind": "series", "frequency": "D"})
    url = f"/v1/datasets/shop/versions?{query}"
    answer = client.post(url, content=ROWS, headers={"Content-Type": "text/csv"})
    assert (answer.status_code, answer.json()["code"]) == (422, "repeated_parameter")
    assert answer.json()["errors"][0]["location"] == f"query.{name}"
    n_given = query.count(f"{name}=")
    assert answer.json()["errors"][0]["message"] == f"the parameter stands {n_given} times; give it once"
    assert client.get("/v1/datasets/shop").json()["newest_version"] is None


def test_a_parameter_is_refused_twice_wherever_it_is_documented(api: FastAPI, client: TestClient) -> None:
    paths: dict[str, dict[str, Any]] = api.openapi()["paths"]
    for path, methods in paths.items():
        for method, operation in methods.items():
            queries = [p for p in operation.get("parameters", []) if p["in"] == "query"]
            for name in (p["name"] for p in queries if p["schema"].get("type") != "array"):
                url = path.replace("{", "").replace("}", "")
                answer = client.request(method, url, params=[(name, "1"), (name, "2")])
                assert (answer.status_code, answer.json()["code"]) == (422, "repeated_parameter"), (url, name)


def test_of_many_unknown_parameters_the_first_are_listed_and_all_are_counted(client: TestClient) -> None:
    answer = client.get("/v1/models?" + "&".join(f"k{i}=1" for i in range(1000)))
    assert (answer.status_code, answer.json()["code"]) == (422, "unknown_parameter")
    assert (len(answer.json()["errors"]), answer.json()["error_count"]) == (100, 1000)


def test_a_query_longer_than_any_is_not_read(client: TestClient) -> None:
    for n_bytes, status in ((MAX_QUERY_BYTES, 422), (MAX_QUERY_BYTES + 1, 400)):
        answer = client.get("/v1/models?" + "x" * n_bytes)
        assert answer.status_code == status
    assert answer.json()["code"] == "query_too_long"


def test_every_documented_parameter_is_known(api: FastAPI, client: TestClient) -> None:
    n_checked = 0
    paths: dict[str, dict[str, Any]] = api.openapi()["paths"]
    for path, methods in paths.items():
        for method, operation in methods.items():
            names = [p["name"] for p in operation.get("parameters", []) if p["in"] == "query"]
            answer = client.request(
                method, path.replace("{", "").replace("}", ""), params=dict.fromkeys(names, "1")
            )
            assert "unknown_parameter" not in answer.text, (method, path)
            n_checked += len(names)
    assert n_checked > 10


def test_an_endpoint_without_parameters_says_so_and_a_probe_is_answered(client: TestClient) -> None:
    assert client.get("/healthz?verbose=1").status_code == 200
    answer = client.get("/v1/models/shop?version=1")
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["message"] == "there is no such parameter; there are: none"


@pytest.mark.parametrize("number", ["1.0", "01", "+1", "%201", "1e0", "1_0", "\u0661"])
def test_a_number_in_a_path_or_a_query_is_plain_digits(client: TestClient, number: str) -> None:
    client.post("/v1/datasets", json={"name": "shop", "kind": "series", "frequency": "D"})
    upload = client.post("/v1/datasets/shop/versions", content=ROWS, headers={"Content-Type": "text/csv"})
    assert upload.status_code == 201
    assert client.get("/v1/datasets/shop/versions/1").status_code == 200
    for url in (
        f"/v1/datasets/shop/versions/{number}",
        f"/v1/models/shop/versions/{number}",
        f"/v1/datasets?limit={number.replace('+', '%2B')}",
        f"/v1/datasets/shop/versions?cursor={number.replace('+', '%2B')}",
        f"/v1/models/shop/forecast?unique_id=a&h={number.replace('+', '%2B')}",
    ):
        answer = client.get(url)
        assert answer.status_code == 422, url
        assert [e["message"] for e in answer.json()["errors"]] == [
            "must be a whole number in plain digits, such as 1"
        ]


def test_faults_are_counted_in_proper_english(client: TestClient) -> None:
    one = client.get("/v1/datasets?limit=0").json()
    assert one["detail"] == "The request has 1 fault; see `errors`."
    two = client.post("/v1/datasets", json={"kind": "series"}).json()
    assert two["detail"] == "The request has 2 faults; see `errors`."
    unknown = client.get("/v1/datasets?x=1&z=2").json()
    assert unknown["detail"] == "The request has 2 unknown parameters; see `errors`."
