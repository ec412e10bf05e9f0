"""How the dates of a table's column are read: as stated, or as the whole column shows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
from polars.selectors import by_name

from ccmtl_core.base.display import quoted
from ccmtl_core.tables.dates.doubts import DatesFound
from ccmtl_core.tables.dates.inference import infer_dates, lack_year
from ccmtl_core.tables.dates.orders import other_order
from ccmtl_core.tables.dates.timestamps import TimeFormat, time_format
from ccmtl_core.tables.faults import FaultList
from ccmtl_core.tables.table import Table, refusing_unreadable

_HALF_A_YEAR = 183


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
    origin = "stated" if ds_format is not None else "the shape of the table shows it"
    ds_format = ds_format or table.ds_format
    formats = time_format(ds_format, in_utc=in_utc)
    if table.rows is None or table.columns.count(column) != 1:
        return table, formats, DatesFound(ds_format, origin)
    name = table.names[table.columns.index(column)]
    with refusing_unreadable(table.unreadable, faults):
        dtype = table.rows.select(by_name(name)).collect_schema()[name]
        if dtype.is_integer():
            table = replace(table, rows=table.rows.with_columns(by_name(name).cast(pl.String)))
        elif dtype != pl.String:
            return table, formats, DatesFound(None, f"the column holds values of type {dtype}")
        if ds_format is not None:
            return table, formats, DatesFound(ds_format, origin)
        assert table.rows is not None
        if table.parts:
            of_files = _by_file(table, name)
            texts = of_files["text"].unique(maintain_order=True)
        else:
            texts = table.rows.select(by_name(name).unique(maintain_order=True)).collect().to_series()
    found = infer_dates(texts, in_utc=in_utc, column=column)
    question = found.question if found.is_ambiguous else ""
    if table.parts and found.is_known:
        question = other_order(of_files, table.parts, found.format, in_utc=in_utc) or ""
    year = table.options.year
    if year is not None and (dated := _of_year(texts, year)) is not None:
        found, question = dated
        table = replace(table, rows=table.rows.with_columns(by_name(name) + f" {year}"))
    elif not (found.is_known or found.is_ambiguous) and lack_year(texts):
        question = f"{quoted(texts[0])} has no year: state the `year`, such as 2024, or write it in each"
    if question:
        faults.add("ambiguous_dates", f"the dates of {faults.called(column)}: {question}", column=column)
        raise faults.refusal()
    return table, time_format(found.format, in_utc=in_utc), found


def _by_file(table: Table, name: str) -> pl.DataFrame:
    """The texts of a column and the places of the files that they stand in, each pair once."""
    assert table.rows is not None
    firsts, row_of = [first for _, first in table.parts], table.row_of

    def place(rows: pl.Series) -> pl.Series:
        row = rows.to_numpy() if row_of is None else row_of[rows.to_numpy() - 1]
        return pl.Series(np.searchsorted(firsts, row, side="right") - 1)

    texts = table.rows.select(by_name(name).alias("text")).with_row_index("row", offset=1)
    file = pl.col("row").map_batches(place, pl.Int64, is_elementwise=True).alias("file")
    return texts.select("text", file).unique(maintain_order=True).collect()


def _of_year(texts: pl.Series, year: int) -> tuple[DatesFound, str] | None:
    """How dates without a year are written once it is added, and what stays open; None of any other texts."""
    alone = infer_dates(texts)
    if (alone.is_ambiguous and not alone.may_lack_year) or (alone.is_known and alone.format != "integer"):
        return None
    distinct = texts.drop_nulls().filter(texts.drop_nulls() != "").rename("text")
    found = infer_dates(distinct + f" {year}")
    if not found.is_known or found.format == "integer":
        return None
    times = time_format(found.format).parse(pl.col("text") + f" {year}")
    days = distinct.to_frame().select(times.diff().dt.total_days()).to_series()
    back = (days < -_HALF_A_YEAR).arg_true()
    if not len(back):
        return found, ""
    before, after = distinct[int(back[0]) - 1], distinct[int(back[0])]
    return (
        found,
        f"{quoted(after)} follows {quoted(before)}, so one `year` is not that of all: write it in each",
    )
