"""How the dates of a table's column are read: as stated, or as the whole column shows."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
from polars.selectors import by_name

from ccmtl_core.tables.dates.inference import DatesFound, infer_dates
from ccmtl_core.tables.faults import FaultList
from ccmtl_core.tables.table import Table, refusing_unreadable
from ccmtl_core.tables.timestamps import TimeFormat, time_format


def column_format(
    table: Table, column: str, ds_format: str | None, faults: FaultList, *, in_utc: bool
) -> tuple[Table, TimeFormat, DatesFound]:
    """Find out how the dates of a column are read.

    Parameters
    ----------
    table : Table
        Opened; it has the column once.
    column : str
        Its name in the header.
    ds_format : str, optional
        What is stated. Without it the column shows.
    faults : FaultList
        Has the faults that were found before.
    in_utc : bool
        Whether times with a zone are converted to UTC.

    Returns
    -------
    table : Table
        With whole numbers in the column as text.
    formats : TimeFormat
        How the column is read; ISO 8601 where nothing fits, so that each bad date is told.
    found : DatesFound
        What was found, and why.

    Raises
    ------
    TableError
        ``ambiguous_dates``: several readings fit alike, or whole numbers may be anything.
    ParameterError
        A format that cannot be used.
    """
    ds_format = ds_format or table.ds_format
    formats = time_format(ds_format, in_utc=in_utc)
    if table.rows is None or table.columns.count(column) != 1:
        return table, formats, DatesFound(ds_format, "stated")
    name = table.names[table.columns.index(column)]
    with refusing_unreadable(table.unreadable, faults):
        dtype = table.rows.select(by_name(name)).collect_schema()[name]
        if dtype.is_integer():
            table = replace(table, rows=table.rows.with_columns(by_name(name).cast(pl.String)))
        elif dtype != pl.String:
            return table, formats, DatesFound(None, f"the column holds values of type {dtype}")
        if ds_format is not None:
            return table, formats, DatesFound(ds_format, "stated")
        assert table.rows is not None
        texts = table.rows.select(by_name(name).unique(maintain_order=True)).collect().to_series()
    found = infer_dates(texts, in_utc=in_utc)
    if found.is_ambiguous:
        faults.add("ambiguous_dates", f"the dates of the column {column!r}: {found.question}", column=column)
        raise faults.refusal()
    return table, time_format(found.format, in_utc=in_utc), found
