"""Read an uploaded file into a segment and a report, or refuse it with every fault that it has."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import polars as pl

from app.datasets.definition import Definition, SeriesDefinition
from app.datasets.receive import Bounds
from app.datasets.schemas import DroppedPeriod, OverlapPolicy, TraitFound, UploadMode, UploadReport, Warned
from app.datasets.stored.period_values import PeriodValues
from app.datasets.upload.appended import with_version
from app.datasets.upload.dropped import still_dropped
from app.datasets.upload.extent import Base, Extent, regression_extent, series_extent
from app.datasets.upload.inspected import inspect_rows, with_faults, with_history
from app.datasets.upload.option_names import in_request
from app.datasets.upload.streamed import Taken, streamed
from app.http.errors import Fault, InvalidContent, PayloadTooLarge
from app.persistence.storage import Storage
from app.reading.parquet_probe import Decoding, decoded_apart
from ccmtl_core.base.display import counted
from ccmtl_core.inspection import InspectionReport
from ccmtl_core.inspection.id_columns import SIGN, with_one_id
from ccmtl_core.inspection.inspecting import refused
from ccmtl_core.inspection.period_checks import filled_beside
from ccmtl_core.inspection.report import ordered
from ccmtl_core.tables import ReadOptions
from ccmtl_core.tables.cell_hints import spreadsheet_ids, spreadsheet_warning
from ccmtl_core.tables.cells import read_cells
from ccmtl_core.tables.containers.unpack import TOO_LARGE
from ccmtl_core.tables.csv_file import CsvText
from ccmtl_core.tables.dialects.repeated_columns import noting_repetitions
from ccmtl_core.tables.faults import NO_ROWS, FaultList, TableError, no_rows
from ccmtl_core.tables.header import Kind, Role, sample_roles
from ccmtl_core.tables.table import Note
from ccmtl_core.tables.table_file import UNREADABLE_STREAM, open_unscanned
from ccmtl_core.tables.wide.shape import long_table

logger = logging.getLogger(__name__)

BYTES_PER_CELL = 8
DECODING_SECONDS = 120.0
DECODING_SPARE_BYTES = 512 * 1024**2
"""Memory that the process which decodes a file takes itself, and for what it decompresses at one time."""


class Upload(NamedTuple):
    """A decoded upload and what its sender wants of it."""

    path: Path
    options: ReadOptions
    mode: UploadMode
    overlap: OverlapPolicy
    dry_run: bool
    key: str | None = None


def ingest(
    upload: Upload,
    definition: Definition,
    base: Base | None,
    bounds: Bounds,
    stored: Callable[[], PeriodValues | None] | None,
    refuse_repeated: Callable[[pl.DataFrame], None],
    storage: Storage,
    segment: Path,
) -> tuple[Extent, UploadReport]:
    """Validate an upload, and return its extent and its report.

    ``bounds`` limit what is unpacked, and the memory of a table whose file does not show its size; ``base``
    is the version that the upload is appended to, if any; ``stored`` reads the values of the newest version
    of series, if there is one; ``refuse_repeated`` gets an upload all of whose periods have values in
    ``base``, and raises if ``base`` has this very segment. A large plain text is written to the file
    ``segment`` as it is read, and ``storage`` has room for its rows meanwhile.
    Raise InvalidContent with every fault of the file.
    """
    path, faults = upload.path, FaultList()
    n_packed = path.stat().st_size
    roles = _roles_of(definition)
    wanted = _wanted(definition, roles)
    known = [*wanted, *(role.column for role in roles)]
    inspection: InspectionReport | None = None
    n_rows: int | None = None
    is_stream = False
    dropped: Sequence[DroppedPeriod] = ()

    def compared(values: PeriodValues, is_taken: bool, extent: Extent) -> None:
        nonlocal inspection
        assert inspection is not None
        assert isinstance(definition, SeriesDefinition)
        is_replaced = upload.mode is UploadMode.FULL
        if stored is not None and (is_replaced or is_taken) and (before := stored()) is not None:
            how = definition.aggregation
            inspection = with_history(inspection, values, before, how, is_replaced=is_replaced)
        if definition.columns.beside:
            differing = values.differing(definition.columns.beside)
            filled = filled_beside(extent.filled_periods if differing else 0, differing)
            inspection = replace(inspection, findings=ordered([*inspection.findings, filled]))
        if base is not None:
            sent = values.unique_ids.to_list()
            whole, n_filled = extent.summary.series, extent.filled_periods
            inspection = with_version(inspection, extent.findings, whole, sent, n_filled)

    def probe(stream: Path) -> None:
        nonlocal is_stream
        is_stream = True
        _refuse_undecodable(stream, (), limit, faults)

    try:
        limit = bounds.unpacked(n_packed)
        with open_unscanned(path, wanted, faults, upload.options, limit, probe) as opened:
            if isinstance(opened, CsvText) and isinstance(definition, SeriesDefinition) and stored is None:
                done = streamed(opened, definition, storage, segment)
                if done is not None:
                    return done.extent, _report(done, opened.columns, known, upload)
            table = opened.scanned(faults) if isinstance(opened, CsvText) else opened
            has_columns = table.path is not None or is_stream
            if has_columns and table.n_rows * len(roles) * BYTES_PER_CELL > limit:
                raise bounds.refusal(n_packed)
            if table.path is not None:
                columns = [name for name in table.names if name in wanted]
                _refuse_undecodable(table.path, columns, limit, faults, table.unreadable)
            if isinstance(definition, SeriesDefinition):
                n_rows = table.n_rows
                table = with_one_id(table, definition.columns.of_id, faults)
                of_role = {role.name: role.column for role in roles}
                has_more = of_role.keys() != {"unique_id", "ds", "y"}  # as a wide table has not
                table = noting_repetitions(table) if has_more else long_table(table, of_role, faults)
                n_rows = table.n_rows
                rows = inspect_rows(table, definition, roles, base.summary if base else None, faults)
                cells, inspection = rows.cells, rows.report
                if not cells.frame.height:
                    none = no_rows(inspection.accounts.rows_dropped)
                    raise faults.refusal() if faults else faults.refusal_for(NO_ROWS, none)
                extent = series_extent(cells, definition, base, faults, compared, refuse_repeated)
                dropped = still_dropped(base.dropped if base else (), rows.dropped, cells.frame["ds"])
            else:
                cells = read_cells(table, roles, faults)
                extent = regression_extent(cells, base, faults)
    except TableError as error:
        if TOO_LARGE in error.counts:
            raise bounds.refusal(n_packed) from None
        if inspection is None and isinstance(definition, SeriesDefinition) and n_rows is not None:
            inspection = refused(error, n_rows, definition.policies)
        elif inspection is not None:
            inspection = with_faults(inspection, error)
        raise _refusal(error, inspection) from None
    n_kept, zone = cells.frame.height, cells.time_zone
    taken = Taken(extent, inspection, table.n_rows, n_kept, zone, cells.dialect, dropped)
    return extent, _report(taken, table.columns, known, upload, table.notes)


def _report(
    taken: Taken, columns: Sequence[str], known: Sequence[str], upload: Upload, notes: Sequence[Note] = ()
) -> UploadReport:
    extent, inspection, overlap = taken.extent, taken.inspection, taken.extent.overlap
    warnings = [Warned(code=one.code, message=one.message, count=one.count) for one in extent.findings]
    warnings += [] if overlap is None else [overlap.warning()]
    for note in notes:
        message = f"{note.message[0].upper()}{note.message[1:]}."
        warnings.append(Warned(code=note.code, message=message, count=note.count))
    ids = spreadsheet_ids(extent.summary.series["unique_id"].unique().sort())
    if ids:
        warnings.append(Warned(code="spreadsheet_ids", message=spreadsheet_warning(ids), count=len(ids)))
    told = {one.code for one in warnings}
    warnings += [
        Warned(code=one.code, message=one.message, count=one.count)
        for one in (inspection.findings if inspection else ())
        if one.severity == "warning" and one.code not in told
    ]
    return UploadReport(
        mode=upload.mode,
        idempotency_key=upload.key,
        rows=taken.n_rows,
        series=extent.upload.series,
        periods=extent.upload.periods,
        first=extent.upload.first,
        last=extent.upload.last,
        aggregated_rows=taken.n_kept - extent.upload.values + (0 if overlap is None else overlap.n_values),
        overlapping_rows=0 if overlap is None else overlap.n_rows,
        filled_periods=extent.filled_periods,
        time_zone=taken.time_zone,
        ignored_columns=[name for name in columns if name not in known],
        warnings=[one.model_copy(update={"message": in_request(one.message)}) for one in warnings],
        dropped_periods=list(taken.dropped),
        dialect={name: TraitFound(**trait) for name, trait in taken.dialect.to_dict().items()},
        inspection=inspection.worded(in_request).to_dict() if inspection else None,
        version=extent.version,
    )


def _refuse_undecodable(
    path: Path,
    columns: Sequence[str],
    max_bytes: int,
    faults: FaultList,
    unreadable: tuple[str, str] = UNREADABLE_STREAM,
) -> None:
    """Refuse a Parquet or Arrow file that crashes its decoding process, or takes too much time or memory."""
    limit = 2 * max_bytes + DECODING_SPARE_BYTES
    decoding = decoded_apart(path, columns, limit, max_seconds=DECODING_SECONDS)
    if decoding is Decoding.TOO_SLOW:
        raise faults.refusal_for(
            "parquet_takes_too_long",
            f"decoding the file takes over {DECODING_SECONDS:g} seconds; send it in parts, or as CSV",
        )
    if decoding is Decoding.TOO_LARGE:
        raise PayloadTooLarge(
            "upload_too_large",
            f"Decoding the file takes more than {limit:,} bytes of memory, the limit for an upload that may "
            f"unpack to {max_bytes:,} bytes. Send it in parts (`mode=append`), or as CSV.",
        )
    if decoding is Decoding.ABORTED:
        raise faults.refusal_for(*unreadable)


def _wanted(definition: Definition, roles: Sequence[Role]) -> list[str]:
    """The columns that a file must have; several of them may make up the id."""
    of_id = definition.columns.of_id if isinstance(definition, SeriesDefinition) else []
    return [*of_id, *(role.column for role in roles if role.name != "unique_id" or not of_id)]


def _roles_of(definition: Definition) -> list[Role]:
    """The columns that a file must have, with their roles. Features are called ``x_0``, ``x_1``, …; numbers
    and attributes of series, beside their values, ``c_0``, … and ``s_0``, …."""
    if isinstance(definition, SeriesDefinition):
        columns = definition.columns
        of_value = Kind.NUMBER if definition.missing == "error" else Kind.OPTIONAL
        return [
            Role("unique_id", SIGN.join(columns.of_id), Kind.ID),
            Role("y", columns.y, of_value),
            Role("ds", columns.ds, Kind.TIME),
            *(Role(f"c_{i}", name, Kind.OPTIONAL) for i, name in enumerate(columns.beside)),
            *(Role(f"s_{i}", name, Kind.TEXT) for i, name in enumerate(columns.attributes)),
        ]
    return sample_roles(definition.columns.unique_id, definition.columns.y, definition.columns.features)


def _refusal(error: TableError, inspection: InspectionReport | None) -> InvalidContent:
    """The HTTP answer with the faults of a table."""
    if error.__cause__ is not None:
        logger.warning("an upload was refused: %s", error.__cause__)
    kinds = ", ".join(f"{count:,} {code}" for code, count in error.counts.items())
    return InvalidContent(
        "invalid_upload",
        f"The file has {counted(error.n_faults, 'fault')} ({kinds}); see `errors`. Nothing was stored.",
        errors=[
            Fault(
                code=f.code,
                message=in_request(f.message, f.code),
                row=f.row,
                column=f.column,
                value=f.unique_id if f.column is None and f.unique_id is not None else f.value,
            )
            for f in error.listed
        ],
        error_count=error.n_faults,
        report=inspection.worded(in_request).to_dict() if inspection else None,
    )
