from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from app.persistence.database import Database
from tests.support.models import add_version, trained


@pytest.fixture(scope="module")
def database_kind() -> str:
    return "sqlite"


def test_head_is_answered_as_get_without_the_body(client: TestClient, database: Database) -> None:
    add_version(database, trained([[1.0]], ["a"]), "m")
    for path in ("/v1/models", "/v1/models/m", "/v1/models/m/weights", "/v1/models/none", "/healthz"):
        got, head = client.get(path), client.head(path)
        assert head.status_code == got.status_code, path
        assert head.content == b""
        assert head.headers.keys() == got.headers.keys()
        for name in ("content-type", "content-length", "etag"):
            assert head.headers.get(name) == got.headers.get(name), (path, name)
    fresh = {"If-None-Match": client.head("/v1/models").headers["etag"]}
    assert client.head("/v1/models", headers=fresh).status_code == 304
    metrics = client.get("/metrics").text
    assert 'method="HEAD",route="/v1/models/{model}",status="200"' in metrics


def test_head_of_a_stream_without_end_is_answered_at_once(client: TestClient, database: Database) -> None:
    add_version(database, trained([[1.0]], ["a"]), "m")
    job = client.get("/v1/training-jobs").json()["items"][0]["id"]
    answer = client.head(f"/v1/training-jobs/{job}/events")
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["content-type"].startswith("text/event-stream")


def test_head_where_there_is_no_get_is_refused(client: TestClient) -> None:
    answer = client.head("/v1/models/m/predict")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
