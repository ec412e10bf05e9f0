"""Write a segment's rows to a Parquet file, at once or piece by piece: equal rows always give equal bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Full, Queue
from typing import Any

import polars as pl
from polars.io.plugins import register_io_source

from app.datasets.stored.period_values import COUNT
from ccmtl_core.base.system_errors import naming_system_errors

GROUP_ROWS = 2**18
"""Rows of a row group; it is told to polars, whose own choice depends on the sizes of pieces."""
_HOW: Any = {"compression": "zstd", "row_group_size": GROUP_ROWS, "statistics": False}
"""Segments are read whole, so that statistics of their parts would serve nobody."""
_PIECES_WAITING = 2
_LOOK_SECONDS = 0.2
_VALUES = pl.Schema(
    [("unique_id", pl.String()), ("ds", pl.Datetime("us")), ("y", pl.Float64()), (COUNT, pl.Int64())]
)


def write_segment(frame: pl.DataFrame, path: Path) -> None:
    """Write ``frame`` to ``path`` as Parquet; the same frame always gives the same bytes."""
    with naming_system_errors():
        frame.write_parquet(path, **_HOW)


@contextmanager
def segment_writer(path: Path) -> Iterator[Callable[[pl.DataFrame], None]]:
    """Yield a function that takes a segment of values alone piece by piece, while a thread writes them.

    The file at ``path`` is whole once the block has ended, and then that which :func:`write_segment` writes
    of all rows together.
    """
    pieces: Queue[pl.DataFrame | None] = Queue(_PIECES_WAITING)

    def taken(*_: Any) -> Iterator[pl.DataFrame]:
        while (piece := pieces.get()) is not None:
            yield piece

    def write() -> None:
        rows = register_io_source(taken, schema=_VALUES)
        with naming_system_errors():
            rows.sink_parquet(path, **_HOW)

    def give(piece: pl.DataFrame | None) -> None:
        while not written.done():
            with suppress(Full):
                pieces.put(piece, timeout=_LOOK_SECONDS)
                return
        written.result()

    with ThreadPoolExecutor(1, "segment-writer") as threads:
        written = threads.submit(write)
        try:
            yield give
        finally:
            give(None)
        written.result()
