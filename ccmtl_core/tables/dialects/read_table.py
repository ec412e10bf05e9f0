"""Read any file of a table as text and numbers, with the number of each row and what was guessed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from polars.selectors import by_name

from ccmtl_core.base.arrays import locked
from ccmtl_core.base.file_path import checked_path
from ccmtl_core.base.types import IntArray
from ccmtl_core.tables.cell_hints import number_hint
from ccmtl_core.tables.dialects.dialect import NOTHING_STATED, Dialect, ReadOptions
from ccmtl_core.tables.dialects.number_choice import styled
from ccmtl_core.tables.dialects.numbers import NumberStyle
from ccmtl_core.tables.dialects.repeated_columns import distinct
from ccmtl_core.tables.faults import MAX_LISTED, FaultList
from ccmtl_core.tables.header import check_header
from ccmtl_core.tables.table import Note, Table, refusing_unreadable
from ccmtl_core.tables.table_file import open_table


@dataclass(frozen=True)
class ReadTable:
    """A table that was read from a file.

    Parameters
    ----------
    frame : polars DataFrame
        Columns by the names of the header. Those asked for as numbers are Float64, null where the cell is
        empty or no number; all others are text as it stands in the file or, of Parquet and Arrow, what they
        are there, with ids and whole numbers as text.
    row_of : (n,) int64
        The number of each row in the file, from 1 below the header.
    dialect : Dialect
        How the file is written: what was stated of it, and what was guessed and why.
    notes : tuple of Note
        What was not taken as it stands: rows left out, lines that are no rows, cells that are no numbers;
        each with its code, a sentence, how many there are and the first of the rows.
    """

    frame: pl.DataFrame
    row_of: IntArray
    dialect: Dialect
    notes: tuple[Note, ...]


def read_table(
    source: str | Path,
    options: ReadOptions = NOTHING_STATED,
    *,
    wanted: Sequence[str] = (),
    numbers: Sequence[str] = (),
) -> ReadTable:
    """Read a table from a file of any format, told apart by content.

    Parameters
    ----------
    source : str or Path
        A file.
    options : ReadOptions
        What is stated of it; all else is guessed.
    wanted : sequence of str
        Columns that must be there. They also tell the header from lines above it, and which delimiter parts
        it.
    numbers : sequence of str
        Columns that hold numbers. How these are written is decided from whole columns.

    Returns
    -------
    ReadTable
        All rows that have as many fields as the header has names; notes count the others.

    Raises
    ------
    DataError
        The file is no table that can be read, a wanted column is missing or named twice, or what must be
        known of it can be read in two ways; it says which option decides.
    OSError
        The file cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "sales.csv"
    ...     _ = file.write_text("Sales of 2024\\nstore;sold\\n007;1.250,50\\n012;3\\n", "utf-16")
    ...     table = read_table(file, numbers=["sold"])
    >>> table.frame.rows(), table.dialect.get("encoding"), table.dialect.get("header_row")
    ([('007', 1250.5), ('012', 3.0)], 'utf-16', 2)
    """
    faults = FaultList(str(source))
    asked = list(dict.fromkeys([*wanted, *numbers]))
    with open_table(checked_path(source), asked, faults, options) as table:
        if not check_header(table.columns, asked, faults):
            raise faults.refusal()
        malformed = _malformed(table, faults)
        styles = styled(table, numbers, ambiguous := FaultList(str(source)))
        if ambiguous:
            raise ambiguous.refusal()
        return _read(styles, numbers, malformed, faults)


def _malformed(table: Table, faults: FaultList) -> list[Note]:
    """What is wrong with rows, as notes; raise where the structure cannot be read at all."""
    if table.rows is None:
        raise faults.refusal()
    return [
        Note(code, f"{samples[0].message}; the row was left out", count, tuple(f.row or 0 for f in samples))
        for code, count, samples in faults.kinds()
    ]


def _read(table: Table, numbers: Sequence[str], notes: list[Note], faults: FaultList) -> ReadTable:
    assert table.rows is not None
    positions = np.arange(1, table.n_rows + 1)
    with refusing_unreadable(table.unreadable, faults):
        frame = table.rows.select(by_name(list(table.names))).collect()
    is_kept = ~np.isin(positions, table.malformed_rows)
    if frame.height != table.n_rows:
        raise faults.refusal_for(*table.unreadable)
    frame = frame.filter(is_kept)
    positions = positions[is_kept]
    row_of = positions if table.row_of is None else table.row_of[positions - 1]
    at = {column: i for i, column in enumerate(table.columns)}
    columns = frame.get_columns()
    for column in numbers:
        columns[at[column]] = _numbers(columns[at[column]], column, table, row_of, notes)
    is_number = {at[column] for column in numbers}
    texts = [
        series if i in is_number or not series.dtype.is_integer() else series.cast(pl.String)
        for i, series in enumerate(columns)
    ]
    named = [series.alias(column) for series, column in zip(texts, distinct(table.columns)[0], strict=True)]
    return ReadTable(pl.DataFrame(named), locked(row_of), table.dialect, (*table.notes, *notes))


def _numbers(raw: pl.Series, column: str, table: Table, row_of: IntArray, notes: list[Note]) -> pl.Series:
    if raw.dtype != pl.String:
        return raw.cast(pl.Float64, strict=False)
    parsed = table.styles.get(column, NumberStyle()).parse(raw)
    bad = (parsed.is_null() & (raw != "") & raw.is_not_null()).fill_null(False)
    if bad.any():
        first = bad.arg_true()
        example = str(raw[int(first[0])])
        message = f"cells of the column {column!r} are no numbers, such as {example!r}{number_hint(example)}"
        rows = tuple(row_of[first.head(MAX_LISTED).to_numpy()].tolist())
        notes.append(Note("unparseable_number", message, len(first), rows))
    return parsed
