"""Write tables as one Arrow stream, piece by piece."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from io import BytesIO

import polars as pl

_END_OF_STREAM = b"\xff\xff\xff\xff\x00\x00\x00\x00"


def arrow_pieces(frames: Iterable[pl.DataFrame]) -> Iterator[bytes]:
    """Yield an Arrow stream of tables that have the same columns, each as it comes."""
    begun = False
    for frame in frames:
        file = BytesIO()
        frame.write_ipc_stream(file, compat_level=pl.CompatLevel.oldest())
        written = file.getvalue().removesuffix(_END_OF_STREAM)
        # Each of them begins with the schema, which the stream has once: a mark, its length, itself.
        schema_ends = 8 + struct.unpack_from("<i", written, 4)[0]
        yield written[schema_ends if begun else 0 :]
        begun = True
    yield _END_OF_STREAM
