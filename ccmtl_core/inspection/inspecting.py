"""Inspect a table of series: how it is understood, what is wrong with it, and what became of each row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import date
from typing import Any

from ccmtl_core.base.display import counted, named, option, quoted
from ccmtl_core.base.file_path import checked_path
from ccmtl_core.data.frames import as_polars
from ccmtl_core.inspection.id_columns import SIGN, columns_apart, id_columns, with_one_id
from ccmtl_core.inspection.parts.examined import examine
from ccmtl_core.inspection.policies import Policies
from ccmtl_core.inspection.reading import SeriesRows, read_rows
from ccmtl_core.inspection.report import Accounts, Finding, InspectionReport, Sample, ordered
from ccmtl_core.series.calendar import Frequency
from ccmtl_core.tables.column_words import is_time
from ccmtl_core.tables.dialects.dialect import NOTHING_STATED, ReadOptions
from ccmtl_core.tables.faults import NO_ROWS, FaultList, Parts, TableError, part_of
from ccmtl_core.tables.table import Note, Table
from ccmtl_core.tables.table_file import open_table
from ccmtl_core.tables.wide.shape import long_table


def inspect(
    source: Any,
    *,
    unique_id: str | Sequence[str] | None = None,
    ds: str | None = None,
    y: str | None = None,
    ds_format: str | None = None,
    frequency: Frequency | str | None = None,
    policies: Policies | None = None,
    today: date | None = None,
    dialect: ReadOptions = NOTHING_STATED,
) -> InspectionReport:
    """Read a table of series as far as it can be understood, and report what was found.

    Nothing is dropped or repaired without a count and an example, and no more than ``policies`` name.

    Parameters
    ----------
    source : path, DataFrame of polars or pandas, or an Arrow table
        A file as :func:`ccmtl_core.tables.read_table` reads it, or a table.
    unique_id : str or sequence of str, optional
        Column with the id of the series, or columns that make one id, such as a store and a department.
    ds, y : str, optional
        Columns with the time and the value. Columns that are not stated are found by their names and cells.
    ds_format : str, optional
        How times are written: a strptime pattern such as "%d/%m/%Y", also with %G and %V (ISO weeks) or %q
        (quarters), or "excel", "epoch", "epoch_ms", "integer". Without it the whole column decides, and two
        readings that fit alike are an error.
    frequency : Frequency, optional
        What a period is; inferred from the times where not stated.
    policies : Policies, optional
        The repairs; none by default.
    today : date, optional
        Times after it are told; by default the date of this machine.
    dialect : ReadOptions
        What is stated of how a file is written; the rest is guessed.

    Returns
    -------
    InspectionReport
        Its ``panel`` holds the data, unless there are errors.

    Raises
    ------
    DataError
        The file is no table that can be read.
    ParameterError
        A frequency, format or policy that there is not.
    OSError
        The file cannot be read.

    Examples
    --------
    >>> import polars as pl
    >>> sales = pl.DataFrame(
    ...     {
    ...         "product": ["007", "007", "12"],
    ...         "day": ["31/1/2024", "31/1/2024", "1/2/2024"],
    ...         "sold": [3, 2, -1],
    ...     }
    ... )
    >>> report = inspect(sales, frequency="D", policies=Policies(duplicates="sum"), today=date(2024, 3, 1))
    >>> report.traits["ds_format"].value, report.counts["duplicate_period"], report.counts["negative_values"]
    ('%d/%m/%Y', 1, 1)
    >>> report.accounts
    Accounts(rows_read=3, rows_used=2, rows_merged=1, rows_dropped={}, values_changed={}, values_added={})
    >>> report.panel.values
    array([ 5., -1.])
    """
    of_id = id_columns(unique_id)
    stated: dict[str, str | None] = {"unique_id": SIGN.join(of_id) or None, "ds": ds, "y": y}
    of_period = None if frequency is None else Frequency(frequency)
    chosen = policies or Policies()
    faults = FaultList()
    with ExitStack() as files:
        if hasattr(source, "columns") or hasattr(source, "__arrow_c_stream__"):
            table = Table.of_frame(as_polars(source, "source", in_utc=of_period is Frequency.HOUR))
        else:
            asked = [column for column in (*of_id, ds, y) if column is not None]
            table = files.enter_context(open_table(checked_path(source), asked, faults, dialect))
        try:
            table = with_one_id(table, of_id, faults)
            if table.rows is None:
                raise faults.refusal()
            table = long_table(table, stated, faults)
            read = read_rows(
                table, stated, faults, ds_format=ds_format, frequency=of_period, missing=chosen.missing
            )
        except TableError as error:
            return refused(error, table.n_rows, chosen)
        found = [*note_findings(table.notes), *(fault_findings(faults.refusal()) if faults else ())]
        return report_of(read, chosen, found, today=today)


def report_of(
    read: SeriesRows,
    policies: Policies,
    found: Sequence[Finding] = (),
    *,
    today: date | None = None,
) -> InspectionReport:
    """Return the report of rows that were read.

    Parameters
    ----------
    read : SeriesRows
        The rows; their table is still open.
    policies : Policies
        The repairs.
    found : sequence of Finding
        What was found before.
    today : date, optional
        Times after it are told.

    Returns
    -------
    InspectionReport
    """
    if read.frequency is None:
        return _without_frequency(read, found, policies)
    examined = examine(
        read.cells.frame,
        read.frequency,
        policies,
        unread=read.unread,
        ds_format=read.dates.format,
        today=today,
        found=found,
    )
    return with_places(examined.report(read.traits, read.cells.time_zone), read)


def with_places(report: InspectionReport, read: SeriesRows) -> InspectionReport:
    """Return the report with the columns that tell rows of a period apart, and the files of its samples.

    Parameters
    ----------
    report : InspectionReport
        Of the rows.
    read : SeriesRows
        The rows; their table is still open.

    Returns
    -------
    InspectionReport
    """
    findings = [_in_files(finding, read.table.parts) for finding in report.findings]
    if report.policies["duplicates"] == "error" and "duplicate_period" in report.counts:
        findings = [_with_parting(finding, read) for finding in findings]
    return replace(report, findings=tuple(findings))


def _in_files(finding: Finding, parts: Parts) -> Finding:
    """The finding with the file of each sample, where several were read together."""
    places = [part_of(parts, sample.row) for sample in finding.samples]
    samples = [
        sample if place is None else replace(sample, file=place[0])
        for sample, place in zip(finding.samples, places, strict=True)
    ]
    return replace(finding, samples=tuple(samples))


def _with_parting(finding: Finding, read: SeriesRows) -> Finding:
    """Name in the finding on several rows in a period the columns that tell these rows apart."""
    taken = {role: str(read.traits[role].value) for role in ("unique_id", "ds", "y")}
    if finding.code != "duplicate_period":
        return finding
    parting = columns_apart(read.table, **taken)
    if not parting:
        return finding
    both = option("unique_id", [taken["unique_id"], parting[0]])
    of_time = [column for column in parting if is_time(column)]
    as_here = f", as its name says: {quoted(taken['ds'])} and {quoted(of_time[0])}" if of_time else ""
    told = (
        f" These rows differ in {named(parting, 'column')}: if that is part of the series, state {both}; "
        f"if it is part of the time, write both in one column{as_here}."
    )
    return replace(finding, message=finding.message + told)


def note_findings(notes: Sequence[Note]) -> Iterator[Finding]:
    """Return what of a file was not taken as it stands."""
    for note in notes:
        values = note.values or [None] * len(note.rows)
        samples = tuple(Sample(row, value=value) for row, value in zip(note.rows[:5], values, strict=False))
        yield Finding(note.code, note.severity, note.count, note.unit, note.message, samples)


def fault_findings(error: TableError) -> Iterator[Finding]:
    """What is wrong with cells and lines, by code."""
    for code, count in error.counts.items():
        listed = [fault for fault in error.listed if fault.code == code]
        of_rows = any(fault.row is not None for fault in listed)
        shown = listed[:5] if of_rows else []
        samples = tuple(Sample(fault.row, fault.unique_id, fault.ds, fault.value) for fault in shown)
        first = listed[0].message if listed else code
        columns = list(dict.fromkeys(fault.column for fault in listed if fault.column))
        shown_columns = ", ".join(map(quoted, columns[:3])) + (", …" if len(columns) > 3 else "")
        where = f"column{'s' if len(columns) > 1 else ''} {shown_columns}: " if columns else ""
        message = f"{counted(count, 'row')}, {where}{first}" if of_rows else first
        policy = "missing" if code == "empty_number" else None
        yield Finding(code, "error", count, "rows" if of_rows else "table", message, samples, policy)


def refused(error: TableError, n_rows: int, policies: Policies) -> InspectionReport:
    """Return the report of a table that cannot be understood.

    Parameters
    ----------
    error : TableError
        What is wrong with it.
    n_rows : int
        Rows below the header.
    policies : Policies
        The repairs that were chosen.

    Returns
    -------
    InspectionReport
    """
    code = NO_ROWS if NO_ROWS in error.counts else "faulty_rows"
    dropped = {code: n_rows} if n_rows else {}
    accounts = Accounts(n_rows, 0, 0, dropped)
    return InspectionReport({}, accounts, ordered(fault_findings(error)), policies.to_dict())


def _without_frequency(read: SeriesRows, found: Sequence[Finding], policies: Policies) -> InspectionReport:
    n_read = read.cells.frame.height
    evidence = read.traits["frequency"].evidence
    unknown = Finding("unknown_frequency", "error", n_read, "rows", evidence, policy="frequency")
    dropped = {**read.unread, "unknown_frequency": n_read}
    accounts = Accounts(sum(dropped.values()), 0, 0, dropped)
    return InspectionReport(read.traits, accounts, ordered([*found, unknown]), policies.to_dict())
