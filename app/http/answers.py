"""What happens to every answer on its way out.

It gets the request's id, which is also in the log, and tells browsers to run nothing in it. JSON ends with a
line feed, for those who look at it in a terminal; a long answer is compressed, lines of JSON piece by piece;
and what is read gets an entity tag, so that who has it already is answered 304.

This is done here once, and not by each endpoint, because FastAPI writes most bodies itself. Starlette's
``GZipMiddleware`` alone would add 25 µs to the 150 µs that a prediction of one row takes.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import re
import secrets
import zlib

from fastapi.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.http.error_handlers import stopped
from app.processes.logs import REQUEST_ID

COMPRESSED_FROM = 2048
"""Bytes. Shorter answers, among them all predictions of a few rows, are sent as they are."""
LEVEL = 1
"""zlib's: 7 MB of predictions shrink to 1.5 in 0.12 s; level 9 takes 1.6 s and makes them 1.3."""
IN_A_THREAD_FROM = 2**17
"""Bytes. Compressing so many takes half a millisecond, for which no other request should wait."""
_GZIP = re.compile(rb"\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))", re.IGNORECASE)
"""In the encodings that a client accepts; of quality 0 is what it does not."""
_LINES = (b"content-type", b"application/x-ndjson")
_JSON = {(b"content-type", b"application/json"), (b"content-type", b"application/problem+json")}


_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:-]{1,128}")
"""An id that the caller gives; another is replaced, since it goes into the log."""
NOTHING_RUNS = [
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
]


class FinishedAnswers:
    """Middleware for the whole application; the bodies of answers that are not JSON stay as they are."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer as the application does, but for the last touch."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _id_of(scope)
        REQUEST_ID.set(request_id.decode())
        start: Message | None = None
        packed: Packed | None = None
        has_begun = False

        async def send_finished(message: Message) -> None:
            nonlocal start, packed, has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                present = {name for name, _ in message["headers"]}
                added = [(b"x-request-id", request_id), *NOTHING_RUNS]
                headers = [*message["headers"], *(header for header in added if header[0] not in present)]
                message = {**message, "headers": headers}
                if not _JSON.isdisjoint(headers):
                    start = message
                    return
                if _LINES in headers:
                    headers.append((b"vary", b"Accept-Encoding"))
                    if _takes_gzip(scope):
                        headers.append((b"content-encoding", b"gzip"))
                        packed = Packed()
            elif packed is not None:
                message = {**message, "body": await run_in_threadpool(packed.piece, message)}
            if start is not None:
                if message.get("body") and not message.get("more_body", False):
                    await _finish(start, message, scope)
                await send(start)
                start = None
            await send(message)

        try:
            await self._app(scope, receive, send_finished)
        except asyncio.CancelledError:  # the server has to stop, and waits no longer
            if has_begun:
                raise
            await stopped(Request(scope))(scope, receive, send_finished)


class Packed:
    """A stream that is compressed as it comes; each piece can be read when it arrives."""

    def __init__(self) -> None:
        self._packer = zlib.compressobj(LEVEL, wbits=zlib.MAX_WBITS + 16)  # gzip's header and end

    def piece(self, message: Message) -> bytes:
        """Return what is sent in place of the body of the message."""
        ends = not message.get("more_body", False)
        body = self._packer.compress(message.get("body", b""))
        return body + self._packer.flush(zlib.Z_FINISH if ends else zlib.Z_SYNC_FLUSH)


def etag_matches(if_none_match: str | None, etag: str) -> bool:
    """Whether the header ``If-None-Match`` names the tag, or all; weak and strong tags are not told apart."""
    if if_none_match is None:
        return False
    tags = {tag.strip().removeprefix("W/") for tag in if_none_match.split(",")}
    return not tags.isdisjoint({"*", etag.removeprefix("W/")})


def _takes_gzip(scope: Scope) -> bool:
    return any(name == b"accept-encoding" and _GZIP.search(value) for name, value in scope["headers"])


def _id_of(scope: Scope) -> bytes:
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _REQUEST_ID.fullmatch(value):
            return bytes(value)
    return secrets.token_hex(8).encode()


async def _finish(start: Message, message: Message, scope: Scope) -> None:
    body: bytes = message["body"]
    if not body.endswith(b"\n"):
        body += b"\n"
    headers = [header for header in start["headers"] if header[0] != b"content-length"]
    if scope["method"] == "GET" and start["status"] == 200:
        etag = f'W/"{hashlib.sha256(body).hexdigest()[:32]}"'
        headers.append((b"etag", etag.encode()))
        given = next((value for name, value in scope["headers"] if name == b"if-none-match"), None)
        if given is not None and etag_matches(given.decode("latin-1"), etag):
            start["status"], start["headers"], message["body"] = 304, headers, b""
            return
    if len(body) >= COMPRESSED_FROM:
        headers.append((b"vary", b"Accept-Encoding"))
        if _takes_gzip(scope):
            headers.append((b"content-encoding", b"gzip"))
            if len(body) < IN_A_THREAD_FROM:
                body = gzip.compress(body, LEVEL)
            else:
                body = await run_in_threadpool(gzip.compress, body, LEVEL)
    start["headers"] = [*headers, (b"content-length", b"%d" % len(body))]
    message["body"] = body
