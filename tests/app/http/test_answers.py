"""JSON ends with a line feed; long answers are compressed for those who ask, and events never are."""

from __future__ import annotations

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from app.http.answers import COMPRESSED_FROM, IN_A_THREAD_FROM, FinishedAnswers
from app.http.errors import install_error_handlers
from app.persistence.database import Database
from tests.support.models import add_version, trained
from tests.support.training import add_series, job

PLAIN = {"Accept-Encoding": "identity"}


@pytest.mark.parametrize(
    "path", ["/", "/healthz", "/v1/models", "/v1/models/none", "/nowhere", "/openapi.json"]
)
def test_json_ends_with_a_line_feed(client: TestClient, path: str) -> None:
    answer = client.get(path, headers=PLAIN)
    assert answer.content.endswith(b"}\n")
    assert int(answer.headers["content-length"]) == len(answer.content)


def test_predictions_end_with_a_line_feed(client: TestClient, database: Database) -> None:
    add_version(database, trained([[1.0]], ["a"]))
    body = {"rows": [{"unique_id": "a", "features": {"lag_1": 2.0}}]}
    answer = client.post("/v1/models/sales/predict", json=body)
    assert answer.content.endswith(b"]}\n")
    assert "content-encoding" not in answer.headers


def test_an_answer_without_a_body_stays_without(client: TestClient) -> None:
    add_series(client)
    answer = client.delete("/v1/datasets/sales")
    assert (answer.status_code, answer.content) == (204, b"")


def test_an_error_of_the_service_itself_ends_with_a_line_feed() -> None:
    app = FastAPI()
    install_error_handlers(app)
    app.add_middleware(FinishedAnswers)

    @app.get("/fails")
    def fails() -> None:
        raise RuntimeError

    answer = TestClient(app, raise_server_exceptions=False).get("/fails")
    assert answer.status_code == 500
    assert answer.content.endswith(b"}\n")


def test_long_answers_are_compressed_for_those_who_ask(client: TestClient) -> None:
    plain = client.get("/openapi.json", headers=PLAIN)
    assert "content-encoding" not in plain.headers
    assert len(plain.content) > COMPRESSED_FROM
    packed = client.get("/openapi.json", headers={"Accept-Encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) < len(plain.content) / 3
    assert packed.content == plain.content
    assert "accept-encoding" in packed.headers["vary"].lower()


@pytest.mark.parametrize(
    ("accepted", "is_packed"),
    [
        ("gzip;q=0", False),
        ("br, gzip ; q=0.000, *", False),
        ("identity", False),
        ("gzip;q=0.5, br", True),
        ("deflate, GZIP", True),
    ],
)
def test_nothing_is_compressed_for_those_who_refuse_it(
    client: TestClient, accepted: str, is_packed: bool
) -> None:
    answer = client.get("/openapi.json", headers={"Accept-Encoding": accepted})
    assert ("content-encoding" in answer.headers) == is_packed


def test_a_very_long_answer_is_compressed_too(client: TestClient, database: Database) -> None:
    ids = [f"product {t}" for t in range(10_000)]
    add_version(database, trained([[1.0]] * len(ids), ids))
    body = {"unique_id": ids, "features": {"lag_1": [2.0] * len(ids)}}
    answer = client.post("/v1/models/sales/predict", json=body)
    assert answer.headers["content-encoding"] == "gzip"
    assert len(answer.content) > IN_A_THREAD_FROM
    assert answer.json()["yhat"] == [2.0] * len(ids)


def test_events_are_not_compressed(client: TestClient) -> None:
    add_series(client)
    job_id = client.post("/v1/training-jobs", json=job()).json()["id"]
    client.post(f"/v1/training-jobs/{job_id}/cancel")
    answer = client.get(f"/v1/training-jobs/{job_id}/events", headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in answer.headers
