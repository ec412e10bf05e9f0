"""Scan the bytes of a CSV file: how many rows there are, and where they are not what RFC 4180 asks for.

The reader that follows is fast because it takes the structure for granted; what it would guess at (a quote
inside a field, a row with too few fields, a carriage return alone) is found and counted here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ccmtl_core.kernels.compiled import kernel

MAX_IRREGULARITIES = 10_000
MAX_ROW_BYTES = 1 << 22
"""No row of a table is longer, and reading one takes thirteen times its bytes of memory."""

_LF, _CR = 10, 13
_START, _PLAIN, _QUOTED, _CLOSED, _FAULTY = 0, 1, 2, 3, 4  # where in a field the scan stands


class Irregularity(IntEnum):
    """A way in which a row is malformed."""

    QUOTE_INSIDE = 1
    TEXT_AFTER_QUOTE = 2
    LONE_CR = 3
    UNCLOSED_QUOTE = 4
    FIELD_COUNT = 5
    BLANK = 6
    LONG_ROW = 7


_QUOTE_INSIDE, _TEXT_AFTER_QUOTE, _LONE_CR, _UNCLOSED, _FIELD_COUNT, _BLANK, _LONG_ROW = map(
    np.int64, Irregularity
)
_ZERO: Any = np.int64(0)
"""Of the type that all others have: a kernel is compiled anew for each plain 0 or 1 it is called with."""


@dataclass(frozen=True)
class CsvStructure:
    """What a scan found.

    Parameters
    ----------
    n_rows : int
        Rows below the header, blank lines at the end excluded.
    n_blank_at_end : int
        Blank lines after the last row.
    irregularities : (m, 4) int64
        Kind, row (the header is 0), field (from 0) and number of fields, of the first ``MAX_IRREGULARITIES``.
    spans : (m, 2) int64
        Of each of these the place of its first byte, and of the byte at which it was found. It begins with
        its row, or with the quote that opens the field.
    counts : dict
        All of them, by kind; kinds that were not found are absent.
    end : (row, field)
        Where the scan stood at the end of the bytes.
    """

    n_rows: int
    n_blank_at_end: int
    irregularities: NDArray[np.int64]
    spans: NDArray[np.int64]
    counts: dict[Irregularity, int]
    end: tuple[int, int]
    n_swallowed: int
    """Lines within quotes that have as many delimiters as a row has: a quote may be missing before them."""
    swallowing: tuple[int, ...]
    """The first of the rows with such lines."""

    @property
    def n_irregularities(self) -> int:
        """All of them."""
        return sum(self.counts.values())


def scan_csv(
    data: NDArray[np.uint8],
    n_fields: int,
    *,
    delimiter: str = ",",
    quote: str = '"',
    has_header: bool = True,
) -> CsvStructure:
    """Scan a whole file whose header, or each row without one, has ``n_fields`` fields.

    Parameters
    ----------
    data : (n,) uint8
        The bytes, without byte-order mark.
    n_fields : int
        Fields that each row must have.
    delimiter, quote : str
        One ASCII character each: what stands between fields, and around those that contain it.
    has_header : bool
        Whether the first record names the columns. It is row 0; rows count from 1.

    Returns
    -------
    CsvStructure
        Rows, blank lines and irregularities.
    """
    found = np.zeros((MAX_IRREGULARITIES, 6), dtype=np.int64)
    counts = np.zeros(max(Irregularity) + 1, dtype=np.int64)
    first = 0 if has_header else 1
    swallowing = np.zeros(MAX_IRREGULARITIES, dtype=np.int64)
    end, n_blank, row, field, n_swallowed = _scan(
        data, n_fields, ord(delimiter), ord(quote), first, found, counts, swallowing
    )
    return CsvStructure(
        n_rows=max(0, end - 1),
        n_blank_at_end=n_blank,
        irregularities=found[: counts.sum(), :4],
        spans=found[: counts.sum(), 4:],
        counts={kind: int(counts[kind]) for kind in Irregularity if counts[kind]},
        end=(row, field),
        n_swallowed=n_swallowed,
        swallowing=tuple(dict.fromkeys(swallowing[:n_swallowed].tolist())),
    )


@kernel
def _note(
    found: NDArray[np.int64],
    counts: NDArray[np.int64],
    kind: int,
    record: int,
    field: int,
    n_fields: int,
    begin: int,
    end: int,
) -> None:
    n_found = counts.sum()
    if n_found < len(found):
        found[n_found, 0] = kind
        found[n_found, 1] = record
        found[n_found, 2] = field
        found[n_found, 3] = n_fields
        found[n_found, 4] = begin
        found[n_found, 5] = end
    counts[kind] += 1


@kernel
def _note_blank(
    data: NDArray[np.uint8],
    found: NDArray[np.int64],
    counts: NDArray[np.int64],
    record: int,
    n_blank: int,
    begin: int,
) -> None:
    """Note the blank lines before a record, of which the first begins at a byte."""
    for k in range(n_blank):
        _note(found, counts, _BLANK, record - n_blank + k, _ZERO, _ZERO, begin, begin)
        while data[begin] != _LF:
            begin += 1
        begin += 1


@kernel
def _swallowed(
    swallowing: NDArray[np.int64], n_before: int, record: int, is_within: bool, marks: int, n_fields: int
) -> int:
    """Return 1 where a line begins within quotes and is parted as a row is, and note the row that has it."""
    if not (is_within and marks == n_fields - 1 and n_fields > 2):
        return 0
    if n_before < len(swallowing):
        swallowing[n_before] = record
    return 1


@kernel
def _scan(
    data: NDArray[np.uint8],
    n_fields: int,
    delimiter: int,
    quote: int,
    first: int,
    found: NDArray[np.int64],
    counts: NDArray[np.int64],
    swallowing: NDArray[np.int64],
) -> tuple[int, int, int, int, int]:
    record, field, state = first, _ZERO, _START
    n_blank, blank, begin = _ZERO, _ZERO, _ZERO  # the first bytes of the blank lines, and of the record
    marks, is_within, n_swallowed = 0, False, 0  # of a line: delimiters, and whether it begins within quotes
    quote_record, quote_field, quoted = _ZERO, _ZERO, _ZERO
    for i in range(len(data)):
        byte = data[i]
        if state == _QUOTED:
            if byte == quote:
                state = _CLOSED
            elif byte == delimiter:
                marks += 1
            elif byte == _LF:
                n_swallowed += _swallowed(swallowing, n_swallowed, record, is_within, marks, n_fields)
                marks, is_within = 0, True
        elif byte == delimiter:
            field += 1
            marks += 1
            state = _START
        elif byte == _LF:
            n_swallowed += _swallowed(swallowing, n_swallowed, record, is_within, marks, n_fields)
            marks, is_within = 0, False
            if field == 0 and state == _START:
                blank = begin if n_blank == 0 else blank
                n_blank += 1
            else:
                _note_blank(data, found, counts, record, n_blank, blank)
                n_blank = _ZERO
                if i - begin > MAX_ROW_BYTES:
                    _note(found, counts, _LONG_ROW, record, field, _ZERO, begin, i)
                elif field + 1 != n_fields:
                    _note(found, counts, _FIELD_COUNT, record, field, field + 1, begin, i)
            record += 1
            field, state, begin = _ZERO, _START, i + 1
        elif byte == _CR:
            if (i + 1 == len(data) or data[i + 1] != _LF) and state != _FAULTY:
                _note(found, counts, _LONE_CR, record, field, _ZERO, begin, i)
                state = _FAULTY
        elif byte == quote:
            if state == _START:
                quote_record, quote_field, quoted = record, field, i
                state = _QUOTED
            elif state == _CLOSED:
                state = _QUOTED
            elif state == _PLAIN:
                _note(found, counts, _QUOTE_INSIDE, record, field, _ZERO, begin, i)
                state = _FAULTY
        elif state == _START:
            state = _PLAIN
        elif state == _CLOSED:
            _note(found, counts, _TEXT_AFTER_QUOTE, record, field, _ZERO, quoted, i)
            state = _FAULTY
    end_record, end_field = record, field
    if field > 0 or state != _START:  # the last line has no line end
        _note_blank(data, found, counts, record, n_blank, blank)
        n_blank = _ZERO
        if state == _QUOTED:
            _note(found, counts, _UNCLOSED, quote_record, quote_field, _ZERO, quoted, len(data))
        elif len(data) - begin > MAX_ROW_BYTES:
            _note(found, counts, _LONG_ROW, record, field, _ZERO, begin, len(data))
        elif field + 1 != n_fields:
            _note(found, counts, _FIELD_COUNT, record, field, field + 1, begin, len(data))
        n_swallowed += _swallowed(swallowing, n_swallowed, record, is_within, marks, n_fields)
        record += 1
    return record - n_blank, n_blank, end_record, end_field, n_swallowed
