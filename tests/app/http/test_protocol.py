"""What is no whole HTTP request is refused with a problem document, within bounds of bytes and of time."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.server import ServerState

from app.http.metrics import Metrics
from app.http.protocol import LINGER_BYTES, MAX_HEAD_BYTES, MAX_HEADER_LINES, MAX_WAITING, ProblemProtocol
from tests.support.processes import PATIENCE
from tests.support.served import Address, served

GET = b"GET /a HTTP/1.1\r\nHost: localhost\r\n"
CLOSE = GET + b"Connection: close\r\n\r\n"
POST = b"POST /a HTTP/1.1\r\nHost: localhost\r\n"


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer what arrived, or 400 where the body was cut off."""
    request = Request(scope, receive)
    try:
        seen = {"path": request.url.path, "body": (await request.body()).decode()}
    except ClientDisconnect:
        await JSONResponse({"code": "body_cut_off"}, 400)(scope, receive, send)
    else:
        headers = sorted(name for name, _ in request.headers.items())
        await JSONResponse({**seen, "headers": headers})(scope, receive, send)


class Hasty(ProblemProtocol):
    head_seconds = body_seconds = 0.2


@pytest.fixture(scope="module")
def address() -> Iterator[Address]:
    with served(echo) as address:
        yield address


@pytest.fixture(scope="module")
def hasty() -> Iterator[Address]:
    with served(echo, Hasty) as address:
        yield address


def talk(address: Address, sent: bytes, *, ends: bool = False) -> bytes:
    """All that is answered until the service closes the connection."""
    answer = b""
    with socket.create_connection(address, timeout=PATIENCE) as connection:
        connection.sendall(sent)
        if ends:
            connection.shutdown(socket.SHUT_WR)
        while piece := connection.recv(65536):
            answer += piece
    return answer


def answers(received: bytes) -> list[tuple[int, dict[str, Any]]]:
    """Statuses and bodies of answers that are one after the other."""
    found = []
    while received:
        head, _, received = received.partition(b"\r\n\r\n")
        lines = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:])
        n_bytes = int(lines[b"content-length"])
        found.append((int(head.split()[1]), json.loads(received[:n_bytes])))
        received = received[n_bytes:]
    return found


def refusal(received: bytes) -> tuple[int, str]:
    """Status and code of the only answer, which is a problem document and the last one."""
    head = received.partition(b"\r\n\r\n")[0]
    assert b"content-type: application/problem+json" in head
    assert b"connection: close" in head
    ((status, problem),) = answers(received)
    assert problem["status"] == status
    assert b"x-request-id: " + problem["request_id"].encode() in head
    return status, problem["code"]


def lines(n: int) -> bytes:
    return GET + b"X: y\r\n" * (n - 1) + b"Connection: close\r\n\r\n"


def line_of(n_bytes: int) -> bytes:
    """A request whose head has so many bytes."""
    return CLOSE[:-2] + b"X: ".ljust(n_bytes - len(CLOSE) - 2, b"x") + b"\r\n\r\n"


@pytest.mark.parametrize(
    "sent", [line_of(MAX_HEAD_BYTES), lines(MAX_HEADER_LINES - 1)], ids=["bytes", "lines"]
)
def test_a_head_within_the_bounds_is_read(address: Address, sent: bytes) -> None:
    ((status, _),) = answers(talk(address, sent))
    assert status == 200


@pytest.mark.parametrize(
    "sent",
    [
        line_of(MAX_HEAD_BYTES + 1),
        lines(MAX_HEADER_LINES),
        GET + b"X: y\r\n" * (MAX_HEADER_LINES + 1),
        GET + b"X: " + b"x" * MAX_HEAD_BYTES,
        b"GET /" + b"x" * MAX_HEAD_BYTES,
        b"\r\n" * MAX_HEAD_BYTES,
        POST + b"Content-Length: 200000\r\nX: " + b"x" * 200_000,
    ],
    ids=[
        "bytes",
        "lines",
        "lines without end",
        "header without end",
        "request line without end",
        "empty lines",
        "body",
    ],
)
def test_a_head_beyond_the_bounds_is_refused_before_its_end(address: Address, sent: bytes) -> None:
    assert refusal(talk(address, sent)) == (431, "head_too_large")


@pytest.mark.parametrize("after", [b"0\r\nX: ", b"2;x="], ids=["trailer", "extension of a chunk"])
def test_what_is_around_a_body_is_bounded_too(address: Address, after: bytes) -> None:
    sent = POST + b"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n" + after + b"x" * 3 * MAX_HEAD_BYTES
    assert refusal(talk(address, sent)) == (431, "head_too_large")


def test_trailers_are_no_headers(address: Address) -> None:
    sent = (
        POST
        + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\nab\r\n0\r\nAuthorization: x\r\n\r\n"
    )
    ((status, seen),) = answers(talk(address, sent))
    assert (status, seen["body"]) == (200, "ab")
    assert "authorization" not in seen["headers"]


class Wire(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)})
        self.written, self.is_closed = b"", False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def can_write_eof(self) -> bool:
        return False

    def close(self) -> None:
        self.is_closed = True

    def is_closing(self) -> bool:
        return self.is_closed

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


def test_what_follows_a_refusal_is_not_read_and_ends_the_connection() -> None:
    async def send_much() -> tuple[Wire, int]:
        config = uvicorn.Config(echo, log_config=None)
        protocol, wire = ProblemProtocol(config, ServerState(), {}), Wire()
        protocol.connection_made(wire)
        n_sent = 0
        while not wire.is_closed:
            protocol.data_received(b"x" * 2**18)
            n_sent += 2**18
        protocol.connection_lost(None)
        return wire, n_sent

    wire, n_sent = asyncio.run(send_much())
    assert refusal(wire.written) == (400, "not_http")
    assert n_sent <= LINGER_BYTES + 2**19


@pytest.mark.parametrize(
    "sent", [b"G", GET, GET + b"\r\n" + GET], ids=["a byte", "a header", "after an answer"]
)
def test_a_head_that_does_not_end_in_time_is_refused(hasty: Address, sent: bytes) -> None:
    *before, last = answers(talk(hasty, sent))
    assert [status for status, _ in before] == [200] * sent.count(b"\r\n\r\n")
    assert (last[0], last[1]["code"]) == (408, "request_timeout")


@pytest.mark.parametrize("sent", [b"", b"\r\n"], ids=["nothing", "an empty line"])
def test_a_new_connection_that_asks_nothing_is_closed(hasty: Address, sent: bytes) -> None:
    assert talk(hasty, sent) == b""


@pytest.mark.parametrize(
    "begun", [b"Content-Length: 9\r\n\r\nab", b"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n"]
)
def test_a_body_that_falls_silent_is_refused(hasty: Address, begun: bytes) -> None:
    assert refusal(talk(hasty, POST + begun)) == (408, "request_timeout")


def test_refusals_are_counted_by_code(address: Address) -> None:
    def count() -> float:
        text = Metrics("0.1.0", dict, int).text().decode()
        found = re.search(r'^ccmtl_http_unread_requests_total\{code="not_http"\} (.+)$', text, re.MULTILINE)
        return 0.0 if found is None else float(found[1])

    before = count()
    assert refusal(talk(address, b"secret\r\n\r\n")) == (400, "not_http")
    assert count() == before + 1


class SkippingLoop(asyncio.SelectorEventLoop):
    """A loop that can be told that time has passed."""

    skipped = 0.0

    def time(self) -> float:
        return super().time() + self.skipped

    async def skip(self, seconds: float) -> None:
        self.skipped += seconds
        for _ in range(5):
            await asyncio.sleep(0)


POLITE = POST + b"Expect: 100-continue\r\nContent-Length: 40\r\n\r\n"


async def never(scope: Scope, receive: Receive, send: Send) -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("app", "begun", "pieces", "status"),
    [
        (echo, POST + b"Connection: close\r\nContent-Length: 40\r\n\r\n", [b"x"] * 40, b"200"),
        (never, POLITE, [b""] * 9, b""),
        (never, POST + b"Content-Length: 400000\r\n\r\n" + b"x" * 70_000, [b""] * 9, b""),
        (never, GET + b"\r\nGET /b", [b""] * 9, b""),
        (never, POST + b"Content-Length: 40\r\n\r\n", [b""] * 9, b"408"),
    ],
    ids=["slow but steady", "not asked to go on", "not read", "behind another", "silent"],
)
def test_only_the_client_is_waited_for(
    app: ASGIApp, begun: bytes, pieces: list[bytes], status: bytes
) -> None:
    async def send_slowly() -> bytes:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SkippingLoop)
        protocol, wire = ProblemProtocol(uvicorn.Config(app, log_config=None), ServerState(), {}), Wire()
        protocol.connection_made(wire)
        protocol.data_received(begun)
        for piece in pieces:
            await loop.skip(ProblemProtocol.body_seconds / 2)
            if piece:
                protocol.data_received(piece)
        await loop.skip(0)
        protocol.connection_lost(None)
        for task in protocol.tasks:
            task.cancel()
        return wire.written

    with asyncio.Runner(loop_factory=SkippingLoop) as runner:
        assert runner.run(send_slowly())[9:12] == status


@pytest.mark.parametrize(
    "begun", [b"Content-Length: 9\r\n\r\nab", b"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n"]
)
def test_a_body_that_is_cut_off_is_answered_by_the_application(address: Address, begun: bytes) -> None:
    assert answers(talk(address, POST + begun, ends=True)) == [(400, {"code": "body_cut_off"})]


def test_a_client_that_sends_no_more_gets_its_answers(address: Address) -> None:
    assert [status for status, _ in answers(talk(address, (GET + b"\r\n") * 2, ends=True))] == [200, 200]
    assert refusal(talk(address, GET, ends=True)) == (400, "not_http")


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (b"GET /a HTTP/1.1\r\n\r\n", "invalid_host"),
        (GET + b"Host: localhost\r\n\r\n", "invalid_host"),
        (b"GET /a HTTP/1.0\r\nHost: localhost\r\nHost: other\r\n\r\n", "invalid_host"),
        (b"GET /a HTTP/1.1\r\nHost:\r\n\r\n", "invalid_host"),
        (b"GET /a HTTP/1.1\r\nHost: shop.example@localhost\r\n\r\n", "invalid_host"),
        (b"GET /a HTTP/1.1\r\nHost: localhost, shop.example\r\n\r\n", "invalid_host"),
        (b"GET http://shop.example/a HTTP/1.1\r\nHost: localhost\r\n\r\n", "invalid_host"),
        (b"GET http://localhost@shop.example/a HTTP/1.1\r\nHost: localhost\r\n\r\n", "invalid_host"),
        (b"GET /a\r\n\r\n", "not_http"),
        (b"GET /a HTTP/0.9\r\nHost: localhost\r\n\r\n", "not_http"),
        (b"GET /a HTTP/2.0\r\nHost: localhost\r\n\r\n", "not_http"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "not_http"),
        (b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost:80\r\n\r\n", "not_http"),
        (POST + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n", "not_http"),
    ],
)
def test_what_rfc_9112_refuses(address: Address, sent: bytes, code: str) -> None:
    assert refusal(talk(address, sent)) == (400, code)


@pytest.mark.parametrize("target", [b"http://LOCALHOST/a", b"/a"])
def test_a_host_is_named_alike_in_both_places(address: Address, target: bytes) -> None:
    ((status, seen),) = answers(talk(address, CLOSE.replace(b"/a", target)))
    assert (status, seen["path"]) == (200, "/a")
    assert answers(talk(address, b"GET http://localhost HTTP/1.0\r\n\r\n"))[0][1]["path"] == "/"


def test_each_request_of_a_connection_names_a_host(address: Address) -> None:
    first, second = answers(talk(address, GET + b"\r\nGET /b HTTP/1.1\r\n\r\n"))
    assert (first[0], first[1]["path"]) == (200, "/a")
    assert (second[0], second[1]["code"]) == (400, "invalid_host")


@pytest.mark.parametrize("fault", [b"nonsense\r\n\r\n", POST + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n"])
def test_a_refusal_comes_after_the_answers_to_requests_before(address: Address, fault: bytes) -> None:
    *before, last = answers(talk(address, (GET + b"\r\n") * 3 + fault))
    assert [status for status, _ in before] == [200] * 3
    assert (last[0], last[1]["code"]) == (400, "not_http")


@pytest.mark.parametrize("one", [GET + b"\r\n", POST + b"Content-Length: 2\r\n\r\nab"], ids=["head", "body"])
def test_requests_that_wait_for_answers_are_bounded(address: Address, one: bytes) -> None:
    *before, last = answers(talk(address, one * (MAX_WAITING + 500)))
    assert [status for status, _ in before] == [200] * (MAX_WAITING + 1)
    assert (last[0], last[1]["code"]) == (400, "too_many_waiting")
    assert len(answers(talk(address, one * MAX_WAITING + CLOSE))) == MAX_WAITING + 1


@pytest.mark.parametrize("wish", [b"websocket", b"h2c"])
def test_a_wish_for_another_protocol_is_passed_over(address: Address, wish: bytes) -> None:
    asks = b"Connection: keep-alive, Upgrade\r\nUpgrade: %s\r\nSec-WebSocket-Version: 13\r\n" % wish
    sent = GET + asks + b"\r\n" + POST + asks + b"Content-Length: 2\r\n\r\nab" + CLOSE
    seen = answers(talk(address, sent))
    assert [status for status, _ in seen] == [200] * 3
    assert [answer["body"] for _, answer in seen] == ["", "ab", ""]
