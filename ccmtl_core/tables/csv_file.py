"""Open a CSV file (RFC 4180, UTF-8, commas) as a table of text, with every fault of its structure.

A scan of the bytes finds what polars, which reads them afterwards, would guess at: short rows, stray quotes,
lone carriage returns, bytes that are no text.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Collection
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ccmtl_core.kernels.csv_scan import CsvStructure, Irregularity, scan_csv
from ccmtl_core.tables.faults import Fault, FaultList
from ccmtl_core.tables.header import refuse_other_formats, refuse_too_many, refuse_without_line_breaks
from ccmtl_core.tables.table import Table

MAX_HEADER_BYTES = 1 << 20
BLOCK_BYTES = 1 << 22

_SENTENCES = {
    Irregularity.QUOTE_INSIDE: "a quote stands inside a field that does not begin with one, but with text "
    "or a space",
    Irregularity.TEXT_AFTER_QUOTE: "text follows the closing quote of a field",
    Irregularity.LONE_CR: "a carriage return stands alone: lines end in LF or CRLF",
    Irregularity.UNCLOSED_QUOTE: "the quote that opens this field is never closed: was the file cut off?",
    Irregularity.BLANK: "the line is blank",
}


def open_csv(path: Path, wanted: Collection[str], faults: FaultList) -> Table:
    """Open a file that is not empty and does not change meanwhile; ``wanted`` are the columns asked for.

    ``faults`` takes the faults of rows. A file that is not text in UTF-8, has no header, or is of another
    format by its header is a `TableError`.
    """
    data = np.memmap(path, np.uint8, mode="r").view(np.ndarray)
    if data[:3].tobytes() == codecs.BOM_UTF8:
        data = data[len(codecs.BOM_UTF8) :]
    _refuse_other_encodings(data, faults)
    head = data[:MAX_HEADER_BYTES].tobytes().decode("utf-8", "ignore")
    header = _header(head, len(data), faults)
    refuse_other_formats(head, header, wanted, len(data), faults)
    if len(data) > MAX_HEADER_BYTES:
        refuse_without_line_breaks(head, len(data), faults)
    refuse_too_many(header, faults)
    structure = scan_csv(data, len(header))
    _report(structure, header, faults)
    names = tuple(map(str, range(len(header))))
    rows = None
    is_readable = set(structure.counts) <= {Irregularity.FIELD_COUNT, Irregularity.BLANK}
    if is_readable and structure.n_irregularities == len(structure.irregularities):
        rows = pl.scan_csv(
            path,
            glob=False,
            infer_schema=False,
            empty_string_is_null=False,
            new_columns=names,
            truncate_ragged_lines=structure.n_irregularities > 0,
        ).head(structure.n_rows)
    return Table(
        columns=tuple(header),
        names=names,
        rows=rows,
        n_rows=structure.n_rows,
        unreadable=("not_csv", "the file cannot be read as CSV"),
        malformed_rows=tuple(structure.irregularities[:, 1].tolist()),
        n_blank_at_end=structure.n_blank_at_end,
    )


def _refuse_other_encodings(data: NDArray[np.uint8], faults: FaultList) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(data), BLOCK_BYTES):
        block = data[start : start + BLOCK_BYTES].tobytes()
        pending = len(decoder.getstate()[0])
        try:
            decoder.decode(block, final=start + len(block) == len(data))
        except UnicodeDecodeError as error:
            position = start - pending + error.start
            row, _ = scan_csv(data[:position], 1).end
            where = f"byte 0x{data[position]:02X} at offset {position} is no character"
            faults.add("not_utf8", f"the file is not UTF-8: {where}; save it as UTF-8", row=row or None)
            raise faults.refusal() from None


def _header(text: str, n_bytes: int, faults: FaultList) -> list[str]:
    if text[:1] in ("\n", "\r"):
        raise faults.refusal_for("no_header", "the first line is blank; it must name the columns")
    if "\0" in text.partition("\n")[0]:
        message = "the file is not CSV in UTF-8: its first line contains NUL bytes"
        raise faults.refusal_for("not_csv", message)
    try:
        return next(csv.reader(io.StringIO(text, newline=""), strict=True))
    except (csv.Error, StopIteration):
        refuse_without_line_breaks(text, n_bytes, faults)
        message = "the first line cannot be read as the names of columns"
        raise faults.refusal_for("no_header", message) from None


def _report(structure: CsvStructure, header: list[str], faults: FaultList) -> None:
    listed = structure.irregularities.tolist()
    for kind, count in structure.counts.items():
        samples = (_fault(kind, row, field, n, header) for k, row, field, n in listed if k == kind)
        faults.add_all(f"csv_{kind.name.lower()}", count, samples)


def _fault(kind: Irregularity, row: int, field: int, n_fields: int, header: list[str]) -> Fault:
    code = f"csv_{kind.name.lower()}"
    if kind is Irregularity.FIELD_COUNT:
        return Fault(code, f"the row has {n_fields} fields, the header {len(header)}", row or None)
    column = header[field] if field < len(header) and kind is not Irregularity.BLANK else None
    return Fault(code, _SENTENCES[kind], row or None, column)
