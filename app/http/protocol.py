"""Refuse what is no whole HTTP request before the application sees it, as other faults are answered.

uvicorn's protocol has no bound on the head of a request (the request line and the header lines), waits for
its end for ever, reads on while thousands of requests wait for their answers, and answers in plain text what
its parser gives up on. :class:`ProblemProtocol` has bounds, and answers with a problem document. It counts
bytes and looks at the clock only between pieces of a request: one that arrives whole takes 2 µs more.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from http import HTTPStatus
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from app.http.errors import MEDIA_TYPE, AppError, BadRequest, HeadTooLarge, RequestTimeout
from app.http.metrics import UNREAD

MAX_HEAD_BYTES = 64 * 1024
"""The longest head of a request, and the longest stretch of a body in chunks that brings no byte of it."""
MAX_HEADER_LINES = 200
MAX_WAITING = 100
"""Requests of one connection that may wait for the answers to those before them."""
LINGER_BYTES = 1024**2
"""So much of what a refused client goes on sending is read and dropped, so that it gets the answer."""
_HOST = re.compile(rb"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._~!$&'()*+,;=%-]+)(?::[0-9]*)?")
_ABSOLUTE = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]*://([^/?]*)(.*)")


class _CutOffRequest(RequestResponseCycle):
    """A request whose body was cut off: nothing is received any more, and it can still be answered."""

    _is_complete = False

    @property
    def response_complete(self) -> bool:
        """Whether nothing is left to do; `receive` of uvicorn then says that the client is gone."""
        return self._is_complete or not self.response_started

    @response_complete.setter
    def response_complete(self, is_complete: bool) -> None:
        self._is_complete = is_complete


class ProblemProtocol(HttpToolsProtocol):
    """The protocol of uvicorn, with bounds on what a client sends and problem documents for refusals."""

    head_seconds = 10.0
    """How long the head of a request may take, from its first byte, and a new connection may be silent."""
    body_seconds = 60.0
    """How long a body may be silent that has not come whole."""
    linger_seconds = 2.0
    """How long a refused client is still listened to, so that it gets the answer."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._n_head = 0  # bytes of a head that has not come whole
        self._is_in_body = False
        self._hosts: list[bytes] | None = None  # the header Host of the request before, which was in order
        self._has_progressed = False  # whether a piece of a body or the end of a request was in what came
        self._since = 0.0  # when the head began, or the last byte of the body came
        self._watch: asyncio.TimerHandle | None = None
        self._fault: AppError | None = None  # why a callback of the parser gave up
        self._without_upgrade: bytes | None = None  # the head to go by in place of one that asks for more
        self._last_words: bytes | None = None  # a refusal that waits for the answers before it
        self._is_refused = False
        self._n_dropped = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        super().connection_lost(exc)
        if self._watch is not None:
            self._watch.cancel()

    def data_received(self, data: bytes) -> None:
        """Hand what came to the parser, in pieces that keep the bounds."""
        self._unset_keepalive_if_required()
        # A body comes whole as it is, in pieces of uvicorn's: to cut these costs a large upload a second.
        is_whole = self._is_in_body or len(data) <= MAX_HEAD_BYTES - self._n_head
        if is_whole and not self._is_refused:
            self._feed(data)
            return
        left = memoryview(data)
        while left and not self._is_refused:
            n_bytes = MAX_HEAD_BYTES - self._n_head
            self._feed(left[:n_bytes])
            left = left[n_bytes:]
        self._n_dropped += len(left)
        if self._n_dropped > LINGER_BYTES and self._last_words is None:
            self.transport.close()

    def eof_received(self) -> bool:  # type: ignore[override]
        """Answer what was asked by a client that sends no more; True keeps the connection open for it."""
        if self._is_refused:
            return self._last_words is not None
        if self._is_in_body:
            if not self.cycle.response_started:
                self.cycle.__class__ = _CutOffRequest
            self.cycle.message_event.set()
        elif self._has_begun():
            self._refuse(BadRequest("not_http", "The connection ended before the head of the request did."))
            return self._last_words is not None
        if self.cycle is None or (self.cycle.response_started and not self.pipeline):
            return False
        self.cycle.keep_alive = False
        return True

    def on_headers_complete(self) -> None:
        """Begin the request, unless its head has a fault."""
        if self.parser.should_upgrade():
            self._without_upgrade = self._head_without_upgrade()
            return
        hosts = [value for name, value in self.headers if name == b"host"]
        is_plain = hosts == self._hosts and self.parser.get_http_version() == "1.1"
        if not is_plain or self.url[:1] != b"/" or len(self.headers) > MAX_HEADER_LINES:
            self._check_head(hosts)
        super().on_headers_complete()
        self.headers = []  # trailers are no headers of the request
        self._is_in_body = True
        if len(self.pipeline) > MAX_WAITING:
            waiting = (
                f"More than {MAX_WAITING} requests of this connection wait for their answers; read these."
            )
            self._give_up(BadRequest("too_many_waiting", waiting))

    def on_body(self, body: bytes) -> None:
        """Note that the body goes on."""
        self._has_progressed = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Note that what comes next is the head of another request."""
        if self._without_upgrade is None:
            self._is_in_body, self._n_head, self._has_progressed = False, 0, True
            super().on_message_complete()

    def on_response_complete(self) -> None:
        """Refuse what came after the request that is answered now, if it had a fault."""
        if self._last_words is not None and not self.pipeline and not self.transport.is_closing():
            self._say(self._last_words)
            self._last_words = None
            self.server_state.total_requests += 1
        else:
            super().on_response_complete()

    def _feed(self, piece: bytes | memoryview) -> None:
        self._has_progressed = False
        was_in_body = self._is_in_body
        while piece:
            try:
                self.parser.feed_data(piece)
                break
            except httptools.HttpParserUpgrade as pause:
                piece = self._go_on_without_upgrade(piece[pause.args[0] :])
            except httptools.HttpParserError:
                unreadable = "What was sent is no HTTP request that can be read, or of an unknown method."
                self._refuse(self._fault or BadRequest("not_http", unreadable))
                return
        if self._is_in_body:
            self._wait_for_body(piece, was_in_body)
        elif not self._has_progressed or self.scope is not self.cycle.scope:
            self._wait_for_head(piece)

    def _has_begun(self) -> bool:
        """Whether a request has begun of which not all headers have come."""
        return self.scope is not None and (self.cycle is None or self.scope is not self.cycle.scope)

    def _wait_for_head(self, piece: bytes | memoryview) -> None:
        if self._n_head == 0:
            self._wait()
        # Where a request began behind another in one piece is not known; its head is counted from the next.
        self._n_head += 1 if self._has_progressed else len(piece)
        if self._n_head >= MAX_HEAD_BYTES or (self._has_begun() and len(self.headers) > MAX_HEADER_LINES):
            self._refuse(_too_large())

    def _wait_for_body(self, piece: bytes | memoryview, was_in_body: bool) -> None:
        self._wait()
        # Sizes and extensions of chunks and lines after the last one bring no byte of the body.
        self._n_head = self._n_head + len(piece) if was_in_body and not self._has_progressed else 0
        if self._n_head >= MAX_HEAD_BYTES:
            self._refuse(_too_large())

    def _check_head(self, hosts: list[bytes]) -> None:
        """Refuse a head that is too long, of another version, or for another host (RFC 9112)."""
        version = self.parser.get_http_version()
        absolute = _ABSOLUTE.fullmatch(self.url)
        if len(self.headers) > MAX_HEADER_LINES:
            self._give_up(_too_large())
        if version not in ("1.1", "1.0"):
            self._give_up(BadRequest("not_http", "HTTP/1.1 and HTTP/1.0 are spoken here alone."))
        if len(hosts) > 1 or (not hosts and version == "1.1"):
            times = f"The header Host has to stand once; it stands {len(hosts)} times."
            self._give_up(BadRequest("invalid_host", times))
        if hosts and not _HOST.fullmatch(hosts[0]):
            self._give_up(BadRequest("invalid_host", "The header Host is not `name` or `name:port`."))
        if absolute:
            if hosts and absolute[1].lower() != hosts[0].lower():
                other = "The request line names another host than the header Host; send `/path` alone."
                self._give_up(BadRequest("invalid_host", other))
            self.url = absolute[2] if absolute[2].startswith(b"/") else b"/" + absolute[2]
        self._hosts = hosts or None

    def _give_up(self, fault: AppError) -> None:
        self._fault = fault
        raise fault

    def _head_without_upgrade(self) -> bytes:
        """Return the head without the wish for another protocol, of which there is none here."""
        if self.parser.get_method() == b"CONNECT":
            self._give_up(BadRequest("not_http", "The method CONNECT is for proxies, and this is none."))
        version = self.parser.get_http_version().encode()
        lines = [b"%s %s HTTP/%s" % (self.parser.get_method(), self.url, version)]
        for name, value in self.headers:
            if name == b"connection":
                value = b", ".join(t for t in value.split(b",") if t.strip().lower() != b"upgrade")
            if name != b"upgrade":
                lines.append(name + b": " + value)
        return b"\r\n".join(lines) + b"\r\n\r\n"

    def _go_on_without_upgrade(self, rest: bytes | memoryview) -> bytes:
        """Return what a new parser is to read; the old one takes the body for the other protocol's."""
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        head, self._without_upgrade = self._without_upgrade or b"", None
        return head + rest

    def _wait(self) -> None:
        """Note that something is awaited since now, and look after it."""
        self._since = self.loop.time()
        if self._watch is None:
            self._watch = self.loop.call_later(self.head_seconds, self._look)

    def _look(self) -> None:
        """End the connection if what is awaited has not come in time."""
        self._watch = None
        if self._is_refused or not (self._is_in_body or self._n_head or self.cycle is None):
            return
        now = self.loop.time()
        if self.flow.read_paused or (self._is_answering() if not self._is_in_body else self._is_held_back()):
            self._since = now  # it is the service that takes its time
        seconds = self.body_seconds if self._is_in_body else self.head_seconds
        left = self._since + seconds - now
        if left > 0:
            self._watch = self.loop.call_later(min(left, self.head_seconds), self._look)
        elif not self._is_in_body and not self._has_begun():
            self.transport.close()  # nothing came, or empty lines
        else:
            what = "Nothing more of the body" if self._is_in_body else "The rest of the request's head"
            self._refuse(RequestTimeout("request_timeout", f"{what} came within {seconds:g} s."))

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _is_held_back(self) -> bool:
        """Whether the client waits for the word to send its body, or for answers to requests before."""
        return bool(self.pipeline) or self.cycle.waiting_for_100_continue

    def _refuse(self, error: AppError) -> None:
        """Answer after what was asked before, read no more, and close the connection."""
        if self._is_refused:
            return
        self._is_refused = True
        UNREAD.labels(error.problem.code).inc()
        request_id = secrets.token_hex(8)
        self.logger.warning("refused a request before it was read: %s (%s)", error, request_id)
        words = self._words(error, request_id)
        if self._is_in_body and not self.pipeline:
            if self.cycle.response_started:
                self.transport.close()
                return
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            self._say(words)
        elif self._is_in_body or self._is_answering():
            if self._is_in_body:
                self.pipeline.popleft()
            self._last_words = words
        else:
            self._say(words)

    def _words(self, error: AppError, request_id: str) -> bytes:
        problem = error.problem.model_copy(update={"request_id": request_id})
        body = problem.model_dump_json(exclude={"error", "report"}).encode() + b"\n"
        status = HTTPStatus(problem.status)
        headers = [
            *self.server_state.default_headers,
            (b"content-type", MEDIA_TYPE.encode()),
            (b"content-length", b"%d" % len(body)),
            (b"x-request-id", request_id.encode()),
            (b"connection", b"close"),
        ]
        head = b"".join(b"%s: %s\r\n" % header for header in headers)
        return b"HTTP/1.1 %d %s\r\n%s\r\n%s" % (status, status.phrase.encode(), head, body)

    def _say(self, words: bytes) -> None:
        """Write the last answer; go on listening for a moment, as a reset would overtake it."""
        self.transport.write(words)
        if self.transport.can_write_eof():
            self.transport.write_eof()
        if self._watch is not None:
            self._watch.cancel()
        self._watch = self.loop.call_later(self.linger_seconds, self.transport.close)


def _too_large() -> HeadTooLarge:
    return HeadTooLarge(
        "head_too_large",
        f"The head of a request may have {MAX_HEAD_BYTES} bytes, request line included, and "
        f"{MAX_HEADER_LINES} header lines.",
    )
