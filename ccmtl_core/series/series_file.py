"""Read a file of series, one value a row, as a panel."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from ccmtl_core.base.display import counted, quoted
from ccmtl_core.base.exceptions import DataError, ParameterError
from ccmtl_core.series.calendar import Frequency
from ccmtl_core.series.panel import SeriesPanel
from ccmtl_core.tables.cells import ROW
from ccmtl_core.tables.header import Kind, Role
from ccmtl_core.tables.sample_files import read_columns
from ccmtl_core.tables.timestamps import time_format


def read_series(
    path: str | Path,
    frequency: Frequency | str,
    *,
    unique_id: str = "unique_id",
    ds: str = "ds",
    y: str = "y",
    ds_format: str | None = None,
    aggregation: str | None = None,
) -> SeriesPanel:
    """Read a panel from a file with one value a row, in any order.

    Parameters
    ----------
    path : str or Path
        CSV with a header (comma, UTF-8, also gzip or zstd compressed), Parquet or Arrow; told apart by
        content, not by name.
    frequency : Frequency
        What a period is.
    unique_id, ds, y : str
        Columns with the id of the series, the time, and the value.
    ds_format : str, optional
        A strptime pattern for times that are text, such as "%d/%m/%Y"; default ISO 8601.
    aggregation : {"sum", "mean"}, optional
        What several rows of a series in one period become. By default they are refused.

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
        An unknown frequency or aggregation, a pattern that cannot be used, or a path that is none.
    OSError
        The file cannot be read.
    """
    frequency = Frequency(frequency)
    roles = [Role("unique_id", unique_id, Kind.ID), Role("ds", ds, Kind.TIME), Role("y", y, Kind.NUMBER)]
    formats = time_format(ds_format, in_utc=frequency is Frequency.HOUR)
    if aggregation not in (None, "sum", "mean"):
        raise ParameterError(f"aggregation must be 'sum' or 'mean', not {aggregation!r}")
    frame = read_columns(path, roles, formats)
    frame = frame.with_columns(pl.Series("period", frequency.to_period(frame["ds"])))
    if aggregation is None:
        _refuse_repeated(frame, frequency, path)
    else:
        value = pl.col("y").sum() if aggregation == "sum" else pl.col("y").mean()
        frame = frame.group_by("unique_id", "period", maintain_order=True).agg(pl.col("ds").first(), value)
    return SeriesPanel.from_frame(frame, frequency)


def _refuse_repeated(frame: pl.DataFrame, frequency: Frequency, path: str | Path) -> None:
    repeated = frame.filter(~pl.struct("unique_id", "period").is_first_distinct())
    if repeated.height:
        row, unique_id, period = repeated.select(ROW, "unique_id", "period").row(0)
        start = frequency.text(period, "m" if frequency is Frequency.HOUR else "D")
        raise DataError(
            f"{path}: {counted(repeated.height, 'row')} in a period that the series has a row in already, "
            f"the first in row {row} (series {quoted(unique_id)}, period {start}): with the aggregation sum "
            "or mean, several rows become one value"
        )
