"""One id of several columns, such as a store and a department."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl
from polars.selectors import by_name

from ccmtl_core.tables.column_words import is_other, is_time
from ccmtl_core.tables.faults import FaultList
from ccmtl_core.tables.header import check_header
from ccmtl_core.tables.table import Table

SIGN = "-"
"""Between the parts of an id, and between the names of its columns."""
_COMPARED = 200_000
"""Rows in which columns are looked for that tell rows of one period apart."""


def id_columns(unique_id: str | Sequence[str] | None) -> list[str]:
    """Return the columns that make the id, as a caller names one, several or none."""
    return [unique_id] if isinstance(unique_id, str) else list(unique_id or ())


def with_one_id(table: Table, columns: Sequence[str], faults: FaultList) -> Table:
    """Return the table with a column of ids, called as its parts are with dashes between them.

    Parameters
    ----------
    table : Table
        Opened, not read.
    columns : sequence of str
        The columns that together tell a series. Of several, ids are their texts with dashes between them,
        and empty where one of them is. None where the column is to be found.
    faults : FaultList
        Takes columns that are missing or named twice.

    Returns
    -------
    Table

    Raises
    ------
    TableError
        A column is missing, or named twice.
    """
    name = SIGN.join(columns)
    if len(columns) < 2 or table.rows is None or name in table.columns:
        return table
    if not check_header(table.columns, columns, faults, ""):
        raise faults.refusal()
    parts = [by_name(table.names[table.columns.index(column)]).cast(pl.String) for column in columns]
    is_whole = pl.all_horizontal((part.is_not_null() & (part != "")) for part in parts)
    one = pl.when(is_whole).then(pl.concat_str(parts, separator=SIGN)).otherwise(pl.lit(""))
    rows = table.rows.with_columns(one.alias(name))
    return replace(table, columns=(*table.columns, name), names=(*table.names, name), rows=rows)


def columns_apart(table: Table, unique_id: str, ds: str, y: str) -> list[str]:
    """Return the columns that each tell the rows of a series in one period apart, such as a store.

    Parameters
    ----------
    table : Table
        Opened.
    unique_id, ds, y : str
        Its columns of series, times and values.

    Returns
    -------
    list of str
        Empty where the table has no such column, or is not read as it stands in the file.
    """
    taken = {unique_id, ds, y}
    if table.rows is None or not taken <= set(table.columns):
        return []
    by_name = dict(zip(table.columns, table.names, strict=True))
    head = table.rows.head(_COMPARED).collect()
    keys, apart = [by_name[unique_id], by_name[ds]], []
    for column in (column for column in table.columns if column not in taken and not is_other(column)):
        cells = head[by_name[column]]
        is_group = not cells.dtype.is_float() and (is_time(column) or 2 * cells.n_unique() <= head.height)
        if is_group and not head.select(*keys, by_name[column]).is_duplicated().any():
            apart.append(column)
    return apart
