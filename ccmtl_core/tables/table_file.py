"""Open a file of a table, whatever it is and whatever it was packed in, told apart by content."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import polars as pl
from polars.exceptions import DuplicateError

from ccmtl_core.base.display import option
from ccmtl_core.tables.containers.formats import Format
from ccmtl_core.tables.containers.json_lines import open_json_lines
from ccmtl_core.tables.containers.unpack import unpacked
from ccmtl_core.tables.containers.workbook import sheet_as_csv
from ccmtl_core.tables.csv_file import CsvText, open_csv
from ccmtl_core.tables.dialects.dialect import NOTHING_STATED, Dialect, ReadOptions
from ccmtl_core.tables.faults import FaultList
from ccmtl_core.tables.header import refuse_too_many
from ccmtl_core.tables.table import Note, Table, refusing_unreadable

_SCANS: dict[Format, Callable[..., pl.LazyFrame]] = {
    Format.PARQUET: pl.scan_parquet,
    Format.ARROW: pl.scan_ipc,
}
UNREADABLE_STREAM = "not_arrow", "the Arrow stream cannot be read: it was cut off, or its bytes were changed"
_OF_CELLS = ("delimiter", "encoding", "quote")
_OF_TEXT = (*_OF_CELLS, "header_row", "comment", "ragged")
"""Options for files of text; those of cells alone mean nothing for a workbook either."""


@contextmanager
def open_table(
    path: Path,
    wanted: Collection[str],
    faults: FaultList,
    options: ReadOptions = NOTHING_STATED,
    max_bytes: int | None = None,
) -> Iterator[Table]:
    """Open a file that does not change for the length of the block; `ccmtl_core.tables.cells` reads it.

    ``wanted`` are the columns that are asked for; ``faults`` takes the faults of rows; ``max_bytes`` limits
    what is unpacked. A file that is no table, or was cut off or changed, is a `TableError`.
    """
    with open_unscanned(path, wanted, faults, options, max_bytes) as opened:
        yield opened.scanned(faults) if isinstance(opened, CsvText) else opened


@contextmanager
def open_unscanned(
    path: Path,
    wanted: Collection[str],
    faults: FaultList,
    options: ReadOptions = NOTHING_STATED,
    max_bytes: int | None = None,
    before_stream: Callable[[Path], None] | None = None,
) -> Iterator[Table | CsvText]:
    """Open a file as :func:`open_table` does, but look at no row of a text.

    ``before_stream`` gets an Arrow stream before all of it is decoded.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = unpacked(path, folder, wanted, options, faults, max_bytes)
        path, kind, dialect = found.path, found.format, found.dialect
        notes = (*found.notes, *_unused(options, kind, is_packed=dialect.get("member") is not None))
        if kind is Format.TEXT:
            text = open_csv(path, wanted, faults, options, dialect, folder, found.parts)
            yield replace(text, notes=(*notes, *text.notes))
            return
        if kind in _SCANS:
            table = replace(_open_typed(path, kind, faults), path=path)
        elif kind is Format.ARROW_STREAM:
            if before_stream is not None:
                before_stream(path)
            table = _open_stream(path, faults)
        elif kind is Format.JSON_LINES:
            table = open_json_lines(path, folder, faults)
        else:
            sheet = sheet_as_csv(path, folder, wanted, options, dialect, faults, max_bytes)
            as_text = replace(options, delimiter=",", encoding="utf-8", quote=None)
            text = open_csv(sheet.path, wanted, faults, as_text, sheet.dialect, folder, is_sheet=True)
            table = _as_workbook(text.scanned(faults), options)
            table, dialect = (
                replace(table, notes=(*sheet.notes, *table.notes), kinds=sheet.kinds),
                table.dialect,
            )
        yield replace(table, dialect=dialect, options=options, notes=(*notes, *table.notes))


def _unused(options: ReadOptions, kind: Format, *, is_packed: bool) -> Iterator[Note]:
    """What is stated and means nothing for a file of this format."""
    is_text, is_workbook = kind is Format.TEXT, kind in (Format.ZIP, Format.WORKBOOK)
    without = [] if is_text else [*_OF_CELLS] if is_workbook else [*_OF_TEXT]
    without += ([] if is_packed else ["member"]) + ([] if is_workbook else ["sheet"])
    stated = [option(name, getattr(options, name)) for name in without if getattr(options, name) is not None]
    if stated:
        name = "workbook" if is_workbook else kind.title
        is_or_are = "is" if len(stated) == 1 else "are"
        message = f"{', '.join(stated)} {is_or_are} stated, and without effect on this file ({name})"
        yield Note("unused_options", message, len(stated), unit="options", severity="warning")


def _as_workbook(table: Table, options: ReadOptions) -> Table:
    """The table without what the file on the way to it has, and no workbook."""
    kept = tuple(trait for trait in table.dialect.traits if trait.name not in ("delimiter", "encoding"))
    return replace(table, dialect=Dialect(kept), options=options)


def _open_stream(path: Path, faults: FaultList) -> Table:
    os.environ.setdefault("POLARS_IGNORE_TIMEZONE_PARSE_ERROR", "1")
    with refusing_unreadable(UNREADABLE_STREAM, faults):
        frame = pl.read_ipc_stream(path)
    refuse_too_many(frame.columns, faults)
    return replace(Table.of_frame(frame), unreadable=UNREADABLE_STREAM)


def _open_typed(path: Path, found: Format, faults: FaultList) -> Table:
    kind, code = found.name.title(), f"not_{found.name.lower()}"
    with path.open("rb") as file:
        file.seek(-len(found.magic), os.SEEK_END)
        if file.read() != found.magic:  # which stands at both ends
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
