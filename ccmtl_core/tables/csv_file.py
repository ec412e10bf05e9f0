"""Open a file of delimited text as a table of text, with every fault of its structure.

A scan of the bytes finds what polars, which reads them afterwards, would guess at: short rows, stray quotes,
lone carriage returns, bytes that are no text.
"""

from __future__ import annotations

import codecs
import csv
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ccmtl_core.base.types import IntArray
from ccmtl_core.kernels.csv_scan import CsvStructure, Irregularity, scan_csv
from ccmtl_core.tables.dialects.dialect import Dialect, ReadOptions
from ccmtl_core.tables.dialects.encoding import in_utf8
from ccmtl_core.tables.dialects.layout import layout_of
from ccmtl_core.tables.dialects.rewrite import Rewritten, rewritten
from ccmtl_core.tables.faults import MAX_LISTED, Fault, FaultList
from ccmtl_core.tables.header import (
    refuse_lone_returns,
    refuse_other_formats,
    refuse_too_many,
    refuse_without_line_breaks,
)
from ccmtl_core.tables.table import Note, Table

MAX_HEADER_BYTES = 1 << 20

_SENTENCES = {
    Irregularity.QUOTE_INSIDE: "a quote stands inside a field that does not begin with one, but with text "
    "or a space",
    Irregularity.TEXT_AFTER_QUOTE: "text follows the closing quote of a field",
    Irregularity.LONE_CR: "a carriage return stands alone: lines end in LF or CRLF",
    Irregularity.UNCLOSED_QUOTE: "the quote that opens this field is never closed: was the file cut off?",
    Irregularity.BLANK: "the line is blank",
}


def open_csv(
    path: Path,
    wanted: Collection[str],
    faults: FaultList,
    options: ReadOptions,
    dialect: Dialect,
    folder: Path,
) -> Table:
    """Open a file that is not empty and does not change meanwhile; ``wanted`` are the columns asked for.

    ``faults`` takes the faults of rows, ``folder`` copies of a text in another encoding or with comments. A
    file whose encoding or layout cannot be told, or that is of another format, is a `TableError`.
    """
    path, dialect = in_utf8(path, options.encoding, dialect, folder, faults)
    data = _bytes(path)
    if not len(data):
        raise faults.refusal_for("no_header", "the first line is missing; it must name the columns")
    head = data[:MAX_HEADER_BYTES].tobytes().decode("utf-8", "ignore")
    if len(head) > csv.field_size_limit():
        refuse_without_line_breaks(head, len(data), faults)
    if len(data) > MAX_HEADER_BYTES:
        head = head[: head.rfind("\n") + 1]
    if "\0" in head.partition("\n")[0]:
        raise faults.refusal_for("not_csv", "the file is not CSV in UTF-8: its first line contains NUL bytes")
    refuse_lone_returns(head, faults)
    layout, dialect = layout_of(head, options, wanted, dialect, faults)
    refuse_other_formats(head, layout.names, wanted, len(data), faults)
    refuse_too_many(layout.names, faults)
    notes, row_of, plain = [], None, layout
    pads = options.ragged == "pad"
    if pads or layout.is_padded or layout.comment is not None:
        done = rewritten(path, layout, folder, faults, pads=pads)
        path, row_of, notes = done.path, done.row_of, _notes(done)
        data, plain = _bytes(path), replace(layout, delimiter=",", quote='"', n_before=0)
    structure = scan_csv(
        _below(data, plain.n_before),
        len(plain.names),
        delimiter=plain.delimiter,
        quote=plain.quote,
        has_header=plain.has_header,
    )
    _report(structure, layout.names, row_of, faults)
    names = tuple(map(str, range(len(plain.names))))
    rows = None
    is_readable = set(structure.counts) <= {Irregularity.FIELD_COUNT, Irregularity.BLANK}
    if is_readable and structure.n_irregularities == len(structure.irregularities):
        rows = pl.scan_csv(
            path,
            glob=False,
            infer_schema=False,
            empty_string_is_null=False,
            has_header=plain.has_header,
            skip_lines=plain.n_before,
            separator=plain.delimiter,
            quote_char=plain.quote,
            new_columns=names,
            truncate_ragged_lines=structure.n_irregularities > 0,
        ).head(structure.n_rows)
    if structure.n_blank_at_end:
        message = "blank lines at the end were skipped"
        notes.append(Note("blank_lines", message, structure.n_blank_at_end))
    return Table(
        columns=layout.names,
        names=names,
        rows=rows,
        n_rows=structure.n_rows,
        unreadable=("not_csv", "the file cannot be read as CSV"),
        malformed_rows=tuple(structure.irregularities[:, 1].tolist()),
        row_of=row_of,
        dialect=dialect,
        options=options,
        notes=tuple(notes),
    )


def _bytes(path: Path) -> NDArray[np.uint8]:
    """The bytes of a file without its byte-order mark, from a map of the file."""
    if not path.stat().st_size:
        return np.empty(0, np.uint8)
    data = np.memmap(path, np.uint8, mode="r").view(np.ndarray)
    return data[len(codecs.BOM_UTF8) :] if data[:3].tobytes() == codecs.BOM_UTF8 else data


def _below(data: NDArray[np.uint8], n_lines: int) -> NDArray[np.uint8]:
    """The bytes below so many lines."""
    if n_lines == 0:
        return data
    ends = np.flatnonzero(data[:MAX_HEADER_BYTES] == ord("\n"))
    return data[ends[n_lines - 1] + 1 :]


def _notes(done: Rewritten) -> list[Note]:
    notes = []
    if done.comments:
        message = "lines that are comments were left out"
        notes.append(Note("comment_lines", message, len(done.comments), done.comments[:MAX_LISTED]))
    if done.padded:
        message = "rows with fewer fields than names were given empty cells at their end"
        notes.append(Note("short_rows", message, len(done.padded), done.padded[:MAX_LISTED]))
    return notes


def _report(
    structure: CsvStructure, header: Sequence[str], row_of: IntArray | None, faults: FaultList
) -> None:
    listed = structure.irregularities
    if row_of is not None:
        listed = listed.copy()
        below = listed[:, 1] > 0
        listed[below, 1] = row_of[listed[below, 1] - 1]
    listed = listed.tolist()
    for kind, count in structure.counts.items():
        samples = (_fault(kind, row, field, n, header) for k, row, field, n in listed if k == kind)
        faults.add_all(f"csv_{kind.name.lower()}", count, samples)


def _fault(kind: Irregularity, row: int, field: int, n_fields: int, header: Sequence[str]) -> Fault:
    code = f"csv_{kind.name.lower()}"
    if kind is Irregularity.FIELD_COUNT:
        return Fault(code, f"the row has {n_fields} fields, the header {len(header)}", row or None)
    column = header[field] if field < len(header) and kind is not Irregularity.BLANK else None
    return Fault(code, _SENTENCES[kind], row or None, column)
