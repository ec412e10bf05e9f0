"""The content encodings in which a body may come, and the answers to one that is not encoded as it says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from app.http.errors import BadRequest, UnsupportedMediaType
from ccmtl_core.tables.decompression import CompressedDataError, GzipDecoder, ZstdDecoder


class Decoder(Protocol):
    """Turns the bytes of one body into what they encode."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield what ``data`` adds."""

    def finish(self) -> None:
        """Raise `CompressedDataError` unless the encoded stream is whole."""


class IdentityDecoder:
    """Bytes as they are."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield ``data``."""
        yield data

    def finish(self) -> None:
        """Accept: plain bytes do not tell whether they are whole."""


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


@contextmanager
def refusing_undecodable() -> Iterator[None]:
    """Answer what a decoder says of the body with status 400."""
    try:
        yield
    except CompressedDataError as error:
        if error.is_cut_off:
            raise cut_off(str(error)) from None
        raise BadRequest(
            "undecodable_body", f"The body is not what its `Content-Encoding` says: {error}."
        ) from None


def cut_off(reason: str) -> BadRequest:
    """Return the refusal of a body that ended too early."""
    return BadRequest(
        "upload_cut_off", f"The upload was cut off: {reason}. Nothing was stored; send it again."
    )
