"""Read a file of series, one value a row, as a panel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import polars as pl

from ccmtl_core.base.display import counted, quoted
from ccmtl_core.base.exceptions import DataError, ParameterError
from ccmtl_core.base.file_path import checked_path
from ccmtl_core.series.calendar import Frequency
from ccmtl_core.series.columns import SeriesColumns
from ccmtl_core.series.panel import SeriesPanel
from ccmtl_core.tables.cells import ROW, read_cells
from ccmtl_core.tables.dates.column_format import column_format
from ccmtl_core.tables.dialects.dialect import NOTHING_STATED, ReadOptions
from ccmtl_core.tables.dialects.shape import long_table
from ccmtl_core.tables.faults import FaultList
from ccmtl_core.tables.header import Kind, Role
from ccmtl_core.tables.table_file import open_table
from ccmtl_core.tables.timestamps import time_format


def read_series(
    path: str | Path,
    frequency: Frequency | str,
    *,
    unique_id: str = "unique_id",
    ds: str = "ds",
    y: str = "y",
    ds_format: str | None = None,
    duplicates: str = "error",
    dialect: ReadOptions = NOTHING_STATED,
) -> SeriesPanel:
    """Read a panel from a file of series, rows in any order.

    Parameters
    ----------
    path : str or Path
        Any that :func:`ccmtl_core.tables.read_table` reads. A wide one, with a column for each period or
        each series, becomes one value a row.
    frequency : Frequency
        What a period is.
    unique_id, ds, y : str
        Columns with the id of the series, the time, and the value.
    ds_format : str, optional
        How times are written, as :func:`ccmtl_core.inspection.inspect` takes it; by default the whole column
        decides.
    duplicates : {"error", "sum", "mean", "last"}
        What several rows of a series in one period become; by default they are refused.
    dialect : ReadOptions
        What is stated of how the file is written; the rest is guessed.

    Returns
    -------
    SeriesPanel
        Series in the order of their ids.

    Raises
    ------
    DataError
        Names the file, and the row and column of each cell that cannot be used, or how many rows fall into
        a period that has one already.
    ParameterError
        An unknown frequency or policy, a pattern that cannot be used, or a path that is none.
    OSError
        The file cannot be read.
    """
    return read_series_table(
        path,
        frequency,
        unique_id=unique_id,
        ds=ds,
        y=y,
        ds_format=ds_format,
        duplicates=duplicates,
        dialect=dialect,
    ).panel


class SeriesTable(NamedTuple):
    """What a file says of series.

    Parameters
    ----------
    panel : SeriesPanel
        The series that have values.
    columns : SeriesColumns or None
        What stands beside the values; None where no column was asked for.
    attributes : DataFrame or None
        ``unique_id`` and the attributes of each product, also of those without values; None where none was
        asked for.
    """

    panel: SeriesPanel
    columns: SeriesColumns | None
    attributes: pl.DataFrame | None


def read_series_table(
    path: str | Path,
    frequency: Frequency | str,
    *,
    unique_id: str = "unique_id",
    ds: str = "ds",
    y: str = "y",
    ds_format: str | None = None,
    duplicates: str = "error",
    future: Sequence[str] = (),
    past: Sequence[str] = (),
    static: Sequence[str] = (),
    dialect: ReadOptions = NOTHING_STATED,
) -> SeriesTable:
    """Read series with what stands beside their values.

    Parameters
    ----------
    path, frequency, unique_id, ds, y, ds_format, duplicates, dialect
        As in :func:`read_series`. Of several rows of a series in one period, columns become their mean.
    future : sequence of str
        Columns of numbers that are known of periods to come, such as a price: rows without ``y`` say what
        it will be. Cells may be empty where a number is not known.
    past : sequence of str
        Columns of numbers that are known up to the present.
    static : sequence of str
        Columns of text that do not change within a product, such as a department.

    Returns
    -------
    SeriesTable

    Raises
    ------
    DataError
        As :func:`read_series` does; and for an attribute that changes within a product.
    ParameterError, OSError
        As :func:`read_series` does; and for a column that is named twice.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "sold.csv"
    ...     _ = file.write_text("unique_id,ds,y,price\\na,2024-01-01,3,1.5\\na,2024-01-02,,2\\n")
    ...     table = read_series_table(file, "D", future=["price"])
    >>> table.panel.values, table.columns.values.ravel()
    (array([3.]), array([1.5, 2. ]))
    """
    frequency = Frequency(frequency)
    names = [*future, *past]
    _refuse_twice([unique_id, ds, y, *names, *static])
    of_value = Kind.OPTIONAL if names or static else Kind.NUMBER
    roles = [Role("unique_id", unique_id, Kind.ID), Role("ds", ds, Kind.TIME), Role("y", y, of_value)]
    roles += [Role(f"c_{i}", column, Kind.OPTIONAL) for i, column in enumerate(names)]
    roles += [Role(f"s_{i}", column, Kind.TEXT) for i, column in enumerate(static)]
    time_format(ds_format)  # which is wrong whatever the file is
    if duplicates not in ("error", "sum", "mean", "last"):
        raise ParameterError(f"duplicates must be 'error', 'sum', 'mean' or 'last', not {duplicates!r}")
    faults = FaultList(str(path))
    with open_table(checked_path(path), [role.column for role in roles], faults, dialect) as table:
        if not (names or static):
            table = long_table(table, {"unique_id": unique_id, "ds": ds, "y": y}, faults)
        in_utc = frequency is Frequency.HOUR
        table, formats, _ = column_format(table, ds, ds_format, faults, in_utc=in_utc)
        frame = read_cells(table, roles, faults, formats).frame
    if faults:
        raise faults.refusal()
    frame = frame.with_columns(pl.Series("period", frequency.to_period(frame["ds"])))
    attributes = _attributes(frame, static, path) if static else None
    if duplicates == "error":
        _refuse_repeated(frame, frequency, path)
    else:
        values = pl.col("y")
        value = {"sum": values.sum(), "mean": values.mean(), "last": values.drop_nulls().last()}[duplicates]
        value = pl.when(pl.col("y").count() > 0).then(value)
        beside = [pl.col(f"c_{i}").mean() for i in range(len(names))]
        frame = frame.group_by("unique_id", "period", maintain_order=True).agg(
            pl.col("ds").first(), value.alias("y"), *beside
        )
    panel = SeriesPanel.from_frame(frame.filter(pl.col("y").is_not_null()), frequency)
    columns = SeriesColumns.of_rows(frame, names, frequency, ahead=future) if names else None
    return SeriesTable(panel, columns, attributes)


def _refuse_twice(columns: Sequence[str]) -> None:
    repeated = sorted(name for name, n in Counter(columns).items() if n > 1)
    if repeated:
        raise ParameterError(
            f"the column {quoted(repeated[0])} is named twice: id, time, value and the columns beside them "
            "must be different ones"
        )


def _attributes(frame: pl.DataFrame, static: Sequence[str], path: str | Path) -> pl.DataFrame:
    """The attributes of each product; one that changes within a product is refused."""
    cells = [f"s_{i}" for i in range(len(static))]
    for cell, name in zip(cells, static, strict=True):
        first = pl.col(cell).drop_nulls().first().over("unique_id")
        other = frame.filter(pl.col(cell).is_not_null() & (pl.col(cell) != first))
        if other.height:
            row, unique_id, value = other.select(ROW, "unique_id", cell).row(0)
            raise DataError(
                f"{path}: the attribute {quoted(name)} of the product {quoted(unique_id)} changes, first in "
                f"row {row}, to {quoted(value)}: an attribute is the same in all rows of a product"
            )
    of_product = frame.group_by("unique_id").agg(pl.col(cells).drop_nulls().first()).sort("unique_id")
    return of_product.rename(dict(zip(cells, static, strict=True)))


def _refuse_repeated(frame: pl.DataFrame, frequency: Frequency, path: str | Path) -> None:
    repeated = frame.filter(~pl.struct("unique_id", "period").is_first_distinct())
    if repeated.height:
        row, unique_id, period = repeated.select(ROW, "unique_id", "period").row(0)
        start = frequency.text(period, "m" if frequency is Frequency.HOUR else "D")
        raise DataError(
            f"{path}: {counted(repeated.height, 'row')} in a period that the series has a row in already, "
            f"the first in row {row} (series {quoted(unique_id)}, period {start}): with duplicates=sum, "
            "mean or last, several rows become one value"
        )
