"""Aliases name versions: promoted and rolled back in one step, seen by all processes, kept from deletion."""

from __future__ import annotations

import time
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.main import create_app
from app.persistence.database import Database
from app.predictions.cache import REFRESH_SECONDS
from app.settings import Settings
from tests.support.models import add_version, trained

ALIAS = "/v1/models/sales/aliases/production"


@pytest.fixture(autouse=True)
def _versions(database: Database) -> None:
    """Three versions; version n predicts n times the feature."""
    for weight in (1.0, 2.0, 3.0):
        add_version(database, trained([[weight]], ["a"]))


def predict(client: TestClient, model: str) -> Any:
    rows = [{"unique_id": "a", "features": {"lag_1": 1.0}}]
    body = client.post(f"/v1/models/{model}/predict", json={"rows": rows}).json()
    return body.get("code") or body["predictions"][0]["yhat"]


def test_an_alias_is_set_moved_and_rolled_back(client: TestClient) -> None:
    assert client.get(ALIAS).json()["code"] == "alias_not_found"
    first = client.put(ALIAS, json={"version": 1}).json()
    assert (first["model"], first["alias"], first["version"]) == ("sales", "production", 1)
    assert first["previous_version"] is None
    assert client.put(ALIAS, json={"version": 1}).json() == first
    moved = client.put(ALIAS, json={"version": 3}).json()
    assert (moved["version"], moved["previous_version"]) == (3, 1)
    assert client.get(ALIAS).json() == moved
    assert predict(client, "sales@production") == 3.0
    back = client.post(f"{ALIAS}/rollback").json()
    assert (back["version"], back["previous_version"]) == (1, None)
    assert predict(client, "sales@production") == 1.0


def test_a_number_is_no_alias(client: TestClient) -> None:
    answer = client.put("/v1/models/sales/aliases/1", json={"version": 2})
    assert answer.status_code == 422
    assert "must not be a number" in answer.json()["errors"][0]["message"]
    assert client.put("/v1/models/sales/aliases/v1", json={"version": 2}).status_code == 200


def test_a_rollback_that_is_sent_twice_does_no_harm(client: TestClient) -> None:
    for version in (1, 2):
        client.put(ALIAS, json={"version": version})
    assert client.post(f"{ALIAS}/rollback").status_code == 200
    again = client.post(f"{ALIAS}/rollback")
    assert (again.status_code, again.json()["code"]) == (409, "nothing_to_roll_back_to")
    assert client.get(ALIAS).json()["version"] == 1


def test_another_process_follows_within_a_second(client: TestClient, settings: Settings) -> None:
    client.put(ALIAS, json={"version": 1})
    with TestClient(create_app(settings), "http://localhost") as other:
        assert predict(other, "sales@production") == 1.0
        for change, expected in (
            (lambda: client.put(ALIAS, json={"version": 2}), 2.0),
            (lambda: client.post(f"{ALIAS}/rollback"), 1.0),
            (lambda: client.delete(ALIAS), "alias_not_found"),
        ):
            assert change().status_code in (200, 204)
            assert predict(client, "sales@production") == expected
            time.sleep(2 * REFRESH_SECONDS)
            assert predict(other, "sales@production") == expected


@pytest.mark.parametrize(
    ("model", "expected"),
    [("sales", 3.0), ("sales@production", 2.0), ("sales/versions/1", 1.0), ("sales%2Fversions%2F1", 1.0)],
)
def test_a_model_is_named_in_three_ways(client: TestClient, model: str, expected: float) -> None:
    client.put(ALIAS, json={"version": 2})
    assert predict(client, model) == expected
    task = client.get(f"/v1/models/{model}/tasks", params={"unique_id": "a"}).json()
    assert task["weights"] == {"lag_1": expected}
    assert client.get(f"/v1/models/{model}/products").json()["items"] == ["a"]
    body = client.get(f"/v1/models/{model}").json()
    assert body.get("newest", body)["version"] == expected


@pytest.mark.parametrize(
    ("path", "status", "code", "near"),
    [
        ("sales@prd/tasks?unique_id=a", 404, "alias_not_found", ["prod"]),
        ("sale@prod/tasks?unique_id=a", 404, "model_not_found", ["sales"]),
        ("sales@prod/versions/1/tasks?unique_id=a", 422, "invalid_request", []),
        ("sales/versions/x/tasks?unique_id=a", 422, "invalid_request", []),
        ("sales/versions/9/clusters", 404, "model_version_not_found", ["3"]),
        ("sale/aliases/prod", 404, "model_not_found", ["sales"]),
    ],
)
def test_what_there_is_not_is_refused(
    client: TestClient, path: str, status: int, code: str, near: list[str]
) -> None:
    client.put("/v1/models/sales/aliases/prod", json={"version": 1})
    answer = client.get(f"/v1/models/{path}")
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.json()["suggestions"] == near


@pytest.mark.parametrize(
    ("body", "status"),
    [({"version": 9}, 404), ({"version": "1"}, 422), ({}, 422), ({"version": 1, "x": 1}, 422)],
)
def test_an_alias_of_no_version_is_refused(client: TestClient, body: dict[str, Any], status: int) -> None:
    assert client.put(ALIAS, json=body).status_code == status
    assert client.get("/v1/models/sales/aliases").json() == {"items": []}


def test_what_an_alias_serves_is_not_deleted(client: TestClient) -> None:
    client.put(ALIAS, json={"version": 2})
    for path in ("/v1/models/sales", "/v1/models/sales/versions/2"):
        answer = client.delete(path)
        assert (answer.status_code, answer.json()["code"]) == (409, "model_is_served")
        assert "'production'" in answer.json()["detail"]
    assert client.delete("/v1/models/sales/versions/1").status_code == 204
    assert client.delete(ALIAS).status_code == 204
    assert client.delete("/v1/models/sales").status_code == 204


def test_a_version_that_was_deleted_cannot_be_rolled_back_to(client: TestClient) -> None:
    for version in (1, 2):
        client.put(ALIAS, json={"version": version})
    assert client.delete("/v1/models/sales/versions/1").status_code == 204
    assert client.get(ALIAS).json()["previous_version"] is None
    assert client.post(f"{ALIAS}/rollback").status_code == 409


def test_a_version_names_its_aliases_and_the_code_that_trained_it(client: TestClient) -> None:
    for alias in ("production", "canary"):
        client.put(f"/v1/models/sales/aliases/{alias}", json={"version": 2})
    versions = client.get("/v1/models/sales/versions").json()["items"]
    assert {v["version"]: v["aliases"] for v in versions} == {3: [], 2: ["canary", "production"], 1: []}
    code, digest = versions[0]["code_version"].split("+")
    assert code == "0.1.0"
    assert len(digest) == 12
    listed = client.get("/v1/models/sales/aliases").json()["items"]
    assert [(a["alias"], a["version"]) for a in listed] == [("canary", 2), ("production", 2)]


def test_a_model_that_is_not_there_has_no_list_of_aliases(client: TestClient) -> None:
    answer = client.get("/v1/models/none/aliases")
    assert (answer.status_code, answer.json()["code"]) == (404, "model_not_found")
