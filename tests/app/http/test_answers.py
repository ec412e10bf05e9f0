"""JSON ends with a line feed; long answers are compressed for those who ask, and events never are."""

from __future__ import annotations

import asyncio
import zlib

import numpy as np
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from app.http.answers import COMPRESSED_FROM, IN_A_THREAD_FROM, FinishedAnswers, Packed
from app.http.error_handlers import install_error_handlers
from app.persistence.database import Database
from app.processes.logs import REQUEST_ID
from app.registry.publication import History
from tests.support.database_kinds import quickly_on
from tests.support.models import add_version, trained
from tests.support.training import add_series, job

PLAIN = {"Accept-Encoding": "identity"}


@pytest.mark.parametrize(
    "path", ["/", "/healthz", "/v1/models", "/v1/models/none", "/nowhere", "/openapi.json"]
)
@quickly_on("sqlite")
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


@quickly_on("sqlite")
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

    answer = TestClient(app, "http://localhost", raise_server_exceptions=False).get("/fails")
    assert answer.status_code == 500
    assert answer.content.endswith(b"}\n")


def test_a_request_that_the_stop_of_the_server_cuts_off_is_answered_so() -> None:
    app = FastAPI()
    app.add_middleware(FinishedAnswers)

    @app.get("/waits")
    async def waits() -> None:
        raise asyncio.CancelledError

    answer = TestClient(app, "http://localhost").get("/waits")
    assert (answer.status_code, answer.json()["code"]) == (503, "stopping")
    assert answer.headers["retry-after"]
    assert answer.headers["x-request-id"] == answer.json()["request_id"]


@quickly_on("sqlite")
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
@quickly_on("sqlite")
def test_nothing_is_compressed_for_those_who_refuse_it(
    client: TestClient, accepted: str, is_packed: bool
) -> None:
    answer = client.get("/openapi.json", headers={"Accept-Encoding": accepted})
    assert ("content-encoding" in answer.headers) == is_packed


@quickly_on("sqlite")
def test_a_very_long_answer_is_compressed_too(client: TestClient, database: Database) -> None:
    ids = [f"product {t}" for t in range(10_000)]
    add_version(database, trained([[1.0]] * len(ids), ids))
    body = {"unique_id": ids, "features": {"lag_1": [2.0] * len(ids)}}
    answer = client.post("/v1/models/sales/predict", json=body)
    assert answer.headers["content-encoding"] == "gzip"
    assert len(answer.content) > IN_A_THREAD_FROM
    assert answer.json()["yhat"] == [2.0] * len(ids)


@quickly_on("sqlite")
def test_lines_of_json_are_compressed_as_they_come(client: TestClient, database: Database) -> None:
    history = History(np.ones((2, 1)), np.full(2, 11_000))
    add_version(database, trained([[1.0]] * 2, ["a", "b"], history=history, frequency="D"))
    path = "/v1/models/sales/forecasts?h=300"
    plain = client.get(path, headers=PLAIN)
    assert "content-encoding" not in plain.headers
    with client.stream("GET", path, headers={"Accept-Encoding": "gzip"}) as packed:
        assert packed.headers["content-encoding"] == "gzip"
        assert {plain.headers["vary"], packed.headers["vary"]} == {"Accept, Accept-Encoding"}
        assert b"".join(packed.iter_bytes()) == plain.content
    assert len(plain.content.splitlines()) == 600


def test_each_piece_of_a_compressed_stream_can_be_read_when_it_arrives() -> None:
    packed, unpacked = Packed(), zlib.decompressobj(zlib.MAX_WBITS + 16)
    assert unpacked.decompress(packed.piece({"body": b"one\n", "more_body": True})) == b"one\n"
    assert unpacked.decompress(packed.piece({"body": b"two\n", "more_body": True})) == b"two\n"
    assert not unpacked.eof
    assert unpacked.decompress(packed.piece({"body": b""})) == b""
    assert unpacked.eof


@quickly_on("sqlite")
def test_events_are_not_compressed(client: TestClient) -> None:
    add_series(client)
    job_id = client.post("/v1/training-jobs", json=job()).json()["id"]
    client.post(f"/v1/training-jobs/{job_id}/cancel")
    answer = client.get(f"/v1/training-jobs/{job_id}/events", headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in answer.headers


@quickly_on("sqlite")
def test_what_is_read_has_a_tag_and_is_not_sent_again(client: TestClient, database: Database) -> None:
    add_version(database, trained([[1.0]], ["a"]))
    for path in ("/v1/models/sales/versions/1", "/v1/models/sales/weights", "/v1/models"):
        first = client.get(path)
        etag = first.headers["etag"]
        for given in (etag, etag.removeprefix("W/"), f'"x", {etag}', "*"):
            again = client.get(path, headers={"If-None-Match": given})
            assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag), given
        assert client.get(path, headers={"If-None-Match": '"x"'}).content == first.content
    before = client.get("/v1/models").headers["etag"]
    add_version(database, trained([[1.0]], ["a"]))
    assert client.get("/v1/models", headers={"If-None-Match": before}).status_code == 200
    assert "etag" not in client.get("/v1/models/none").headers


@pytest.mark.parametrize("given", ["abc-1.2:3_4", "a" * 128])
@quickly_on("sqlite")
def test_the_id_of_a_request_comes_back(client: TestClient, given: str) -> None:
    answer = client.get("/v1/models/none", headers={"X-Request-Id": given})
    assert answer.headers["x-request-id"] == answer.json()["request_id"] == given
    assert client.get("/docs", headers={"X-Request-Id": given}).headers["x-request-id"] == given


@pytest.mark.parametrize("given", ["", "a" * 129, "a b", "é", "<script>", None])
@quickly_on("sqlite")
def test_an_id_that_could_harm_the_log_is_replaced(client: TestClient, given: str | None) -> None:
    sent = {} if given is None else {"X-Request-Id": given.encode()}
    ids = {client.get("/v1/models", headers=sent).headers["x-request-id"] for _ in range(2)}
    assert len(ids) == 2
    assert given not in ids


@quickly_on("sqlite")
def test_an_unexpected_error_names_the_request_and_so_does_the_log(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> None:
        raise LookupError("oh")

    monkeypatch.setattr("app.datasets.service.read", fail)
    ids: list[str | None] = []
    monkeypatch.setattr("app.http.error_handlers.logger.error", lambda *a, **k: ids.append(REQUEST_ID.get()))
    answer = client.get("/v1/datasets/x", headers={"X-Request-Id": "mine"})
    assert (answer.status_code, answer.json()["request_id"]) == (500, "mine")
    assert answer.headers["x-request-id"] == "mine"
    assert ids == ["mine"]


@pytest.mark.parametrize("path", ["/v1/models", "/nowhere", "/healthz"])
@quickly_on("sqlite")
def test_a_browser_runs_nothing_in_an_answer(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    assert headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
    assert headers["x-content-type-options"] == "nosniff"
