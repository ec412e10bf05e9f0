"""Inspect a table of series: how it is understood, what is wrong with it, and what became of each row."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import polars as pl

from ccmtl_core.base.display import counted, named, option, quoted
from ccmtl_core.base.file_path import checked_path
from ccmtl_core.data.frames import as_polars
from ccmtl_core.inspection.column_choice import is_time
from ccmtl_core.inspection.id_columns import SIGN, columns_apart, id_columns, with_one_id
from ccmtl_core.inspection.period_checks import period_findings
from ccmtl_core.inspection.policies import Policies
from ccmtl_core.inspection.reading import SeriesRows, read_rows
from ccmtl_core.inspection.repairs import NONE_UNREAD, Repaired, Rows, panel_runs, repaired
from ccmtl_core.inspection.report import (
    Accounts,
    Finding,
    InspectionReport,
    Sample,
    Trait,
    ordered,
    rows_as_samples,
)
from ccmtl_core.inspection.row_checks import id_findings, row_findings
from ccmtl_core.inspection.series_checks import series_findings
from ccmtl_core.series.calendar import Frequency
from ccmtl_core.series.panel import MAX_DENSE_ROWS
from ccmtl_core.tables.cell_hints import spreadsheet_ids, spreadsheet_warning
from ccmtl_core.tables.dialects.dialect import NOTHING_STATED, ReadOptions
from ccmtl_core.tables.dialects.shape import long_table
from ccmtl_core.tables.faults import FaultList, Parts, TableError, part_of
from ccmtl_core.tables.table import Note, Table
from ccmtl_core.tables.table_file import open_table


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


@dataclass(frozen=True, eq=False)
class Examined:
    """Rows that were read, what the policies make of them, and what was found."""

    rows: Rows
    made: Repaired
    findings: tuple[Finding, ...]
    policies: Policies

    def report(
        self, traits: dict[str, Trait], time_zone: str | None, *, with_data: bool = True
    ) -> InspectionReport:
        """Return the report of a table.

        Parameters
        ----------
        traits : dict of Trait
            How it was understood.
        time_zone : str or None
            What its times with a zone are now.
        with_data : bool
            Whether the report has the panel, filled, which may be large.

        Returns
        -------
        InspectionReport
        """
        panel, frequency = self.made.panel, self.rows.frequency
        ends = [int(panel.period.min()), int(panel.period.max())] if len(panel.period) else []
        is_usable = bool(ends) and all(finding.severity != "error" for finding in self.findings)
        data = None
        if is_usable and with_data:
            fill, start = self.policies.fill, self.policies.fill_start
            data = panel if fill == "none" else panel.filled(fill, start)[0]
        return InspectionReport(
            traits=traits,
            accounts=self.made.accounts,
            findings=self.findings,
            policies=self.policies.to_dict(),
            series=panel.n_series,
            values=len(panel.values) + self.made.accounts.values_added.get("fill", 0),
            periods=ends[1] - ends[0] + 1 if ends else 0,
            first=frequency.text(ends[0]) if ends else None,
            last=frequency.text(ends[1]) if ends else None,
            time_zone=time_zone,
            panel=data,
        )


def examine(
    frame: pl.DataFrame,
    frequency: Frequency,
    policies: Policies,
    *,
    unread: Mapping[str, int] = NONE_UNREAD,
    ds_format: str | None = None,
    today: date | None = None,
    begun: Collection[str] = (),
    found: Sequence[Finding] = (),
) -> Examined:
    """Apply the policies to rows, and say what was found in them.

    Parameters
    ----------
    frame : DataFrame
        ``row``, ``unique_id``, ``ds`` (Datetime) and ``y``, null or NaN where there is no value.
    frequency : Frequency
        What a period is.
    policies : Policies
        The repairs.
    unread : mapping of int
        Rows that were not read, by the code that accounts for them.
    ds_format : str, optional
        How the times were written.
    today : date, optional
        Times after it are told.
    begun : collection of str
        Series whose first values are known already: their zeros are not leading ones.
    found : sequence of Finding
        What was found before.

    Returns
    -------
    Examined
    """
    rows = Rows.from_frame(frame, frequency)
    made = repaired(rows, policies, unread, begun)
    all_found = [
        *found,
        *row_findings(rows, made, policies, today=today or date.today(), ds_format=ds_format),
    ]
    ids = pl.Series(rows.unique_ids, dtype=pl.String)
    all_found += id_findings(ids)
    if damaged := spreadsheet_ids(rows.unique_ids):
        samples = tuple(Sample(unique_id=one) for one in damaged[:5])
        message = spreadsheet_warning(damaged)
        all_found.append(Finding("spreadsheet_ids", "warning", len(damaged), "ids", message, samples))
    if len(made.beyond):
        message = f"the values of {counted(len(made.beyond), 'period')} add up beyond what a float64 holds."
        samples = rows_as_samples(rows.samples(made.beyond))
        all_found.append(Finding("overflow", "error", len(made.beyond), "periods", message, samples))
    panel = made.panel
    n_dense = len(panel.values) + made.accounts.values_added.get("fill", 0)
    if n_dense > MAX_DENSE_ROWS:
        message = (
            f"filling makes {n_dense:,} values, more than {MAX_DENSE_ROWS:,}: is one of the times mistyped?"
        )
        all_found.append(Finding("too_many_filled_periods", "error", n_dense, "values", message, (), "fill"))
    if len(panel.values):
        all_found += _of_periods(frame, panel_runs(panel), made, policies)
        all_found += series_findings(panel, made.first_row)
    return Examined(rows, made, ordered(all_found), policies)


def _of_periods(
    frame: pl.DataFrame, runs: pl.DataFrame, made: Repaired, policies: Policies
) -> Iterator[Finding]:
    return period_findings(
        frame,
        made.first_row,
        made.panel.period,
        runs,
        made.panel.frequency,
        n_filled=made.accounts.values_added.get("fill", 0),
        is_filled=policies.fill != "none",
        is_merged=policies.duplicates != "error",
    )


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
        where = f"column {quoted(listed[0].column)}: " if listed and listed[0].column and of_rows else ""
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
    dropped = {"faulty_rows": n_rows} if n_rows else {}
    accounts = Accounts(n_rows, 0, 0, dropped)
    return InspectionReport({}, accounts, ordered(fault_findings(error)), policies.to_dict())


def _without_frequency(read: SeriesRows, found: Sequence[Finding], policies: Policies) -> InspectionReport:
    n_read = read.cells.frame.height
    evidence = read.traits["frequency"].evidence
    unknown = Finding("unknown_frequency", "error", n_read, "rows", evidence, policy="frequency")
    dropped = {**read.unread, "unknown_frequency": n_read}
    accounts = Accounts(sum(dropped.values()), 0, 0, dropped)
    return InspectionReport(read.traits, accounts, ordered([*found, unknown]), policies.to_dict())
