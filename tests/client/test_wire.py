"""A request is sent again where that helps and is safe, and not for ever."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx2
import pytest
from fastapi.testclient import TestClient

from ccmtl_client import (
    Client,
    ClientError,
    NoAnswer,
    NotFound,
    ServiceFailed,
    ServiceUnavailable,
    StrangeAnswer,
    TooManyRequests,
)
from tests.client.conftest import Told, problem

LOST = httpx2.ReadError("connection reset")
NOT_SENT = httpx2.ConnectError("connection refused")
JOB = {"id": "job_1", "state": "queued"}


def client_of(transport: httpx2.BaseTransport, **options: Any) -> Client:
    return Client("http://service", transport=transport, **options)


@pytest.mark.parametrize("failure", [NOT_SENT, LOST, httpx2.ReadTimeout("late"),
                                     httpx2.RemoteProtocolError("ended"), problem(429, "queue_full"),
                                     problem(409, "dataset_changed"), problem(408, "request_timeout"),
                                     *(problem(status, "away") for status in (502, 503, 504))],
                         ids=str)  # fmt: skip
def test_a_failure_on_the_way_is_tried_again_with_the_same_key(failure: Any, pauses: list[float]) -> None:
    told = Told(failure, JOB)
    assert client_of(told).train("shop", "shop", horizon=7).id == "job_1"
    first, second = told.sent
    assert first.content == second.content
    assert first.headers["Idempotency-Key"] == second.headers["Idempotency-Key"]
    assert len(pauses) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 422, 500, 507])
def test_other_refusals_are_final(status: int, pauses: list[float]) -> None:
    told = Told(problem(status, "no"))
    with pytest.raises(ClientError, match=f"{status} no: What is wrong."):
        client_of(told).train("shop", "shop")
    assert pauses == []


def test_each_call_has_a_key_of_its_own() -> None:
    told = Told(JOB, JOB)
    client = client_of(told)
    client.train("shop", "shop")
    client.train("shop", "shop")
    assert len({request.headers["Idempotency-Key"] for request in told.sent}) == 2


def test_a_lost_answer_to_a_training_request_that_was_accepted_leaves_one_job(
    client: Client, service: TestClient, pauses: list[float]
) -> None:
    content = b"unique_id,ds,y\n" + b"".join(b"a,2025-01-%02d,%d\n" % (d, d % 3) for d in range(1, 20))
    client.datasets.upload("sales", content, definition={"frequency": "D"})
    flaky = Client("http://localhost", transport=Told(LOST, LOST, behind=service._transport))
    job = flaky.train("sales", "m", lags=1, fusion_strength=1)
    assert [each.id for each in client.jobs.list(model="m")] == [job.id]
    assert len(pauses) == 2
    assert job.cancel().state == "cancelled"


def test_pauses_grow_and_end_within_the_limit_of_time(pauses: list[float]) -> None:
    told = Told(*[NOT_SENT] * 99)
    with pytest.raises(NoAnswer, match=r"http://service/? to GET /v1/datasets/shop, try \d+: conn"):
        client_of(told, retry_for=30).datasets.get("shop")
    assert len(told.sent) == len(pauses) + 1
    assert 15 < sum(pauses) <= 30
    assert pauses[0] <= 0.25
    assert pauses[3] > pauses[0]


def test_without_time_for_it_nothing_is_sent_again(pauses: list[float]) -> None:
    told = Told(problem(503, "away"))
    with pytest.raises(ServiceUnavailable):
        client_of(told, retry_for=0).datasets.get("shop")


@pytest.mark.parametrize(
    "header", ["7", lambda: format_datetime(datetime.now(UTC) + timedelta(seconds=8), usegmt=True)],
    ids=["seconds", "date"],
)  # fmt: skip
def test_it_comes_again_when_the_service_says(header: Any, pauses: list[float]) -> None:
    after = header if isinstance(header, str) else header()
    told = Told(problem(429, "queue_full", headers={"Retry-After": after}), JOB)
    client_of(told).train("shop", "shop")
    assert 5 < pauses[0] < 9


def test_what_is_asked_to_come_again_too_late_is_told_at_once(pauses: list[float]) -> None:
    told = Told(problem(429, "too_many_requests", headers={"Retry-After": "3600"}))
    with pytest.raises(TooManyRequests) as caught:
        client_of(told).datasets.get("shop")
    assert caught.value.retry_after == 3600
    assert pauses == []


@pytest.mark.parametrize(("failure", "is_final"), [(LOST, True), (problem(503, "away"), True),
                                                   (NOT_SENT, False), (problem(429, "queue_full"), False),
                                                   (problem(408, "request_timeout"), False)],
                         ids=str)  # fmt: skip
def test_any_post_is_sent_again_only_if_it_was_not_carried_out(
    failure: Any, is_final: bool, pauses: list[float]
) -> None:
    client = client_of(Told(failure, {"key": "ccmtl_1"}))
    if is_final:
        with pytest.raises(ClientError):
            client.request("POST", "/v1/keys", {"name": "night"})
    else:
        assert client.request("POST", "/v1/keys", {"name": "night"}) == {"key": "ccmtl_1"}


def test_what_was_deleted_by_a_try_whose_answer_was_lost_is_deleted(pauses: list[float]) -> None:
    client_of(Told(LOST, problem(404, "model_not_found"))).models.delete("shop/versions/1")
    with pytest.raises(NotFound):
        client_of(Told(problem(404, "model_not_found"))).models.delete("shop")


def test_an_untrusted_certificate_is_told_at_once(pauses: list[float]) -> None:
    told = Told(httpx2.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed"))
    with pytest.raises(NoAnswer, match="certificate verify failed"):
        client_of(told).datasets.get("shop")


def test_the_log_tells_of_tries_and_not_of_keys(
    pauses: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    client = client_of(Told(NOT_SENT, {"items": [], "next_cursor": None}), api_key="ccmtl_secret")
    with caplog.at_level(logging.WARNING):
        assert list(client.datasets.list()) == []
    assert "connection refused" in caplog.text
    assert "Trying again in" in caplog.text
    assert "secret" not in caplog.text + repr(client)


def test_the_key_is_sent_as_bearer() -> None:
    told = Told({"name": "shop"})
    client_of(told, api_key="ccmtl_1").datasets.get("shop")
    assert told.sent[0].headers["Authorization"] == "Bearer ccmtl_1"


def test_names_cannot_lead_elsewhere() -> None:
    told = Told({}, {})
    client = client_of(told)
    client.datasets.get("a/b?c#d")
    client.models.get("shop@x?y/versions/3")
    assert [str(request.url.raw_path, "ascii") for request in told.sent] == [
        "/v1/datasets/a%2Fb%3Fc%23d",
        "/v1/models/shop@x%3Fy/versions/3",
    ]


def test_a_path_cannot_bring_the_key_to_another_server() -> None:
    client = client_of(told := Told({}), api_key="ccmtl_secret")
    with pytest.raises(ValueError, match="must begin with /"):
        client.request("GET", "http://elsewhere/v1/models")
    client.request("GET", "//elsewhere/v1/models")
    assert [request.url.host for request in told.sent] == ["service"]


@pytest.mark.parametrize("key", ["ccmtl_secret\n", "ccmtl_sécret", "ccmtl_secret\r\nX-Other: 1", ""])
def test_a_key_that_is_none_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(ValueError, match="api_key must be the key alone") as caught:
        Client("http://service", api_key=key)
    assert "cret" not in str(caught.value)


@pytest.mark.parametrize(
    "answer",
    [
        httpx2.Response(200, content=b"<html>Sign in</html>"),
        httpx2.Response(200, content=b"\xff\xfe{"),
        httpx2.Response(200, content=100_000 * b"["),
        httpx2.Response(200, headers={"Content-Encoding": "gzip"}, stream=httpx2.ByteStream(b"no gzip")),
    ],
)
def test_an_answer_that_cannot_be_read_is_told(answer: httpx2.Response, pauses: list[float]) -> None:
    with pytest.raises(StrangeAnswer, match="GET /v1/datasets/shop cannot be read; is it the service"):
        client_of(Told(answer)).datasets.get("shop")
    assert pauses == []


def test_an_answer_that_is_no_table_is_told() -> None:
    with pytest.raises(StrangeAnswer, match="no Arrow stream"):
        client_of(Told(httpx2.Response(200, content=b"<html>"))).forecast_all("shop")


def test_a_refusal_counts_also_where_its_text_or_its_pause_cannot_be_read(pauses: list[float]) -> None:
    headers = {"Content-Encoding": "gzip", "Retry-After": "Wed, 21 Oct 99999999999 07:28:00 GMT"}
    spoiled = httpx2.Response(503, headers=headers, stream=httpx2.ByteStream(b"no gzip"))
    assert client_of(Told(spoiled, JOB)).train("shop", "shop").id == "job_1"
    assert len(pauses) == 1


def test_a_refusal_without_end_is_read_in_part() -> None:
    class Endless(httpx2.SyncByteStream):
        n_read = 0

        def __iter__(self) -> Iterator[bytes]:
            while True:
                self.n_read += 1
                yield 65536 * b"x"

    with pytest.raises(ServiceFailed, match="500 http_500: xxx"):
        client_of(Told(httpx2.Response(500, stream=(body := Endless())))).datasets.get("shop")
    assert body.n_read <= 17


def test_all_pages_of_a_list_are_read() -> None:
    told = Told({"items": [1, 2], "next_cursor": "after-2"}, {"items": [3], "next_cursor": None})
    assert list(client_of(told).models.list()) == [1, 2, 3]
    assert told.sent[1].url.params["cursor"] == "after-2"


def test_threads_may_share_a_client(client: Client) -> None:
    found: list[int] = []

    def ask() -> None:
        found.extend(len(list(client.datasets.list())) for _ in range(5))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 20


def test_an_address_without_its_protocol_is_refused() -> None:
    with pytest.raises(ValueError, match="must begin with http:// or https://, not 'localhost:8000'"):
        Client("localhost:8000")
    with pytest.raises(ValueError, match="tables must be one of 'polars', 'pandas', 'arrow', not 'numpy'"):
        Client(tables="numpy")  # type: ignore[arg-type]
