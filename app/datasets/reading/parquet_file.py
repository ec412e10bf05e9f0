"""Open a Parquet file as a lazy table."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from app.datasets.reading.faults import refuse
from app.datasets.reading.header import refuse_too_many
from app.datasets.reading.uploaded_table import UploadedTable, recognised, refuse_empty, refusing_unreadable
from app.datasets.receive.body import too_large

MAGIC = b"PAR1"
BYTES_PER_CELL = 8
UNREADABLE = "The Parquet file cannot be read: it was cut off, or its bytes were changed."


def open_parquet(path: Path, n_cells_per_row: int, max_bytes: int) -> UploadedTable:
    """Read the schema of the file at ``path``.

    Parameters
    ----------
    path : Path
        A file that does not change meanwhile.
    n_cells_per_row : int
        Columns that will be read.
    max_bytes : int
        Limit on what these columns take in memory: a small file can announce any number of rows.

    Returns
    -------
    UploadedTable
        The table, ready to be read in pieces.

    Raises
    ------
    InvalidContent
        If the file is empty, not Parquet or cut off, or has too many columns.
    PayloadTooLarge
        If it has too many rows.
    """
    refuse_empty(path)
    with path.open("rb") as file:
        head = file.read(4)
        file.seek(-min(4, path.stat().st_size), 2)
        tail = file.read()
    if head != MAGIC:
        what = recognised(head)
        raise refuse("not_parquet", "The file is not Parquet" + (f" but {what}." if what else "."))
    if tail != MAGIC:
        raise refuse("not_parquet", "The Parquet file was cut off: its end is missing.")
    with refusing_unreadable("not_parquet", UNREADABLE):
        rows = pl.scan_parquet(path, glob=False, hive_partitioning=False)
        try:
            names = tuple(rows.collect_schema().names())
        except pl.exceptions.DuplicateError as error:
            raise refuse("repeated_column", f"the file has two columns of one name: {error}") from None
        n_rows = int(rows.select(pl.len()).collect().item())
    refuse_too_many(names)
    if n_rows * n_cells_per_row * BYTES_PER_CELL > max_bytes:
        raise too_large(max_bytes)
    return UploadedTable(columns=names, names=names, rows=rows, n_rows=n_rows)
