"""Read a file of series, one value a row, as a panel."""

from __future__ import annotations

from pathlib import Path

from ccmtl_core.series.calendar import Frequency
from ccmtl_core.series.panel import SeriesPanel
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
) -> SeriesPanel:
    """Read a panel from a file with one row per series and period, in any order.

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

    Returns
    -------
    SeriesPanel
        Series in the order of their ids.

    Raises
    ------
    DataError
        Names the file, and the row and column of each cell that cannot be used, or the series and period
        that stand in the file twice.
    ParameterError
        An unknown frequency, a pattern that cannot be used, or a path that is none.
    OSError
        The file cannot be read.
    """
    frequency = Frequency(frequency)
    roles = [Role("unique_id", unique_id, Kind.ID), Role("ds", ds, Kind.TIME), Role("y", y, Kind.NUMBER)]
    formats = time_format(ds_format, in_utc=frequency is Frequency.HOUR)
    return SeriesPanel.from_frame(read_columns(path, roles, formats), frequency)
