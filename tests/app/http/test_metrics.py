"""Metrics count requests by route, never by name or id; and they are told while the database is away."""

from __future__ import annotations

import re
import socket
import threading
from typing import Any

import pytest
import uvicorn
from fastapi.testclient import TestClient
from sqlalchemy.exc import OperationalError
from starlette.types import Receive, Scope, Send

from app.http.metrics import CountedRequests, Metrics
from app.main import create_app
from app.persistence.database import Database
from app.persistence.models import JobState
from app.registry import service
from app.settings import Settings
from tests.support.models import add_version, trained
from tests.support.processes import PATIENCE, wait_until


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


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level("INFO", "app.access_log")
    return caplog


def lines_of(logged: pytest.LogCaptureFixture) -> list[str]:
    return [
        re.sub(r"^\S+:\d+ - ", "", record.getMessage())
        for record in logged.records
        if record.name == "app.access_log"
    ]


@pytest.mark.parametrize("access_log", [False, True])
def test_each_request_is_logged_where_that_is_wanted(
    access_log: bool, settings: Settings, logged: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = create_app(settings.model_copy(update={"access_log": access_log}))
    with TestClient(app, "http://localhost", raise_server_exceptions=False) as client:
        client.head("/v1/models?limit=3")
        client.get("/v1/models?limit=3&api_key=ccmtl_0&ccmtl_0")
        client.get("/n\u00f6 such?q=%0a")
        monkeypatch.setattr(service, "list_models", None)
        client.get("/v1/models")
    expected = [
        '"HEAD /v1/models?limit=3 HTTP/1.1" 200',
        '"GET /v1/models?limit=3&*** HTTP/1.1" 422',
        '"GET /n%C3%B6%20such?*** HTTP/1.1" 404',
        '"GET /v1/models HTTP/1.1" 500',
    ]
    assert lines_of(logged) == (expected if access_log else [])


def test_a_request_whose_client_went_away_is_logged_too(logged: pytest.LogCaptureFixture) -> None:
    async def answer_late(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        await send({"type": "http.response.start", "status": 201, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    counted = CountedRequests(answer_late, Metrics("0.1.0", dict, lambda: 0), access_log=True)
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(counted, log_config=None, lifespan="off", access_log=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    with socket.create_connection(listener.getsockname(), PATIENCE) as connection:
        connection.sendall(b"POST /versions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}")
    wait_until(lambda: lines_of(logged), "a line in the log")
    assert lines_of(logged) == ['"POST /versions HTTP/1.1" 201']
    server.should_exit = True
    thread.join(PATIENCE)


def test_an_error_that_nobody_expected_counts_as_500(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr(service, "list_models", fail)
        assert client.get("/v1/models").status_code == 500
    assert samples(client)['ccmtl_http_requests_total{method="GET",route="/v1/models",status="500"}'] == 1
