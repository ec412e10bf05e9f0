"""Metrics count requests by route, never by name or id; and they are told while the database is away."""

from __future__ import annotations

import re
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.exc import OperationalError

from app.http.metrics import Metrics
from app.persistence.database import Database
from app.persistence.models import JobState
from app.registry import service
from tests.support.models import add_version, trained


@pytest.fixture(scope="module")
def database_kind() -> str:
    return "sqlite"


def samples(client: TestClient) -> dict[str, float]:
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    lines = [line for line in answer.text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def test_requests_are_counted_by_route(client: TestClient, database: Database) -> None:
    add_version(database, trained([[1.0]], ["a"]), "secret-name")
    body = {"rows": [{"unique_id": "a", "features": {"lag_1": 1.0}}]}
    for model in ("secret-name", "secret-name", "secret-name/versions/1", "secret-nobody"):
        client.post(f"/v1/models/{model}/predict", json=body)
    for path in ("/no/such/secret", "/v1/training-jobs/secret"):
        client.get(path)
    client.request("SECRET", "/v1/models")
    found = samples(client)
    route = 'method="POST",route="/v1/models/{model}/predict"'
    assert found[f'ccmtl_http_requests_total{{{route},status="200"}}'] == 3
    assert found[f'ccmtl_http_requests_total{{{route},status="404"}}'] == 1
    assert found[f"ccmtl_http_request_seconds_count{{{route}}}"] == 4
    assert found['ccmtl_http_requests_total{method="GET",route="unmatched",status="404"}'] == 1
    assert found["ccmtl_http_requests_under_way"] == 1  # the scrape itself
    assert found["process_resident_memory_bytes"] > 0
    text = client.get("/metrics").text
    assert "secret" not in text.lower()
    assert set(re.findall('method="([^"]+)"', text)) == {"GET", "POST", "other"}


def test_jobs_are_counted_by_state_and_workers(client: TestClient, database: Database) -> None:
    add_version(database, trained([[1.0]], ["a"]))
    found = samples(client)
    assert found["ccmtl_workers"] == 0
    counts = {state: found[f'ccmtl_jobs{{state="{state}"}}'] for state in JobState}
    assert counts == {**dict.fromkeys(JobState, 0), JobState.SUCCEEDED: 1}


def test_metrics_are_told_while_the_database_is_away() -> None:
    def away() -> Any:
        raise OperationalError("SELECT", {}, Exception("gone"))

    text = Metrics("0.1.0", away, away).text().decode()
    assert "ccmtl_jobs" not in text
    assert "ccmtl_workers" not in text
    assert 'ccmtl_info{version="0.1.0"} 1.0' in text


def test_an_error_that_nobody_expected_counts_as_500(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr(service, "list_models", fail)
        assert client.get("/v1/models").status_code == 500
    assert samples(client)['ccmtl_http_requests_total{method="GET",route="/v1/models",status="500"}'] == 1
