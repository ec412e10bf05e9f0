"""Decoders give back what was encoded, piece by piece, whatever the pieces that come in."""

from __future__ import annotations

import gzip

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from ccmtl_core.tables.decompression import PIECE_BYTES, CompressedDataError, GzipDecoder, ZstdDecoder

ENCODE = {"gzip": gzip.compress, "zstd": zstandard.compress}
DECODER = {"gzip": GzipDecoder, "zstd": ZstdDecoder}


def decode(encoding: str, body: bytes, step: int) -> bytes:
    decoder = DECODER[encoding]()
    pieces = [piece for i in range(0, len(body), step) for piece in decoder.feed(body[i : i + step])]
    decoder.finish()
    return b"".join(pieces)


@given(
    encoding=st.sampled_from(["gzip", "zstd"]),
    parts=st.lists(st.binary(max_size=200), min_size=1, max_size=3),
    step=st.integers(1, 50),
)
def test_any_split_of_any_members_decodes(encoding: str, parts: list[bytes], step: int) -> None:
    body = b"".join(ENCODE[encoding](part) for part in parts)
    assert decode(encoding, body, step) == b"".join(parts)


@given(
    encoding=st.sampled_from(["gzip", "zstd"]), content=st.binary(min_size=1, max_size=200), data=st.data()
)
def test_every_proper_beginning_is_cut_off(encoding: str, content: bytes, data: st.DataObject) -> None:
    body = ENCODE[encoding](content)
    length = data.draw(st.integers(1, len(body) - 1))
    with pytest.raises(CompressedDataError, match="has no end") as refusal:
        decode(encoding, body[:length], len(body))
    assert refusal.value.is_cut_off


@pytest.mark.parametrize("step", [1, 7, 1000])
def test_zeros_behind_a_member_of_gzip_pad_it(step: int) -> None:
    body = gzip.compress(b"first") + bytes(300) + gzip.compress(b"second") + bytes(512)
    assert decode("gzip", body, step) == b"firstsecond"


def test_zeros_before_gzip_are_none_of_it() -> None:
    with pytest.raises(CompressedDataError):
        decode("gzip", bytes(10) + gzip.compress(b"first"), 1000)


@pytest.mark.parametrize(("encoding", "most"), [("gzip", PIECE_BYTES), ("zstd", 32 * 1024**2)])
def test_pieces_of_a_bomb_stay_small(encoding: str, most: int) -> None:
    body = ENCODE[encoding](bytes(200_000_000))
    sizes = [len(piece) for piece in DECODER[encoding]().feed(body)]
    assert sum(sizes) == 200_000_000
    assert max(sizes) <= most


def test_a_frame_that_asks_for_a_huge_window_is_refused() -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=30)
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    body = compressor.compress(b"ab" * 10) + compressor.flush()
    with pytest.raises(CompressedDataError, match="too much memory"):
        decode("zstd", body, 1000)
