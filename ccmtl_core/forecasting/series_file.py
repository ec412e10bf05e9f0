"""Read a file of series as a panel, as :func:`ccmtl_core.inspection.inspect` understands it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from ccmtl_core.base.display import counted, quoted
from ccmtl_core.base.exceptions import DataError, ParameterError
from ccmtl_core.base.file_path import checked_path
from ccmtl_core.inspection.id_columns import SIGN, id_columns, with_one_id
from ccmtl_core.inspection.inspecting import note_findings, report_of
from ccmtl_core.inspection.period_checks import filled_beside
from ccmtl_core.inspection.policies import Policies
from ccmtl_core.inspection.reading import SeriesRows, read_rows
from ccmtl_core.inspection.report import Finding, InspectionReport, ordered
from ccmtl_core.series.calendar import Frequency
from ccmtl_core.series.columns import SeriesColumns
from ccmtl_core.series.panel import SeriesPanel
from ccmtl_core.tables.cells import ROW
from ccmtl_core.tables.dates.timestamps import time_format
from ccmtl_core.tables.dialects.dialect import NOTHING_STATED, ReadOptions
from ccmtl_core.tables.dialects.repeated_columns import noting_repetitions
from ccmtl_core.tables.faults import FaultList
from ccmtl_core.tables.header import Kind, Role
from ccmtl_core.tables.table_file import open_table
from ccmtl_core.tables.wide.shape import long_table

_NOTHING = Policies()


def read_series(
    path: str | Path,
    frequency: Frequency | str | None = None,
    *,
    unique_id: str | Sequence[str] | None = None,
    ds: str | None = None,
    y: str | None = None,
    ds_format: str | None = None,
    policies: Policies = _NOTHING,
    dialect: ReadOptions = NOTHING_STATED,
) -> SeriesPanel:
    """Read a panel from a file of series, rows in any order.

    A file that :func:`ccmtl_core.inspection.inspect` calls usable is read, and as it is understood there:
    what is not stated is found, and nothing is repaired that ``policies`` do not name.

    Parameters
    ----------
    path : str or Path
        Any that :func:`ccmtl_core.tables.read_table` reads. A wide one, with a column for each period or
        each series, becomes one value a row.
    frequency : Frequency, optional
        What a period is; inferred from the times where not stated.
    unique_id : str or sequence of str, optional
        Column with the id of the series, or columns that make one id, such as a store and a department.
    ds, y : str, optional
        Columns with the time and the value. Columns that are not stated are found by their names and cells.
    ds_format : str, optional
        How times are written; by default the whole column decides.
    policies : Policies
        The repairs; none by default.
    dialect : ReadOptions
        What is stated of how the file is written; the rest is guessed.

    Returns
    -------
    SeriesPanel
        Series in the order of their ids.

    Raises
    ------
    DataError
        Names the file, and the row and column of each cell that cannot be used, or what must be stated or
        chosen first.
    ParameterError
        An unknown frequency, a pattern that cannot be used, a column that is named twice, or a path that is
        none.
    OSError
        The file cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "sold.csv"
    ...     _ = file.write_text("product;day;sold\\n007;29/2/2024;3\\n007;29/2/2024;2\\n007;1/3/2024;1\\n")
    ...     panel = read_series(file, "D", policies=Policies(duplicates="sum"))
    >>> panel.unique_ids, panel.values
    (('007',), array([5., 1.]))
    """
    return read_series_table(
        path,
        frequency,
        unique_id=unique_id,
        ds=ds,
        y=y,
        ds_format=ds_format,
        policies=policies,
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
    report : InspectionReport or None
        How the file was understood, and what became of each row.
    """

    panel: SeriesPanel
    columns: SeriesColumns | None
    attributes: pl.DataFrame | None
    report: InspectionReport | None = None


def read_series_table(
    path: str | Path,
    frequency: Frequency | str | None = None,
    *,
    unique_id: str | Sequence[str] | None = None,
    ds: str | None = None,
    y: str | None = None,
    ds_format: str | None = None,
    policies: Policies = _NOTHING,
    future: Sequence[str] = (),
    past: Sequence[str] = (),
    static: Sequence[str] = (),
    dialect: ReadOptions = NOTHING_STATED,
) -> SeriesTable:
    """Read series with what stands beside their values.

    Parameters
    ----------
    path, frequency, unique_id, ds, y, ds_format, policies, dialect
        As in :func:`read_series`. With columns beside the values, rows without ``y`` are not missing a value,
        and of several rows of a series in one period these columns become their mean.
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
        As :func:`read_series` does.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "sold.csv"
    ...     _ = file.write_text("unique_id,ds,y,price\\na,2024-01-01,3,1.5\\na,2024-01-02,,2\\n")
    ...     table = read_series_table(file, future=["price"])
    >>> table.panel.values, table.columns.values.ravel()
    (array([3.]), array([1.5, 2. ]))
    """
    numbers = [*future, *past]
    if numbers or static:
        policies = replace(policies, missing="absent")
    of_period = None if frequency is None else Frequency(frequency)
    of_id = id_columns(unique_id)
    named = [column for column in (*of_id, ds, y) if column is not None]
    _refuse_twice([*named, *numbers, *static])
    time_format(ds_format)  # which is wrong whatever the file is
    beside = [Role(f"c_{i}", column, Kind.OPTIONAL) for i, column in enumerate(numbers)]
    beside += [Role(f"s_{i}", column, Kind.TEXT) for i, column in enumerate(static)]
    faults = FaultList(str(path))
    asked = [*named, *(role.column for role in beside)]
    with open_table(checked_path(path), asked, faults, dialect) as table:
        stated: dict[str, str | None] = {"unique_id": SIGN.join(of_id) or None, "ds": ds, "y": y}
        table = with_one_id(table, of_id, faults)
        if table.rows is None:
            raise faults.refusal()
        table = noting_repetitions(table) if beside else long_table(table, stated, faults)
        read = read_rows(
            table,
            stated,
            faults,
            ds_format=ds_format,
            frequency=of_period,
            missing=policies.missing,
            beside=beside,
        )
        if faults:
            raise faults.refusal()
        report = report_of(read, policies, [*note_findings(read.table.notes)])
    panel = report.require_panel(str(path))
    columns = _columns(read, numbers, future, policies, path) if numbers else None
    if columns is not None and policies.fill != "none":
        filled = _filled_beside(panel, columns, read)
        report = replace(report, findings=ordered([*report.findings, filled]))
    attributes = _attributes(read.cells.frame, static, path) if static else None
    return SeriesTable(panel, columns, attributes, report)


def _refuse_twice(columns: Sequence[str]) -> None:
    repeated = sorted(name for name, n in Counter(columns).items() if n > 1)
    if repeated:
        raise ParameterError(
            f"the column {quoted(repeated[0])} is named twice: id, time, value and the columns beside them "
            "must be different ones"
        )


def _filled_beside(panel: SeriesPanel, columns: SeriesColumns, read: SeriesRows) -> Finding:
    """The finding on periods that were filled, and have no row and no column with what stands beside them."""
    ids, period = pl.Series("unique_id", panel.unique_ids), pl.Series("period", panel.period)
    of_series = pl.Series("series", panel.series_index)
    times = read.cells.frame["ds"].to_numpy()
    rows = [read.cells.frame["unique_id"], pl.Series("period", panel.frequency.to_period(times))]
    every = pl.DataFrame([ids.gather(of_series), period, of_series])
    filled = every.join(pl.DataFrame(rows), on=["unique_id", "period"], how="anti")
    places = columns.places(panel.unique_ids)[filled["series"].to_numpy()]
    lacking = np.isnan(columns.at(places, filled["period"].to_numpy()))
    names = [name for name, of_column in zip(columns.names, lacking.T, strict=True) if of_column.any()]
    return filled_beside(int(lacking.any(axis=1).sum()), names)


def _columns(
    read: SeriesRows, names: Sequence[str], future: Sequence[str], policies: Policies, path: str | Path
) -> SeriesColumns:
    """What stands beside the values, by series and period."""
    assert read.frequency is not None
    rows = read.cells.frame.with_columns(
        pl.Series("period", read.frequency.to_period(read.cells.frame["ds"]))
    )
    keys = ["unique_id", "period"]
    if policies.duplicates == "error":
        repeated = rows.filter(~pl.struct(keys).is_first_distinct())
        if repeated.height:
            row, one = repeated.select(ROW, "unique_id").row(0)
            raise DataError(
                f"{path}: {counted(repeated.height, 'row')} without a value in a period of a series that has "
                f"another row, the first in row {row} (series {quoted(one)}): leave one of them out"
            )
    cells = [pl.col(f"c_{i}").mean() for i in range(len(names))]
    rows = rows.group_by(keys, maintain_order=True).agg(cells)
    return SeriesColumns.of_rows(rows, names, read.frequency, ahead=future)


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
