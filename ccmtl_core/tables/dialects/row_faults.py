"""Say of lines that are no rows of a text where they stand, what is in them, and what accepts them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ccmtl_core.base.display import counted, quoted
from ccmtl_core.base.types import IntArray
from ccmtl_core.kernels.csv_scan import CsvStructure, Irregularity
from ccmtl_core.tables.faults import MAX_LISTED, Fault, FaultList, TableError
from ccmtl_core.tables.table import REPEATED_HEADER, Note, Table, refusing_unreadable

SKIPPED = (Irregularity.FIELD_COUNT, Irregularity.BLANK)
"""What ``ragged="skip"`` leaves out."""
_OF_ROWS = (*SKIPPED, Irregularity.LONG_ROW)
_MOST_SHOWN, _FARTHEST, _BLOCK = 100, 1 << 12, 1 << 24
_REMEDY = "If the quote belongs to the text, double it, or state another one, such as `quote='~'`"


def ends_within_quotes(part: str, faults: FaultList) -> TableError:
    """Return the refusal of a file after which another one follows, whose last field is not closed.

    Parameters
    ----------
    part : str
        The file's name.
    faults : FaultList
        Gets the fault.

    Returns
    -------
    TableError
    """
    message = f"{quoted(part)} ends within a quoted field: was the file cut off? {_REMEDY}"
    return faults.refusal_for("csv_unclosed_quote", message)


def without_repeated_headers(table: Table, data: NDArray[np.uint8], faults: FaultList) -> Table:
    """Return a table without the rows that are its header once more, which a note counts.

    Parameters
    ----------
    table : Table
        Of a text with a header; where it has ``rows``, all of them are text.
    data : (n,) uint8
        The bytes from the header on.
    faults : FaultList
        Has the faults that were found before.

    Returns
    -------
    Table
    """
    if table.rows is None or not _has_first_line_again(data):
        return table
    cells = zip(table.names, table.columns, strict=True)
    is_header = pl.all_horizontal(pl.col(name) == pl.lit(column) for name, column in cells)
    with refusing_unreadable(table.unreadable, faults):
        found = table.rows.with_row_index("row", offset=1).filter(is_header).select("row").collect()
    at = np.setdiff1d(found["row"].to_numpy().astype(np.int64), table.malformed_rows)
    if not len(at):
        return table
    kept = np.delete(np.arange(1, table.n_rows + 1), at - 1)
    of_file = at if table.row_of is None else table.row_of[at - 1]
    malformed = np.array(table.malformed_rows, dtype=np.int64)
    message = "rows repeat the header, as where files were put one after another, and were left out"
    note = Note(REPEATED_HEADER, message, len(at), tuple(of_file[:MAX_LISTED].tolist()), severity="warning")
    rows = table.rows.with_row_index("row", offset=1).filter(~pl.col("row").is_in(at.tolist())).drop("row")
    return replace(
        table,
        rows=rows,
        n_rows=len(kept),
        malformed_rows=tuple((malformed - np.searchsorted(at, malformed)).tolist()),
        row_of=kept if table.row_of is None else table.row_of[kept - 1],
        notes=(*table.notes, note),
    )


def _has_first_line_again(data: NDArray[np.uint8]) -> bool:
    """Whether a line of a text begins as its first one, which has a letter in it."""
    line = data[: 4 * _FARTHEST].tobytes().partition(b"\n")[0].rstrip(b"\r")
    if not any(map(str.isalpha, line.decode("utf-8", "replace"))):
        return False
    again = b"\n" + line
    starts = range(0, len(data), _BLOCK)
    return any(again in data[at : at + _BLOCK + len(again)].tobytes() for at in starts)


@dataclass(frozen=True)
class ScannedText:
    """The bytes of a text that was scanned, and how its lines and rows are counted."""

    data: NDArray[np.uint8]
    structure: CsvStructure
    header: Sequence[str]
    n_before: int
    """Lines of the file before these bytes."""
    row_of: IntArray | None
    """The number in the file of each row, where they are not just counted from 1."""
    line_of: IntArray | None
    """The line in the file of each row, where these bytes are a copy with other lines."""

    def report(self, faults: FaultList) -> None:
        """Note each fault of the structure with its line and text."""
        for kind, count in self.structure.counts.items():
            faults.add_all(_code(kind), count, self._faults(kind))

    def skipped(self) -> Note | None:
        """Return the note on the rows that are left out because they have another number of fields."""
        listed = [fault for kind in SKIPPED for fault in self._faults(kind)]
        count = sum(self.structure.counts.get(kind, 0) for kind in SKIPPED)
        if not count:
            return None
        listed.sort(key=lambda fault: fault.row or 0)
        message = "blank lines and rows with more or fewer fields than the header were left out, as stated"
        rows, values = [fault.row or 0 for fault in listed], [fault.value or "" for fault in listed]
        return Note("skipped_rows", message, count, tuple(rows), tuple(values))

    def _faults(self, kind: Irregularity) -> Iterator[Fault]:
        places = np.flatnonzero(self.structure.irregularities[:, 0] == kind)[:MAX_LISTED]
        line, at = self.n_before + 1, 0
        for (_, row, field, n_fields), (begin, end) in zip(
            self.structure.irregularities[places].tolist(), self.structure.spans[places].tolist(), strict=True
        ):
            line, at = line + self._line_ends(at, begin), begin
            shown = line if self.line_of is None or not row else int(self.line_of[row - 1])
            told = self._told(kind, n_fields, shown, begin, end)
            column = self.header[field] if field < len(self.header) and kind not in _OF_ROWS else None
            number = row if self.row_of is None or not row else int(self.row_of[row - 1])
            value = None if kind is Irregularity.BLANK else self._text(begin)
            yield Fault(_code(kind), told, number or None, column, value)

    def _told(self, kind: Irregularity, n_fields: int, line: int, begin: int, end: int) -> str:
        where = f"(line {line:,})"
        if kind is Irregularity.FIELD_COUNT:
            found = f"the row has {counted(n_fields, 'field')}, the header {len(self.header)} {where}: "
            if n_fields < len(self.header):
                return found + (
                    "if it is no row, as a total or a footer is not, state `ragged='skip'`, which leaves "
                    "such rows out, or as `comment` what it begins with; if cells are missing at its end, "
                    "state `ragged='pad'`"
                )
            if n_fields == len(self.header) + 1 and self._ends_with_delimiter(begin, end):
                return found + (
                    "it ends with a delimiter: if all rows do, add one at the end of the header as well, or "
                    "take theirs away"
                )
            if n_fields == len(self.header) + 1 and self.structure.counts[kind] == self.structure.n_rows:
                return found + (
                    "so have all rows: the header has one name less than they have fields, as R writes "
                    "tables with row names. Put a name before the others, or write it with row.names=FALSE"
                )
            return found + (
                "if a field has the delimiter in it, put that in quotes; or state the `delimiter` that is "
                "meant, or `ragged='skip'`, which leaves such rows out"
            )
        if kind is Irregularity.BLANK:
            return f"the line is blank {where}: take it out, or state `ragged='skip'`, which leaves it out"
        if kind is Irregularity.LONG_ROW:
            return (
                f"the row has {end - begin:,} bytes {where}, as none of a table has: is a line break or a "
                f"quote missing there? {_REMEDY}"
            )
        if kind is Irregularity.QUOTE_INSIDE:
            return (
                "a quote stands inside a field that does not begin with one, but with text or a space "
                f"{where}. {_REMEDY}"
            )
        if kind is Irregularity.LONE_CR:
            return f"a carriage return stands alone {where}: lines end in LF or CRLF"
        swallowed = self._line_ends(begin, end)
        within = f" and takes {counted(swallowed, 'line')} below with it" if swallowed else ""
        if kind is Irregularity.UNCLOSED_QUOTE:
            return (
                f"the quote that opens this field {where} is never closed{within}: was the file cut off? "
                f"{_REMEDY}"
            )
        return (
            f"text follows the closing quote of the field that opens in line {line:,}{within}: is a closing "
            f"quote missing there? {_REMEDY}"
        )

    def _ends_with_delimiter(self, begin: int, end: int) -> bool:
        row = self.data[max(begin, end - 8) : end].tobytes().rstrip(b"\r\n")
        return row.endswith((b",", b";", b"\t", b"|"))

    def _line_ends(self, begin: int, end: int) -> int:
        blocks = (self.data[at : min(end, at + _BLOCK)] for at in range(begin, end, _BLOCK))
        return sum(int(np.count_nonzero(block == ord("\n"))) for block in blocks)

    def _text(self, begin: int) -> str:
        """The text of the line that has this byte, shortened."""
        before = self.data[max(0, begin - _FARTHEST) : begin].tobytes()
        begin -= len(before) - before.rfind(b"\n") - 1
        text = self.data[begin : begin + 4 * _MOST_SHOWN].tobytes().decode("utf-8", "replace")
        line = text.partition("\n")[0].rstrip("\r")
        return line if len(line) <= _MOST_SHOWN else line[: _MOST_SHOWN - 1] + "…"


def _code(kind: Irregularity) -> str:
    return f"csv_{kind.name.lower()}"
