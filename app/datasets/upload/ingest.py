"""Read an uploaded file into a segment and a report, or refuse it with every fault that it has."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from app.datasets.reading.parquet_probe import survives_decoding
from app.datasets.reading.upload_file import FileType, answering, refuse_undeclared, roles_of
from app.datasets.receive import too_large
from app.datasets.schemas import Definition, SeriesDefinition, UploadMode, UploadReport, Warned
from app.datasets.upload.extent import Base, Extent, regression_extent, series_extent
from ccmtl_core.forecasting import Frequency
from ccmtl_core.tables.cell_hints import spreadsheet_ids, spreadsheet_warning
from ccmtl_core.tables.cells import Cells, read_cells
from ccmtl_core.tables.faults import FaultList
from ccmtl_core.tables.header import Role
from ccmtl_core.tables.table import Table
from ccmtl_core.tables.table_file import open_table
from ccmtl_core.tables.timestamps import time_format

BYTES_PER_CELL = 8


def ingest(
    path: Path,
    file_type: FileType,
    definition: Definition,
    mode: UploadMode,
    base: Base | None,
    max_bytes: int,
) -> tuple[Extent, UploadReport]:
    """Validate the decoded upload at ``path``, and return what it amounts to and its report.

    ``max_bytes`` limits the memory of a table whose file does not show its size; ``base`` is the version that
    the upload is appended to, if any. Raise InvalidContent with every fault of the file.
    """
    faults = FaultList()
    roles = roles_of(definition)
    wanted = [role.column for role in roles]
    with answering():
        refuse_undeclared(path, file_type, faults)
        with open_table(path, wanted, faults) as table:
            if file_type is FileType.PARQUET:
                if table.n_rows * len(roles) * BYTES_PER_CELL > max_bytes:
                    raise too_large(max_bytes)
                if not survives_decoding(path, [name for name in table.names if name in wanted], max_bytes):
                    raise faults.refusal_for(*table.unreadable)
            if isinstance(definition, SeriesDefinition):
                in_utc = definition.frequency is Frequency.HOUR
                cells = read_cells(table, roles, faults, time_format(definition.ds_format, in_utc=in_utc))
                extent = series_extent(cells, definition, base, faults)
            else:
                cells = read_cells(table, roles, faults)
                extent = regression_extent(cells, base, faults)
    return extent, _report(table, roles, cells, extent, mode)


def _report(
    table: Table, roles: Sequence[Role], cells: Cells, extent: Extent, mode: UploadMode
) -> UploadReport:
    wanted = {role.column for role in roles}
    overlap = extent.overlap
    warnings = [*extent.warnings, *([] if overlap is None else [overlap.warning()])]
    if table.n_blank_at_end:
        message = "Blank lines at the end were skipped."
        warnings.append(Warned(code="blank_lines", message=message, count=table.n_blank_at_end))
    ids = spreadsheet_ids(extent.summary.series["unique_id"].unique().sort())
    if ids:
        warnings.append(Warned(code="spreadsheet_ids", message=spreadsheet_warning(ids), count=len(ids)))
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
