"""Write the body of an upload, decoded, to a file: whole or not at all."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fastapi.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from app.http.errors import BadRequest, PayloadTooLarge
from app.http.request_body import Decoder, undecodable
from ccmtl_core.tables.decompression import CompressedDataError

BATCH_BYTES = 1 << 20
EXPANSION_FROM = 1 << 28
"""Bytes. What unpacks to less is no bomb, however often it repeats itself."""


@dataclass(frozen=True)
class Bounds:
    """How long a body may be, and how many times its size it may unpack to once it is large."""

    max_bytes: int
    max_expansion: int

    def unpacked(self, n_packed: int) -> int:
        """Return how many bytes may come out of ``n_packed``."""
        return min(self.max_bytes, max(EXPANSION_FROM, self.max_expansion * n_packed))

    def refusal(self, n_packed: int) -> PayloadTooLarge:
        """Return the refusal of ``n_packed`` bytes out of which more come."""
        if self.unpacked(n_packed) == self.max_bytes:
            return too_large(self.max_bytes)
        return PayloadTooLarge(
            "expands_too_much",
            f"The upload unpacks to more than {self.max_expansion} times its size, as bombs do; send it less "
            "compressed, or let the operator raise CCMTL_MAX_EXPANSION.",
        )


class BodyFile:
    """The file at ``path``, growing by what ``decoder`` makes of the body, within ``bounds``."""

    def __init__(self, path: Path, decoder: Decoder | None, bounds: Bounds) -> None:
        self._file = path.open("wb")
        self._decoder = decoder
        self._bounds = bounds
        self._n_received = 0
        self._n_decoded = 0

    def write(self, chunks: Sequence[bytes]) -> None:
        """Decode and append ``chunks``; both their own bytes and the decoded ones count towards the limit."""
        for chunk in chunks:
            self._n_received += len(chunk)
            self._check(self._n_received)
            with _refusing_undecodable():
                for piece in [chunk] if self._decoder is None else self._decoder.feed(chunk):
                    self._n_decoded += len(piece)
                    self._check(self._n_decoded)
                    self._file.write(piece)

    def finish(self, declared: int | None) -> None:
        """Check that everything arrived: ``declared`` bytes, and the end of the encoded stream."""
        if declared is not None and declared != self._n_received:
            raise _cut_off(f"{self._n_received} of {declared} bytes arrived")
        if self._n_received and self._decoder is not None:
            with _refusing_undecodable():
                self._decoder.finish()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _check(self, n_bytes: int) -> None:
        if n_bytes > self._bounds.unpacked(self._n_received):
            raise self._bounds.refusal(self._n_received)


async def receive(
    body: AsyncIterator[bytes],
    content_length: str | None,
    path: Path,
    decoder: Decoder | None,
    bounds: Bounds,
) -> None:
    """Write the decoded ``body`` to ``path``.

    Raise BadRequest if the body ends early or is not encoded as it says, PayloadTooLarge as soon as more than
    the bounds allow was announced, came in or came out.
    """
    declared = _declared_bytes(content_length)
    if declared is not None and declared > bounds.max_bytes:
        raise too_large(bounds.max_bytes)
    file = BodyFile(path, decoder, bounds)
    try:
        async for batch in _batches(body):
            await run_in_threadpool(file.write, batch)
        file.finish(declared)
    except ClientDisconnect:
        raise _cut_off("the connection ended") from None
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


async def _batches(body: AsyncIterator[bytes]) -> AsyncIterator[list[bytes]]:
    batch, n_bytes = [], 0
    async for chunk in body:
        batch.append(chunk)
        n_bytes += len(chunk)
        if n_bytes >= BATCH_BYTES:
            yield batch
            batch, n_bytes = [], 0
    if n_bytes:
        yield batch


@contextmanager
def _refusing_undecodable() -> Iterator[None]:
    try:
        yield
    except CompressedDataError as error:
        if error.is_cut_off:
            raise _cut_off(str(error)) from None
        raise undecodable(error) from None


def _cut_off(reason: str) -> BadRequest:
    return BadRequest(
        "upload_cut_off", f"The upload was cut off: {reason}. Nothing was stored; send it again."
    )
