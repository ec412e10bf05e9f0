"""Open an uploaded file as a table, or say what it is instead."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from app.datasets.reading.faults import refuse
from app.datasets.receive.system_errors import naming_system_errors

logger = logging.getLogger(__name__)

_MAGIC = {
    b"PAR1": "a Parquet file: send it as `Content-Type: application/vnd.apache.parquet`",
    b"\x1f\x8b": "gzip: name it in `Content-Encoding: gzip`",
    b"\x28\xb5\x2f\xfd": "zstd: name it in `Content-Encoding: zstd`",
    b"PK\x03\x04": "a zip archive or an Excel workbook: send the CSV file that is in it",
    b"\xff\xfe": "UTF-16 text: save it as UTF-8",
    b"\xfe\xff": "UTF-16 text: save it as UTF-8",
}


@dataclass(frozen=True)
class UploadedTable:
    """A table that was opened and not read yet.

    Parameters
    ----------
    columns : tuple of str
        The header as it stands in the file, repetitions included.
    names : tuple of str
        What ``rows`` calls these columns.
    rows : LazyFrame, optional
        The data rows; None where the file's structure forbids to read them.
    n_rows : int
        How many there are.
    malformed_rows : tuple of int
        Rows, from 1, that were found faulty already and whose cells are not to be judged.
    n_blank_at_end : int
        Blank lines below the last row.
    """

    columns: tuple[str, ...]
    names: tuple[str, ...]
    rows: pl.LazyFrame | None
    n_rows: int
    malformed_rows: tuple[int, ...] = ()
    n_blank_at_end: int = 0


def recognised(head: bytes) -> str | None:
    """Return in words what a file with these first bytes is, where it is neither CSV nor unknown."""
    return next((words for magic, words in _MAGIC.items() if head.startswith(magic)), None)


@contextmanager
def refusing_unreadable(code: str, message: str) -> Iterator[None]:
    """Turn a reader's failure on the caller's bytes into a refusal of the file."""
    try:
        with naming_system_errors():
            yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        logger.warning("an upload was refused as %s: %s", code, error)
        raise refuse(code, message) from None


def refuse_empty(path: Path) -> None:
    """Refuse a file without a byte."""
    if path.stat().st_size == 0:
        raise refuse("empty_file", "The file is empty.")
