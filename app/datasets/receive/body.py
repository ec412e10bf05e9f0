"""Write a request's body, decoded, to a file: whole or not at all."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

from fastapi.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from app.datasets.receive.decoding import Decoder, cut_off, refusing_undecodable
from app.http.errors import BadRequest, PayloadTooLarge

BATCH_BYTES = 1 << 20


class BodyFile:
    """The file at ``path``, growing by what ``decoder`` makes of the body, up to ``max_bytes``."""

    def __init__(self, path: Path, decoder: Decoder, max_bytes: int) -> None:
        self._file = path.open("wb")
        self._decoder = decoder
        self._max_bytes = max_bytes
        self._n_received = 0
        self._n_decoded = 0

    def write(self, data: bytes) -> None:
        """Decode and append ``data``; both its own bytes and the decoded ones count towards the limit."""
        self._n_received += len(data)
        self._check(self._n_received)
        with refusing_undecodable():
            for piece in self._decoder.feed(data):
                self._n_decoded += len(piece)
                self._check(self._n_decoded)
                self._file.write(piece)

    def finish(self, declared: int | None) -> None:
        """Check that everything arrived: ``declared`` bytes, and the end of the encoded stream."""
        if declared is not None and declared != self._n_received:
            raise cut_off(f"{self._n_received} of {declared} bytes arrived")
        if self._n_received:
            with refusing_undecodable():
                self._decoder.finish()

    def close(self) -> None:
        """Flush and close the file."""
        self._file.close()

    def _check(self, n_bytes: int) -> None:
        if n_bytes > self._max_bytes:
            raise too_large(self._max_bytes)


async def receive(
    body: AsyncIterator[bytes], content_length: str | None, path: Path, decoder: Decoder, max_bytes: int
) -> None:
    """Write the decoded ``body`` to ``path``.

    Raises
    ------
    BadRequest
        If the body ends early or is not encoded as it says.
    PayloadTooLarge
        As soon as more than ``max_bytes`` were announced, came in or came out.
    """
    declared = _declared_bytes(content_length)
    if declared is not None and declared > max_bytes:
        raise too_large(max_bytes)
    file = BodyFile(path, decoder, max_bytes)
    try:
        async for batch in _batches(body):
            await run_in_threadpool(file.write, batch)
        file.finish(declared)
    except ClientDisconnect:
        raise cut_off("the connection ended") from None
    finally:
        file.close()


def too_large(max_bytes: int) -> PayloadTooLarge:
    """Return the refusal of an upload over the limit."""
    return PayloadTooLarge(
        "upload_too_large", f"The upload is over the limit of {max_bytes} bytes (after decompression)."
    )


def _declared_bytes(content_length: str | None) -> int | None:
    if content_length is None:
        return None
    if not (content_length.isascii() and content_length.isdecimal()):
        raise BadRequest("invalid_content_length", "The header Content-Length is not a number.")
    return int(content_length)


async def _batches(body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    batch = bytearray()
    async for chunk in body:
        batch += chunk
        if len(batch) >= BATCH_BYTES:
            yield bytes(batch)
            batch.clear()
    if batch:
        yield bytes(batch)
