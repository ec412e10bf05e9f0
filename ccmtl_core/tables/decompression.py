"""Decompress gzip and zstd piece by piece, so that whoever counts the bytes can stop a bomb early."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import zstandard

from ccmtl_core.base.exceptions import DataError

PIECE_BYTES = 1 << 20
# A zstd block of four bytes can hold 128 KiB: one slice of this size makes at most 32 MiB.
ZSTD_SLICE_BYTES = 1 << 10
ZSTD_MAX_WINDOW_BYTES = 1 << 27
GZIP_WINDOW_BITS = 31


class CompressedDataError(DataError):
    """Bytes that are not compressed as they say, or whose end is missing."""

    def __init__(self, reason: str, *, is_cut_off: bool = False) -> None:
        super().__init__(reason)
        self.is_cut_off = is_cut_off

    def __reduce__(self) -> tuple[type[CompressedDataError], tuple[str]]:  # type: ignore[override]
        """Keep the reason on the way from another process."""
        return type(self), (str(self),)


class _Decoder:
    """What both decoders know: the name of their format, and whether the stream would be cut off here."""

    kind: str
    _inside = False

    def finish(self) -> None:
        """Raise `CompressedDataError` when the last part of the stream has no end."""
        if self._inside:
            raise CompressedDataError(f"its {self.kind} stream has no end", is_cut_off=True)


class GzipDecoder(_Decoder):
    """One or more gzip members (RFC 1952)."""

    kind = "gzip"

    def __init__(self) -> None:
        self._member = zlib.decompressobj(GZIP_WINDOW_BITS)
        self._is_behind_member = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield what ``data`` adds, at most ``PIECE_BYTES`` at a time; zeros behind a member pad it."""
        full = False
        if self._is_behind_member:
            data = data.lstrip(b"\0")
        while data or full:
            self._inside, self._is_behind_member = True, False
            try:
                piece = self._member.decompress(data, PIECE_BYTES)
            except zlib.error as error:
                raise CompressedDataError(str(error)) from None
            yield piece
            full = len(piece) == PIECE_BYTES
            data = self._member.unconsumed_tail
            if self._member.eof:
                data, full = self._member.unused_data.lstrip(b"\0"), False
                self._member = zlib.decompressobj(GZIP_WINDOW_BITS)
                self._inside, self._is_behind_member = False, True


class ZstdDecoder(_Decoder):
    """One or more zstd frames (RFC 8878)."""

    kind = "zstd"

    def __init__(self) -> None:
        self._context = zstandard.ZstdDecompressor(max_window_size=ZSTD_MAX_WINDOW_BYTES)
        self._frame = self._context.decompressobj()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield what ``data`` adds, at most 32 MiB at a time."""
        for start in range(0, len(data), ZSTD_SLICE_BYTES):
            rest = data[start : start + ZSTD_SLICE_BYTES]
            while rest:
                self._inside = True
                try:
                    yield self._frame.decompress(rest)
                except zstandard.ZstdError as error:
                    raise CompressedDataError(str(error)) from None
                rest = b""
                if self._frame.eof:
                    rest = self._frame.unused_data
                    self._frame = self._context.decompressobj()
                    self._inside = False
