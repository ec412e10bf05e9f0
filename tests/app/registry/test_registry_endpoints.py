"""Models and versions are listed in pages and read with everything that was published."""

from __future__ import annotations

from dataclasses import replace

from fastapi.testclient import TestClient

from app.persistence.database import Database
from tests.support.models import add_version, trained

MODEL = trained([[1.0, 2.0]], ["a"])


def test_no_models_is_an_empty_page(client: TestClient) -> None:
    assert client.get("/v1/models").json() == {"items": [], "next_cursor": None}


def test_models_come_in_pages_by_name(client: TestClient, database: Database) -> None:
    for name in ("cherry", "apple", "banana", "apple"):
        add_version(database, MODEL, name)
    first = client.get("/v1/models", params={"limit": 2}).json()
    assert [(m["name"], m["n_versions"], m["newest_version"]) for m in first["items"]] == [
        ("apple", 2, 2),
        ("banana", 1, 1),
    ]
    second = client.get("/v1/models", params={"limit": 2, "cursor": first["next_cursor"]}).json()
    assert [m["name"] for m in second["items"]] == ["cherry"]
    assert second["next_cursor"] is None


def test_a_model_shows_its_newest_version(client: TestClient, database: Database) -> None:
    for _ in range(2):
        add_version(database, MODEL)
    model = client.get("/v1/models/sales").json()
    newest = model["newest"]
    assert (model["n_versions"], model["newest_version"], newest["version"]) == (2, 2, 2)
    assert newest == client.get("/v1/models/sales/versions/2").json()
    assert newest["feature_names"] == ["lag_1", "lag_2"]
    assert newest["data"]["dataset"] == "sales"
    assert newest["metrics"] == MODEL.metrics
    assert newest["configuration"] == MODEL.configuration
    assert newest["report"] == MODEL.report
    assert newest["created_at"].endswith("Z")


def test_a_version_from_before_a_field_of_its_report_is_read(client: TestClient, database: Database) -> None:
    report = {name: value for name, value in MODEL.report.items() if name not in ("rows", "not_forecast")}
    add_version(database, replace(MODEL, report={**report, "unknown": 1}))
    newest = client.get("/v1/models/sales").json()["newest"]
    assert newest["report"] == {**report, "rows": None, "not_forecast": None, "unknown": 1}


def test_versions_come_in_pages_newest_first(client: TestClient, database: Database) -> None:
    for _ in range(3):
        add_version(database, MODEL)
    first = client.get("/v1/models/sales/versions", params={"limit": 2}).json()
    assert [v["version"] for v in first["items"]] == [3, 2]
    second = client.get(
        "/v1/models/sales/versions", params={"limit": 2, "cursor": first["next_cursor"]}
    ).json()
    assert [v["version"] for v in second["items"]] == [1]
    assert second["next_cursor"] is None


def test_an_unknown_model_gets_near_matches(client: TestClient, database: Database) -> None:
    add_version(database, MODEL, "ta-feng")
    for path in ("", "/versions", "/versions/1"):
        answer = client.get(f"/v1/models/tafeng{path}")
        assert answer.status_code == 404
        assert answer.json()["code"] == "model_not_found"
        assert answer.json()["suggestions"] == ["ta-feng"]


def test_an_unknown_version_names_the_newest(client: TestClient, database: Database) -> None:
    add_version(database, MODEL)
    answer = client.get("/v1/models/sales/versions/7")
    assert answer.status_code == 404
    assert answer.json()["code"] == "model_version_not_found"
    assert answer.json()["suggestions"] == ["1"]


def test_numbers_out_of_range_are_faults_of_the_request(client: TestClient) -> None:
    for path in ("/v1/models/a/versions/0", f"/v1/models/a/versions/{2**40}", "/v1/models?limit=0"):
        answer = client.get(path)
        assert answer.status_code == 422
        assert answer.json()["code"] == "invalid_request"
