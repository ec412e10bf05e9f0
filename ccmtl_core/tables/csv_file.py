"""Open a file of delimited text as a table of text, with every fault of its structure.

A scan of the bytes finds what polars, which reads them afterwards, would guess at: short rows, stray quotes,
lone carriage returns, bytes that are no text.
"""

from __future__ import annotations

import codecs
import csv
import shutil
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ccmtl_core.base.display import counted
from ccmtl_core.base.types import IntArray
from ccmtl_core.kernels.csv_scan import CsvStructure, Irregularity, scan_csv
from ccmtl_core.tables.dialects.dialect import Dialect, ReadOptions
from ccmtl_core.tables.dialects.encoding import in_utf8
from ccmtl_core.tables.dialects.layout import Layout, layout_of
from ccmtl_core.tables.dialects.rewrite import Rewritten, rewritten
from ccmtl_core.tables.dialects.row_faults import (
    SKIPPED,
    ScannedText,
    ends_within_quotes,
    without_repeated_headers,
)
from ccmtl_core.tables.faults import MAX_LISTED, FaultList, PartLines, Parts
from ccmtl_core.tables.header import (
    refuse_other_formats,
    refuse_too_many,
    refuse_without_line_breaks,
)
from ccmtl_core.tables.table import Note, Table

MAX_HEADER_BYTES = 1 << 20
_END_MARK = 0x1A
HEAD_BYTES = 1 << 22
"""Of a longer file the first rows are taken from its beginning alone."""


@dataclass(frozen=True)
class CsvText:
    """A text of which the layout is known, and no row was looked at yet."""

    path: Path
    """Where it lies in UTF-8."""
    columns: tuple[str, ...]
    """The header as it stands in the file, repetitions included."""
    layout: Layout
    """Of the text at ``path``, which may be a copy with commas."""
    dialect: Dialect
    options: ReadOptions
    row_of: IntArray | None
    line_of: IntArray | None
    notes: tuple[Note, ...]
    n_before: int
    """Lines before the header in the file, of which the text at ``path`` may be a copy."""
    parts: PartLines = ()
    """The files that were put one after another; empty for a single file."""

    @property
    def data(self) -> NDArray[np.uint8]:
        """The bytes from the header on, or from the first row where there is none."""
        return _below(_bytes(self.path), self.layout.n_before)

    def first_rows(self, n_rows: int) -> Table:
        """Return the table of the first rows, as if nothing were wrong with them."""
        with self.path.open("rb") as file:
            head = file.read(HEAD_BYTES)
        whole_lines = head[: head.rfind(b"\n") + 1]
        source: Path | bytes = self.path
        if len(head) == HEAD_BYTES and whole_lines.count(b"\n") > 2 * n_rows:  # polars would read far more
            source = whole_lines
        return self._table(n_rows, self._rows(source, is_ragged=False).head(n_rows))

    def scanned(self, faults: FaultList) -> Table:
        """Return the table of all rows; ``faults`` takes what is wrong with their structure."""
        plain = self.layout
        structure = scan_csv(
            self.data,
            len(plain.names),
            delimiter=plain.delimiter,
            quote=plain.quote,
            has_header=plain.has_header,
        )
        text = ScannedText(self.data, structure, self.columns, plain.n_before, self.row_of, self.line_of)
        faults.parts = parts = self._first_rows(faults)
        rows, skipped = None, None
        if structure.counts.keys() <= set(SKIPPED) and len(structure.irregularities) == sum(
            structure.counts.values()
        ):
            rows = self._rows(self.path, is_ragged=structure.n_irregularities > 0).head(structure.n_rows)
            skipped = text.skipped() if self.options.ragged == "skip" else None
        if skipped is None:
            text.report(faults)
        table = self._table(structure.n_rows, rows)
        notes = table.notes if skipped is None else (*table.notes, skipped)
        if parts:
            n_rows = structure.n_rows if self.row_of is None else int(self.row_of[-1])
            notes = (*notes, _together(parts, n_rows))
        if structure.n_swallowed:
            notes = (*notes, self._swallowed(structure))
        if structure.n_blank_at_end:
            message = "blank lines at the end were skipped"
            notes = (*notes, Note("blank_lines", message, structure.n_blank_at_end))
        malformed = tuple(structure.irregularities[:, 1].tolist())
        n_skipped = 0 if skipped is None else skipped.count
        table = replace(table, malformed_rows=malformed, n_skipped=n_skipped, notes=notes, parts=parts)
        return without_repeated_headers(table, self.data, faults) if plain.has_header else table

    def _swallowed(self, structure: CsvStructure) -> Note:
        """Say of text within quotes that it looks like rows."""
        message = (
            "lines stand within quotes and have as many fields as a row: they count as text of one cell. If "
            "they are rows, a quote is missing before them, or one belongs to the text: state another, as "
            "`quote='~'`"
        )
        rows = [row for row in structure.swallowing[:MAX_LISTED] if row]
        numbers = rows if self.row_of is None else [int(self.row_of[row - 1]) for row in rows]
        return Note(
            "quoted_lines", message, structure.n_swallowed, tuple(numbers), unit="lines", severity="warning"
        )

    def _first_rows(self, faults: FaultList) -> Parts:
        """Find the first row of each file; a file that ends within quotes is refused."""
        if not self.parts:
            return ()
        if self.line_of is not None and self.row_of is not None:
            places = [int(np.searchsorted(self.line_of, before, side="right")) for _, before in self.parts]
            rows = [1 + (int(self.row_of[place - 1]) if place else 0) for place in places]
            return tuple((name, row) for (name, _), row in zip(self.parts, rows, strict=True))
        data, found, row, at = self.data, [], 1, 0
        ends = np.flatnonzero(data == ord("\n"))
        for (name, _), (_, before) in zip(self.parts, [*self.parts[1:], ("", 0)], strict=True):
            found.append((name, row))
            end = int(ends[before - self.n_before - 1]) + 1 if before else len(data)
            part = scan_csv(
                data[at:end],
                len(self.columns),
                delimiter=self.layout.delimiter,
                quote=self.layout.quote,
                has_header=self.layout.has_header and at == 0,
            )
            if Irregularity.UNCLOSED_QUOTE in part.counts and end < len(data):
                raise ends_within_quotes(name, faults)
            row, at = row + part.n_rows + part.n_blank_at_end, end
        return tuple(found)

    def _table(self, n_rows: int, rows: pl.LazyFrame | None) -> Table:
        return Table(
            columns=self.columns,
            names=self._names,
            rows=rows,
            n_rows=n_rows,
            unreadable=("not_csv", "the file cannot be read as CSV"),
            row_of=self.row_of,
            dialect=self.dialect,
            options=self.options,
            notes=self.notes,
        )

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(map(str, range(len(self.columns))))

    def _rows(self, source: Path | bytes, *, is_ragged: bool) -> pl.LazyFrame:
        return pl.scan_csv(
            source,
            glob=False,
            infer_schema=False,
            empty_string_is_null=False,
            has_header=self.layout.has_header,
            skip_lines=self.layout.n_before,
            separator=self.layout.delimiter,
            quote_char=self.layout.quote,
            new_columns=self._names,
            truncate_ragged_lines=is_ragged,
        )


def open_csv(
    path: Path,
    wanted: Collection[str],
    faults: FaultList,
    options: ReadOptions,
    dialect: Dialect,
    folder: Path,
    parts: PartLines = (),
    *,
    is_sheet: bool = False,
) -> CsvText:
    """Open a file that is not empty and does not change meanwhile; ``wanted`` are the columns asked for.

    ``folder`` takes copies of a text in another encoding or with comments; ``parts`` are the files that were
    put one after another. In the text of a sheet, ="A" is a formula. A file whose encoding or layout cannot
    be told, or that is of another format, is a `TableError`.
    """
    path, dialect = in_utf8(path, options.encoding, dialect, folder, faults)
    path, notes = _with_line_feeds(path, folder)
    path, notes = _without_end_mark(path, folder, notes)
    data = _bytes(path)
    head = _head(data, faults)
    layout, dialect = layout_of(head, options, wanted, dialect, faults)
    if is_sheet:
        layout = replace(layout, has_formulas=False)
    refuse_other_formats(head, layout.names, wanted, len(data), faults)
    refuse_too_many(layout.names, faults)
    row_of, line_of, plain = None, None, layout
    pads = options.ragged == "pad"
    if pads or not layout.is_plain:
        done = rewritten(path, layout, folder, faults, parts, pads=pads)
        path, row_of, line_of = done.path, done.row_of, done.line_of
        notes += _notes(done)
        plain = replace(layout, delimiter=",", quote='"', n_before=0)
    return CsvText(
        path,
        layout.names,
        plain,
        dialect,
        options,
        row_of,
        line_of,
        tuple(notes),
        n_before=layout.n_before,
        parts=parts,
    )


def _bytes(path: Path) -> NDArray[np.uint8]:
    """The bytes of a file without its byte-order mark, from a map of the file."""
    if not path.stat().st_size:
        return np.empty(0, np.uint8)
    data = np.memmap(path, np.uint8, mode="r").view(np.ndarray)
    return data[len(codecs.BOM_UTF8) :] if data[:3].tobytes() == codecs.BOM_UTF8 else data


def _head(data: NDArray[np.uint8], faults: FaultList) -> str:
    """The lines that a file begins with, in which its header is looked for."""
    if not len(data):
        raise faults.refusal_for("no_header", "the first line is missing; it must name the columns")
    head = data[:MAX_HEADER_BYTES].tobytes().decode("utf-8", "ignore")
    if len(head) > csv.field_size_limit():
        refuse_without_line_breaks(head, len(data), faults)
    if len(data) > MAX_HEADER_BYTES:
        head = head[: head.rfind("\n") + 1]
    if "\0" in head.partition("\n")[0]:
        raise faults.refusal_for("not_csv", "the file is not CSV in UTF-8: its first line contains NUL bytes")
    return head


def _with_line_feeds(path: Path, folder: Path) -> tuple[Path, list[Note]]:
    """The text itself or, if its lines end in carriage returns alone, a copy with line feeds for them."""
    data = _bytes(path)
    starts = range(0, len(data), MAX_HEADER_BYTES)
    if ord("\r") not in data[:MAX_HEADER_BYTES] or any(
        ord("\n") in data[at : at + MAX_HEADER_BYTES] for at in starts
    ):
        return path, []
    copy, n_lines = folder / "line-feeds", 0
    with path.open("rb") as file, copy.open("wb") as out:
        while block := file.read(MAX_HEADER_BYTES):
            n_lines += block.count(b"\r")
            out.write(block.replace(b"\r", b"\n"))
    message = "lines end in carriage returns alone, as of old spreadsheets, and were read as lines"
    return copy, [Note("carriage_returns", message, n_lines, unit="lines")]


def _without_end_mark(path: Path, folder: Path, notes: list[Note]) -> tuple[Path, list[Note]]:
    """The text itself or, if it ends with Ctrl-Z as texts of DOS do, a copy without."""
    data, n_marks = _bytes(path), 0
    while n_marks < len(data) and data[len(data) - n_marks - 1] == _END_MARK:
        n_marks += 1
    if not n_marks:
        return path, notes
    copy = folder / "without-end-mark"
    shutil.copyfile(path, copy)
    with copy.open("r+b") as file:
        file.truncate(copy.stat().st_size - n_marks)
    message = "the mark at the end of the text (Ctrl-Z, as of DOS) was left out"
    return copy, [*notes, Note("end_mark", message, n_marks, unit="bytes")]


def _below(data: NDArray[np.uint8], n_lines: int) -> NDArray[np.uint8]:
    """The bytes below so many lines."""
    if n_lines == 0:
        return data
    ends = np.flatnonzero(data[:MAX_HEADER_BYTES] == ord("\n"))
    return data[ends[n_lines - 1] + 1 :]


def _together(parts: Parts, n_rows: int) -> Note:
    """Say which files were put one after another, and how many rows each has."""
    ends = [first for _, first in parts[1:]] + [n_rows + 1]
    sizes = [
        f"{name} ({counted(end - first, 'row')})" for (name, first), end in zip(parts, ends, strict=True)
    ]
    listed = ", ".join(sizes[:MAX_LISTED]) + (", …" if len(sizes) > MAX_LISTED else "")
    message = f"files with the same columns were read one after another, and rows count on: {listed}"
    return Note("joined_files", message, len(parts), unit="files")


def _notes(done: Rewritten) -> list[Note]:
    notes = []
    if done.comments:
        message = "lines that are comments were left out"
        notes.append(Note("comment_lines", message, len(done.comments), done.comments[:MAX_LISTED]))
    if done.padded:
        message = "rows with fewer fields than names were given empty cells at their end"
        notes.append(Note("short_rows", message, len(done.padded), done.padded[:MAX_LISTED]))
    if done.n_trimmed:
        message = "rows end with a delimiter that the header has not; the empty field behind it was left out"
        notes.append(Note("trailing_delimiters", message, done.n_trimmed))
    if done.n_formulas:
        message = 'cells stand as ="00101", which spreadsheets take for text, and were read as 00101'
        notes.append(Note("text_formulas", message, done.n_formulas, unit="cells"))
    return notes
