"""Decompress bodies sent with gzip or zstd, in pieces of bounded size.

Each piece is handed out before the next is made, so that whoever counts them can stop a bomb early.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Protocol

import zstandard

from app.http.errors import BadRequest, UnsupportedMediaType

PIECE_BYTES = 1 << 20
# A zstd block of four bytes can hold 128 KiB: one slice of this size makes at most 32 MiB.
ZSTD_SLICE_BYTES = 1 << 10
ZSTD_MAX_WINDOW_BYTES = 1 << 27
GZIP_WINDOW_BITS = 31


class Decoder(Protocol):
    """Turns the bytes of one body into what they encode."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield what ``data`` adds."""

    def finish(self) -> None:
        """Raise `BadRequest` unless the encoded stream is whole."""


class IdentityDecoder:
    """Bytes as they are."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield ``data``."""
        yield data

    def finish(self) -> None:
        """Accept: plain bytes do not tell whether they are whole."""


class GzipDecoder:
    """One or more gzip members (RFC 1952)."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(GZIP_WINDOW_BITS)
        self._inside = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield what ``data`` adds, at most ``PIECE_BYTES`` at a time."""
        full = False
        while data or full:
            self._inside = True
            try:
                piece = self._member.decompress(data, PIECE_BYTES)
            except zlib.error as error:
                raise _undecodable("gzip", error) from None
            yield piece
            full = len(piece) == PIECE_BYTES
            data = self._member.unconsumed_tail
            if self._member.eof:
                data, full = self._member.unused_data, False
                self._member = zlib.decompressobj(GZIP_WINDOW_BITS)
                self._inside = False

    def finish(self) -> None:
        """Raise `BadRequest` when the last member has no end."""
        if self._inside:
            raise cut_off("its gzip stream has no end")


class ZstdDecoder:
    """One or more zstd frames (RFC 8878)."""

    def __init__(self) -> None:
        self._context = zstandard.ZstdDecompressor(max_window_size=ZSTD_MAX_WINDOW_BYTES)
        self._frame = self._context.decompressobj()
        self._inside = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield what ``data`` adds, at most 32 MiB at a time."""
        for start in range(0, len(data), ZSTD_SLICE_BYTES):
            rest = data[start : start + ZSTD_SLICE_BYTES]
            while rest:
                self._inside = True
                try:
                    yield self._frame.decompress(rest)
                except zstandard.ZstdError as error:
                    raise _undecodable("zstd", error) from None
                rest = b""
                if self._frame.eof:
                    rest = self._frame.unused_data
                    self._frame = self._context.decompressobj()
                    self._inside = False

    def finish(self) -> None:
        """Raise `BadRequest` when the last frame has no end."""
        if self._inside:
            raise cut_off("its zstd stream has no end")


DECODERS: dict[str, Callable[[], Decoder]] = {
    "identity": IdentityDecoder,
    "gzip": GzipDecoder,
    "x-gzip": GzipDecoder,
    "zstd": ZstdDecoder,
}


def decoder_for(content_encoding: str | None) -> Decoder:
    """Return the decoder for a ``Content-Encoding`` header, absent or not."""
    name = (content_encoding or "identity").strip().lower()
    if name not in DECODERS:
        raise UnsupportedMediaType(
            "unsupported_content_encoding",
            f"The body is encoded as {name[:100]!r}; send it plain, or as gzip or zstd.",
        )
    return DECODERS[name]()


def cut_off(reason: str) -> BadRequest:
    """Return the refusal of a body that ended too early."""
    return BadRequest(
        "upload_cut_off", f"The upload was cut off: {reason}. Nothing was stored; send it again."
    )


def _undecodable(encoding: str, error: Exception) -> BadRequest:
    return BadRequest(
        "undecodable_body", f"The body is not what `Content-Encoding: {encoding}` says: {error}."
    )
