"""Open a file of a table, whatever it is: CSV, also compressed, Parquet or Arrow, told apart by content."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path

import polars as pl
from polars.exceptions import DuplicateError

from ccmtl_core.tables.csv_file import open_csv
from ccmtl_core.tables.decompression import CompressedDataError, GzipDecoder, ZstdDecoder
from ccmtl_core.tables.dialects.dialect import NOTHING_KNOWN, NOTHING_STATED, ReadOptions
from ccmtl_core.tables.faults import FaultList
from ccmtl_core.tables.header import refuse_too_many
from ccmtl_core.tables.table import Table, refusing_unreadable

_READ_BYTES = 1 << 20


class Format(Enum):
    """What a file is, by its first bytes; what has none of these is taken for CSV."""

    PARQUET = b"PAR1"
    ARROW = b"ARROW1"
    ARROW_STREAM = b"\xff\xff\xff\xff"
    GZIP = b"\x1f\x8b"
    ZSTD = b"\x28\xb5\x2f\xfd"
    ZIP = b"PK\x03\x04"
    CSV = b""


WORDS = {
    Format.ARROW_STREAM: "an Arrow stream: save it as Parquet",
    Format.ZIP: "a zip archive or an Excel workbook: take out the CSV file, or save the sheet as CSV",
}
"""Formats that are not read: what each is, and what to do."""
_DECODERS: dict[Format, Callable[[], GzipDecoder | ZstdDecoder]] = {
    Format.GZIP: GzipDecoder,
    Format.ZSTD: ZstdDecoder,
}
_SCANS: dict[Format, Callable[..., pl.LazyFrame]] = {
    Format.PARQUET: pl.scan_parquet,
    Format.ARROW: pl.scan_ipc,
}


def format_of(path: Path, faults: FaultList) -> Format:
    """Return what the file at ``path`` is, CSV where nothing else is known.

    One that is empty, or cannot be read twice, is a `TableError`.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        message = "this is a pipe or a device, and a table is read more than once: write it to a file first"
        raise faults.refusal_for("no_file", message)
    with path.open("rb") as file:
        head = file.read(max(len(known.value) for known in Format))
    if not head:
        raise faults.refusal_for("empty_file", "the file is empty")
    return next(known for known in Format if head.startswith(known.value))


@contextmanager
def open_table(
    path: Path, wanted: Collection[str], faults: FaultList, options: ReadOptions = NOTHING_STATED
) -> Iterator[Table]:
    """Open a file that does not change for the length of the block; `ccmtl_core.tables.cells` reads it.

    ``wanted`` are the columns that are asked for; ``faults`` takes the faults of rows. A file that is no
    table, or was cut off or changed, is a `TableError`.
    """
    dialect = NOTHING_KNOWN
    found = format_of(path, faults)
    if found in WORDS:
        raise faults.refusal_for("not_csv", f"the file is not CSV but {WORDS[found]}")
    if found in _SCANS:
        yield _open_typed(path, found, faults)
    elif found in _DECODERS:
        with tempfile.TemporaryDirectory() as folder:
            plain = Path(folder) / "table.csv"
            _decompress(path, plain, found, faults)
            inside = format_of(plain, faults)
            if inside is not Format.CSV:
                words = WORDS.get(inside, f"{inside.name.lower()}: decompress the file first")
                message = f"the file is {found.name.lower()}, and in it is not CSV but {words}"
                raise faults.refusal_for("not_csv", message)
            yield open_csv(plain, wanted, faults, options, dialect, Path(folder))
    else:
        with tempfile.TemporaryDirectory() as folder:
            yield open_csv(path, wanted, faults, options, dialect, Path(folder))


def _open_typed(path: Path, found: Format, faults: FaultList) -> Table:
    kind, code = found.name.title(), f"not_{found.name.lower()}"
    with path.open("rb") as file:
        file.seek(-len(found.value), os.SEEK_END)
        if file.read() != found.value:  # which stands at both ends
            raise faults.refusal_for(code, f"the {kind} file was cut off: its end is missing")
    # Fixed offsets such as +05:30, as pandas writes them, are no zones to polars: without this it panics over
    # a column that may not even be asked for. `cells` reads them.
    os.environ.setdefault("POLARS_IGNORE_TIMEZONE_PARSE_ERROR", "1")
    unreadable = code, f"the {kind} file cannot be read: it was cut off, or its bytes were changed"
    with refusing_unreadable(unreadable, faults):
        rows = _SCANS[found](path, glob=False, hive_partitioning=False)
        try:
            names = tuple(rows.collect_schema().names())
        except DuplicateError as error:
            name = re.search("'(.*)'", str(error), re.DOTALL)
            column = name[1] if name else None
            message = f"the file has more than one column of the name {column!r}"
            faults.add("repeated_column", message, column=column)
            raise faults.refusal() from None
        n_rows = int(rows.select(pl.len()).collect().item())
    refuse_too_many(names, faults)
    return Table(names, names, rows, n_rows, unreadable)


def _decompress(path: Path, plain: Path, found: Format, faults: FaultList) -> None:
    decoder = _DECODERS[found]()
    try:
        with path.open("rb") as file, plain.open("wb") as out:
            while data := file.read(_READ_BYTES):
                for piece in decoder.feed(data):
                    out.write(piece)
            decoder.finish()
    except CompressedDataError as error:
        message = f"the file begins as {found.name.lower()} and cannot be decompressed: {error}"
        raise faults.refusal_for("undecodable_file", message) from error
