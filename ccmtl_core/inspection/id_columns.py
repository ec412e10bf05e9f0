"""One id of several columns, such as a store and a department."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl
from polars.selectors import by_name

from ccmtl_core.tables.column_words import is_amount, is_code, is_other, is_time
from ccmtl_core.tables.faults import FaultList
from ccmtl_core.tables.header import check_header
from ccmtl_core.tables.table import Table

SIGN = "-"
"""Between the parts of an id, and between the names of its columns."""
_MONEY = "[$€£¥₹₩₽₺฿]"
_NUMBER = r"^[-+(]?[0-9.,' ]*[0-9]\)?$"
_WITH_UNIT = rf"{_NUMBER}|^[^0-9]{{0,5}}[0-9][0-9 ]*[.,][0-9.,]*[^0-9]{{0,5}}$"
_AMOUNT = r"^[-+(]?(?:[0-9]*[.,][0-9]*[1-9][0-9]*|[0-9]{1,3}(?:[., '][0-9]{3})+(?:[.,][0-9]+)?)\)?$"
"""A currency, a number, one or a fraction with a unit, and a number with a fraction or with marks between its
thousands."""
_COMPARED = 200_000
"""Rows in which columns are looked for that tell rows of one period apart."""
_SAMPLED = 1000


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


def has_texts(dtype: pl.DataType) -> bool:
    """Return whether cells of a type have a text, which lists and the periods of pandas have not."""
    plain = (pl.String, pl.Categorical, pl.Enum, pl.Boolean, pl.Date, pl.Datetime, pl.Time, pl.Null)
    return dtype.is_numeric() or isinstance(dtype, plain)


def may_be_id(column: str, cells: pl.Series, currency: str | None = None) -> bool:
    """Return whether a column may be taken as one of ids: it holds no times, fractions, money or amounts.

    Parameters
    ----------
    column : str
        Its name.
    cells : polars Series
        Its first cells.
    currency : str, optional
        A unit beside numbers that is stated.

    Returns
    -------
    bool

    Examples
    --------
    >>> may_be_id("Product", pl.Series(["101", "102"])), may_be_id("Product Sales", pl.Series(["101", "102"]))
    (True, False)
    """
    if cells.dtype.is_temporal() or cells.dtype.is_float():
        return False
    texts = cells.cast(pl.String).drop_nulls()
    if currency:
        texts = texts.str.replace_all(currency, "$", literal=True)
    bare = texts.str.replace_all(_MONEY, "").str.strip_chars()
    is_number = bare.str.contains(_WITH_UNIT if is_amount(column) else _NUMBER)
    if 2 * (n_numbers := is_number.sum()) <= (bare != "").sum():
        return True
    if is_amount(column) or (is_number & (bare != texts.str.strip_chars())).any():
        return False
    return is_code(column) or 10 * bare.str.contains(_AMOUNT).sum() <= n_numbers


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
        if cells.dtype.is_float() or not has_texts(cells.dtype):
            continue
        is_part = cells.dtype.is_temporal() or may_be_id(column, cells.head(_SAMPLED))
        is_group = is_time(column) or (is_part and 2 * cells.n_unique() <= head.height)
        if is_group and not head.select(*keys, by_name[column]).is_duplicated().any():
            apart.append(column)
    return apart
