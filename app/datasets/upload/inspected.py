"""Read the rows of an upload of series as ``ccmtl inspect`` does, and report what was found in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from app.datasets.definition import Aggregation, SeriesDefinition
from app.datasets.schemas import DroppedPeriod
from app.datasets.stored.coverage import Summary
from app.datasets.stored.period_values import COUNT, PeriodValues, by_period
from app.datasets.upload.appended import without_whole_series
from app.datasets.upload.dropped import dropped_period
from ccmtl_core.base.display import counted, option
from ccmtl_core.inspection import Finding, InspectionReport, Sample
from ccmtl_core.inspection.inspecting import fault_findings, note_findings, with_places
from ccmtl_core.inspection.parts.examined import examine
from ccmtl_core.inspection.reading import read_rows
from ccmtl_core.inspection.report import MAX_SAMPLES, ordered
from ccmtl_core.tables.cells import Cells
from ccmtl_core.tables.faults import Fault, FaultList, TableError
from ccmtl_core.tables.header import Role
from ccmtl_core.tables.table import Table

SERIES = ("unique_id", "y", "ds")
"""The roles that come first among the columns of a file of series."""
TOLD_BY_EXTENT = {"duplicate_period", "overflow", "too_many_filled_periods"}
"""Faults that the extent of the upload tells, with the version before it in view."""


@dataclass(frozen=True)
class InspectedRows:
    """Rows that the policies of a dataset keep, which may be none, and the report of all."""

    cells: Cells
    report: InspectionReport
    dropped: DroppedPeriod | None


def inspect_rows(
    table: Table,
    definition: SeriesDefinition,
    roles: Sequence[Role],
    summary: Summary | None,
    faults: FaultList,
) -> InspectedRows:
    """Read and examine the rows of an upload; ``faults`` takes what the policies refuse.

    ``roles`` are the columns to read; ``summary`` is of the version that the rows are appended to, if any.
    """
    columns = {role.name: role.column for role in roles[: len(SERIES)]}
    policies = definition.policies
    read = read_rows(
        table,
        columns,
        faults,
        ds_format=definition.ds_format,
        frequency=definition.frequency,
        missing=definition.missing,
        beside=roles[len(SERIES) :],
    )
    cells = read.cells
    begun = () if summary is None else summary.series["unique_id"].unique().to_list()
    times = None if summary is None or summary.times is None else summary.times["ds"]
    found = [*note_findings(read.table.notes), *(fault_findings(faults.refusal()) if faults else ())]
    examined = examine(
        cells.frame,
        definition.frequency,
        policies,
        unread=read.unread,
        ds_format=read.dates.format,
        begun=begun,
        stored_times=times,
        found=found,
    )
    if summary is not None:
        assert examined.made is not None
        of_rows = without_whole_series(examined.findings, examined.made.values, summary.series)
        examined = replace(examined, findings=of_rows)
    known = {finding.code for finding in found}
    for finding in examined.findings:
        if finding.severity == "error" and finding.code not in known | TOLD_BY_EXTENT:
            faults.add_all(finding.code, finding.count, map(_fault(finding), finding.samples))
    report = with_places(examined.report(read.traits, cells.time_zone, with_data=False), read)
    dropped = dropped_period(report, cells.frame["ds"], definition.frequency)
    assert examined.made is not None
    kept = cells.frame.filter(pl.Series(examined.made.kept))
    return InspectedRows(replace(cells, frame=kept), report, dropped)


def _fault(finding: Finding) -> Callable[[Sample], Fault]:
    return lambda sample: Fault(finding.code, finding.message, sample.row, None, sample.value)


def with_faults(report: InspectionReport, error: TableError) -> InspectionReport:
    """Return the report of a refused file with the faults that only what is stored shows.

    Parameters
    ----------
    report : InspectionReport
        Of the file.
    error : TableError
        Why it is refused.

    Returns
    -------
    InspectionReport
    """
    new = [finding for finding in fault_findings(error) if finding.code not in report.counts]
    return replace(report, findings=ordered([*report.findings, *new]))


def with_history(
    report: InspectionReport,
    upload: PeriodValues,
    stored: PeriodValues,
    aggregation: Aggregation | None,
    *,
    is_replaced: bool,
) -> InspectionReport:
    """Return the report with what becomes of the values that are stored, as the policies make them.

    Parameters
    ----------
    report : InspectionReport
        Of the file.
    upload, stored : PeriodValues
        The values of the file, and those of the version before.
    aggregation : Aggregation or None
        How rows of an append are put together with those before.
    is_replaced : bool
        Whether the file takes the place of that version; values that it lacks are then counted.

    Returns
    -------
    InspectionReport
    """
    frequency = upload.frequency
    is_clipped = report.policies["negatives"] == "clip"
    old, new = _frame(stored, is_clipped), _frame(upload, is_clipped)
    of_both = old.join(new, on=["unique_id", "period"], how="inner", maintain_order="left")
    if not is_replaced and aggregation is not None:
        merged = _frame(_together(stored, upload, aggregation), is_clipped)
        of_both = of_both.drop("y_right").join(merged, on=["unique_id", "period"], maintain_order="left")
    changed = of_both.filter(pl.col("y") != pl.col("y_right"))
    samples = tuple(
        Sample(None, one, frequency.text(period), f"{before:g} → {after:g}")
        for one, period, before, after in changed.head(MAX_SAMPLES).rows()
    )
    n_same = of_both.height - changed.height
    n_changed = counted(changed.height, "stored value")
    if is_replaced:
        told = f"The file changes {n_changed}: it takes the place of all."
    elif aggregation is None:
        told = f"The file has something else in place of {n_changed}: see `duplicates`."
    else:
        how = option("duplicates", aggregation.value)
        told = f"The file changes {n_changed}, as {how} puts the rows of a period together: see `overlap`."
    same = f"The file leaves {counted(n_same, 'stored value')} as before."
    policy = None if is_replaced else "overlap" if aggregation else "duplicates"
    found = [
        Finding("history_changed", "warning", changed.height, "values", told, samples, policy),
        Finding("history_repeated", "note", n_same, "values", same),
    ]
    if is_replaced:
        gone = old.join(new, on=["unique_id", "period"], how="anti", maintain_order="left")
        message = f"The file lacks {counted(gone.height, 'stored value')}, and takes the place of all."
        samples = tuple(
            Sample(None, one, frequency.text(period), f"{y:g}")
            for one, period, y in gone.head(MAX_SAMPLES).rows()
        )
        found.append(Finding("history_removed", "warning", gone.height, "values", message, samples))
    return replace(report, findings=ordered([*report.findings, *found]))


def _together(stored: PeriodValues, upload: PeriodValues, aggregation: Aggregation) -> PeriodValues:
    """The values of an upload with those that are stored in their periods, as a version is read."""
    old, new = (one.to_frame().select("unique_id", "ds", "y", COUNT) for one in (stored, upload))
    of_both = old.join(new, on=["unique_id", "ds"], how="semi", maintain_order="left")
    return by_period(pl.concat([of_both, new]), upload.frequency, aggregation)


def _frame(values: PeriodValues, is_clipped: bool) -> pl.DataFrame:
    ids = values.unique_ids.gather(values.series).alias("unique_id")
    y = np.maximum(values.y, 0.0) if is_clipped else values.y
    return pl.DataFrame([ids, pl.Series("period", values.period), pl.Series("y", y)])
