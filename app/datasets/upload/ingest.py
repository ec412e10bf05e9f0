"""Read an uploaded file into a segment and a report, or refuse it with every fault that it has."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import polars as pl

from app.datasets.reading.cells import Cells, read_cells
from app.datasets.reading.csv_file import open_csv
from app.datasets.reading.faults import FaultList, refuse
from app.datasets.reading.header import Role, check_header, roles_of
from app.datasets.reading.parquet_file import UNREADABLE, open_parquet
from app.datasets.reading.parquet_probe import survives_decoding
from app.datasets.reading.timestamps import time_format
from app.datasets.reading.uploaded_table import UploadedTable, refusing_unreadable
from app.datasets.schemas import Definition, SeriesDefinition, UploadMode, UploadReport, Warned
from app.datasets.stored.coverage import Summary
from app.datasets.upload.extent import Base, Extent, regression_extent, series_extent
from app.datasets.upload.overlap import Overlap
from ccmtl_core.forecasting import Frequency


class FileType(StrEnum):
    """Media types of uploads."""

    CSV = "text/csv"
    PARQUET = "application/vnd.apache.parquet"


_UNREADABLE = {
    FileType.CSV: ("not_csv", "The file cannot be read as CSV."),
    FileType.PARQUET: ("not_parquet", UNREADABLE),
}


class Ingested(NamedTuple):
    """What is to be stored, what is to be told, and the rows that may be stored already."""

    segment: pl.DataFrame
    summary: Summary
    report: UploadReport
    overlap: Overlap | None


def ingest(
    path: Path,
    file_type: FileType,
    definition: Definition,
    mode: UploadMode,
    base: Base | None,
    max_bytes: int,
) -> Ingested:
    """Validate the file at ``path`` and bring it to the form of a segment.

    Parameters
    ----------
    path : Path
        The decoded upload.
    file_type : FileType
        What it was declared to be.
    definition : Definition
        What the dataset asks for.
    mode : UploadMode
        What the sender asked for.
    base : Base, optional
        The data that it is appended to; None when it stands alone.
    max_bytes : int
        Limit on the memory of a table whose file does not show its size.

    Returns
    -------
    Ingested
        What was read.

    Raises
    ------
    InvalidContent
        With every fault of the file.
    PayloadTooLarge
        If the table is over ``max_bytes``.
    """
    faults = FaultList()
    roles = roles_of(definition)
    wanted = {role.column for role in roles}
    if file_type is FileType.CSV:
        table = open_csv(path, wanted, faults)
    else:
        table = open_parquet(path, len(roles), max_bytes)
        if not survives_decoding(path, [name for name in table.names if name in wanted], max_bytes):
            raise refuse(*_UNREADABLE[file_type])
    cells = _read_cells(table, roles, definition, file_type, faults)
    if isinstance(definition, SeriesDefinition):
        extent = series_extent(cells, definition, base, faults)
    else:
        extent = regression_extent(cells, base, faults)
    report = _report(table, roles, cells, extent, mode)
    return Ingested(extent.segment, extent.summary, report, extent.overlap)


def _read_cells(
    table: UploadedTable,
    roles: Sequence[Role],
    definition: Definition,
    file_type: FileType,
    faults: FaultList,
) -> Cells:
    has_columns = check_header(table, roles, faults)
    if not (faults or table.n_rows):
        faults.add("no_rows", "the file names its columns and has no rows")
    if not (has_columns and table.n_rows) or table.rows is None:
        raise faults.refusal()
    code, message = _UNREADABLE[file_type]
    formats = time_format(None)
    if isinstance(definition, SeriesDefinition):
        formats = time_format(definition.ds_format, in_utc=definition.frequency is Frequency.HOUR)
    with refusing_unreadable(code, message):
        cells = read_cells(table, table.rows, roles, formats, faults)
    if not cells.frame.height:
        raise faults.refusal()
    return cells


def _report(
    table: UploadedTable, roles: Sequence[Role], cells: Cells, extent: Extent, mode: UploadMode
) -> UploadReport:
    wanted = {role.column for role in roles}
    overlap = extent.overlap
    warnings = [*extent.warnings, *([] if overlap is None else [overlap.warning()])]
    if table.n_blank_at_end:
        warnings.append(
            Warned(
                code="blank_lines", message="Blank lines at the end were skipped.", count=table.n_blank_at_end
            )
        )
    return UploadReport(
        mode=mode,
        rows=table.n_rows,
        series=extent.upload.series,
        periods=extent.upload.periods,
        first=extent.upload.first,
        last=extent.upload.last,
        aggregated_rows=table.n_rows - extent.upload.values + (0 if overlap is None else overlap.n_values),
        overlapping_rows=0 if overlap is None else overlap.n_rows,
        filled_periods=extent.filled_periods,
        time_zone=cells.time_zone,
        ignored_columns=[name for name in table.columns if name not in wanted],
        warnings=warnings,
        version=extent.version,
    )
