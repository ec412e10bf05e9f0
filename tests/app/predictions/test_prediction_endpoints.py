"""The routes of predictions: newest and named versions, ids of any text, bodies refused early."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from fastapi.testclient import TestClient

from app.main import create_app
from app.persistence.database import Database
from app.registry.publication import History
from app.settings import Settings
from ccmtl_core import CCMTLModel
from tests.support.models import add_version, trained

ODD_IDS = [
    "0001",
    "1",
    " 1",
    "1 ",
    "a/b",
    "a%2Fb",
    "a+b",
    "a b",
    "?x=1&y=2#z",
    "日本茶",
    "Ω",
    "\\",
    '"',
    "💐",
    "é",
]
RNG = np.random.default_rng(5)
WEIGHTS = RNG.normal(size=(len(ODD_IDS), 5))
LAGS = RNG.normal(size=(len(ODD_IDS), 5)) * 100
INTERCEPT = RNG.normal(size=len(ODD_IDS))


@pytest.fixture
def model(database: Database) -> CCMTLModel:
    """The model ``sales``, published; as the library has it."""
    history = History(LAGS, np.full(len(ODD_IDS), 11_000))
    published = trained(WEIGHTS, ODD_IDS, intercept=INTERCEPT, history=history, frequency="D")
    add_version(database, published)
    return CCMTLModel(WEIGHTS, tuple(ODD_IDS), tuple(published.feature_names), intercept=INTERCEPT)


def columns(ids: list[str], X: Any) -> dict[str, Any]:
    return {"unique_id": ids, "features": {f"lag_{p + 1}": X[:, p].tolist() for p in range(5)}}


def test_http_equals_the_library_bit_for_bit(client: TestClient, model: CCMTLModel) -> None:
    ids = [ODD_IDS[i] for i in RNG.integers(0, len(ODD_IDS), 2000)]
    X = RNG.normal(size=(2000, 5)) * 10.0 ** RNG.integers(-200, 200, size=(2000, 1))
    answer = client.post("/v1/models/sales/predict", json=columns(ids, X))
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert np.array(answer.json()["yhat"]).tobytes() == model.predict(X, ids).tobytes()


def test_every_id_comes_back_as_it_is(client: TestClient, model: CCMTLModel) -> None:
    for row, unique_id in enumerate(ODD_IDS):
        expected = model.predict(LAGS[[row]], unique_id).tolist()
        by_get = client.get(f"/v1/models/sales/forecast?unique_id={quote(unique_id, safe='')}").json()
        by_post = client.post("/v1/models/sales/forecast", json={"unique_id": [unique_id]}).json()
        features = {f"lag_{p + 1}": x for p, x in enumerate(LAGS[row].tolist())}
        rows = {"rows": [{"unique_id": unique_id, "features": features}]}
        predicted = client.post("/v1/models/sales/predict", json=rows).json()["predictions"]
        assert by_get == by_post
        assert [f["yhat"] for f in by_get["forecasts"]] == [p["yhat"] for p in predicted] == expected
        assert by_get["forecasts"][0]["unique_id"] == predicted[0]["unique_id"] == unique_id


def test_the_newest_version_answers_unless_one_is_named(client: TestClient, database: Database) -> None:
    for weight in (1.0, 2.0):
        history = History(np.array([[10.0]]), np.array([0]))
        add_version(database, trained([[weight]], ["a"], history=history, frequency="D"))
    body = {"unique_id": ["a"], "features": {"lag_1": [10.0]}}
    for path, version in [("", 2), ("/versions/1", 1), ("/versions/2", 2)]:
        predicted = client.post(f"/v1/models/sales{path}/predict", json=body).json()
        got = client.get(f"/v1/models/sales{path}/forecast", params={"unique_id": "a"}).json()
        batch = client.post(f"/v1/models/sales{path}/forecast", json={"unique_id": ["a"]}).json()
        assert predicted["model"] == got["model"] == {"name": "sales", "version": version}
        assert got == batch
        assert predicted["yhat"] == [got["forecasts"][0]["yhat"]] == [10.0 * version]


def test_the_same_answers_after_a_restart(client: TestClient, model: CCMTLModel, settings: Settings) -> None:
    body = columns(ODD_IDS, LAGS)
    before = client.post("/v1/models/sales/predict", json=body).content
    with TestClient(create_app(settings), "http://localhost") as restarted:
        assert restarted.post("/v1/models/sales/predict", json=body).content == before


def test_unknown_names_are_404_with_near_matches(client: TestClient, model: CCMTLModel) -> None:
    cases = [
        ("/v1/models/sale/forecast?unique_id=1", "model_not_found", ["sales"]),
        ("/v1/models/sales/versions/2/forecast?unique_id=1", "model_version_not_found", ["1"]),
        ("/v1/models/sales/forecast?unique_id=001", "unique_id_not_found", ["0001"]),
    ]
    for path, code, near in cases:
        answer = client.get(path)
        assert (answer.status_code, answer.json()["code"]) == (404, code)
        assert answer.headers["content-type"] == "application/problem+json"
        assert set(near) <= set(answer.json()["suggestions"])


def test_a_fault_of_the_body_is_a_problem_document(client: TestClient, model: CCMTLModel) -> None:
    body = '{"rows": [{"unique_id": "1", "features": {"lag_1": NaN}}]}'
    answer = client.post(
        "/v1/models/sales/predict", content=body, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["errors"][0]["location"] == "body.rows.0.features.lag_1"
    assert "NaN" not in answer.text


@pytest.mark.parametrize(
    "query", ["", "unique_id=", "unique_id=a&h=0", "unique_id=a&h=367", "unique_id=a&h=x"]
)
def test_a_faulty_query_is_refused(client: TestClient, model: CCMTLModel, query: str) -> None:
    answer = client.get(f"/v1/models/sales/forecast?{query}")
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")


def test_a_model_in_memory_is_answered_by_the_same_rules(client: TestClient, model: CCMTLModel) -> None:
    """It takes a shorter way through the framework, which must leave none of them out."""
    url, body = "/v1/models/sales/predict", columns(["1"], LAGS[:1])
    first = client.post(url, json=body)
    assert (first.status_code, client.post(url, json=body).content) == (200, first.content)
    assert client.post(f"{url}?dry_run=true", json=body).json()["code"] == "unknown_parameter"
    assert client.post(url, content=b"{}", headers={"Content-Type": "text/csv"}).status_code == 415
    assert client.post(url, json={}).status_code == 422
    assert client.get(url).json()["code"] == "method_not_allowed"


def test_only_json_is_read(client: TestClient, model: CCMTLModel) -> None:
    for media_type, status in [("text/csv", 415), ("application/x-www-form-urlencoded", 415)]:
        answer = client.post("/v1/models/sales/predict", content=b"{}", headers={"Content-Type": media_type})
        assert (answer.status_code, answer.json()["code"]) == (status, "unsupported_media_type")
    answer = client.post("/v1/models/sales/predict", content=json.dumps(columns(["1"], LAGS[:1])))
    assert answer.status_code == 200


def test_a_body_over_the_limit_is_refused(database_url: str, tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, database_url=database_url, max_request_bytes=1024)
    with TestClient(create_app(settings), "http://localhost") as client:
        for size, status in [(1024, 404), (1025, 413)]:
            answer = client.post(
                "/v1/models/sales/predict",
                content=b" " * size,
                headers={"Content-Type": "application/json"},
            )
            assert answer.status_code == status


def test_large_and_small_requests_answer_alike(client: TestClient, model: CCMTLModel) -> None:
    ids = ODD_IDS * 200
    X = np.tile(LAGS, (200, 1))
    large = client.post("/v1/models/sales/predict", json=columns(ids, X)).json()["yhat"]
    small = client.post("/v1/models/sales/predict", json=columns(ODD_IDS, LAGS)).json()["yhat"]
    assert large == small * 200


def test_a_name_that_no_database_can_hold_is_refused(client: TestClient) -> None:
    for path in ("/v1/models/a%00b", "/v1/models/a%00b/forecast?unique_id=1", "/v1/models?cursor=a%00b"):
        assert client.get(path).status_code == 422
