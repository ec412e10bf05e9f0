"""Turn checked cells into the segment to store, and say what it makes of the dataset."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from app.datasets.definition import SeriesDefinition
from app.datasets.schemas import DroppedPeriod, Totals
from app.datasets.stored.coverage import Summary
from app.datasets.stored.period_values import PeriodValues, by_period, period_text
from app.datasets.stored.row_samples import sampled
from app.datasets.upload.dropped import refuse_rest
from app.datasets.upload.overlap import Overlap, overlap_of_rows, overlap_of_series
from ccmtl_core.forecasting import MAX_DENSE_ROWS, Frequency
from ccmtl_core.inspection import Finding
from ccmtl_core.inspection.period_checks import RowsAt, period_findings
from ccmtl_core.series.runs import has_period, merged_runs, n_missing
from ccmtl_core.tables.cells import ROW, Cells
from ccmtl_core.tables.faults import MAX_LISTED, Fault, FaultList

_TIMES = {
    None: "have no zone",
    "UTC": "have a zone and were converted to UTC",
    "local": "have a zone and keep its local date",
}
_MERGE = "a dataset with `duplicates`, `sum`, `mean` or `last`, takes several rows of a period"


@dataclass(frozen=True)
class Base:
    """The version that an upload is appended to."""

    id: str
    digests: Sequence[str]  # of its segments
    time_zone: str | None
    summary: Summary
    dropped: Sequence[DroppedPeriod] = ()


@dataclass(frozen=True)
class Extent:
    """What an accepted upload amounts to."""

    summary: Summary  # of the version that it makes
    upload: Totals  # of the upload alone
    version: Totals
    segment: pl.DataFrame | None = None  # None where it was written row group by row group
    filled_periods: int = 0  # values that the fill policy adds to the version
    findings: tuple[Finding, ...] = ()  # on the periods of the version
    overlap: Overlap | None = None


def summary_of_rows(segments: Iterator[pl.DataFrame]) -> Summary:
    """Return the summary of a regression's segments, each a frame of its rows."""
    parts = [(_rows_by_task(rows), sampled(rows, number)) for number, rows in enumerate(segments)]
    return Summary(_added_up([tasks for tasks, _ in parts]), pl.concat([samples for _, samples in parts]))


def regression_extent(cells: Cells, base: Base | None, faults: FaultList) -> Extent:
    """Sort the rows by task; raise TableError if ``faults`` has any."""
    if faults:
        raise faults.refusal()
    features = [name for name in cells.frame.columns if name not in (ROW, "unique_id", "y")]
    segment = cells.frame.select("unique_id", "y", *features).sort("unique_id", maintain_order=True)
    tasks, samples, overlap = _rows_by_task(segment), sampled(segment, len(base.digests) if base else 0), None
    summary = Summary(tasks, samples)
    if base is not None and base.summary.samples is not None:
        overlap = overlap_of_rows(cells.frame, base.summary.samples)
        summary = Summary(_added_up([base.summary.series, tasks]), pl.concat([base.summary.samples, samples]))
    totals = _row_totals(tasks), _row_totals(summary.series)
    return Extent(summary, *totals, segment=segment, overlap=overlap)


def series_extent(
    cells: Cells,
    definition: SeriesDefinition,
    base: Base | None,
    faults: FaultList,
    compare: Callable[[PeriodValues, bool, Extent], None],
    refuse_repeated: Callable[[pl.DataFrame], None],
) -> Extent:
    """Bring the rows to one value per series and period, and put them beside those of ``base``.

    ``compare`` is told the values, whether some lie in periods that have one, and what they amount to, also
    where ``faults`` refuses them; ``refuse_repeated`` gets a segment all of which does. Raise TableError if
    ``faults`` has any, or gets any here.
    """
    upload = by_period(cells.frame, definition.frequency, definition.aggregation)
    _check_repetitions(upload, cells.frame, faults)
    _check_finite(upload, faults)
    _check_attributes(cells.frame, definition, faults)
    sent = whole = upload.runs()
    overlap = None
    is_taken = False
    if base is not None:
        _check_zone(base, cells, definition, faults)
        taken = has_period(base.summary.series, upload.unique_ids, upload.series, upload.period)
        is_taken = bool(taken.any())
        refuse_rest(base.dropped, upload, taken, cells.frame, faults)
        if definition.aggregation is None:
            if not faults and taken.all():
                refuse_repeated(upload.to_frame())
            _check_taken(upload, taken, faults)
        else:
            overlap = overlap_of_series(upload, taken, definition.aggregation)
        whole = merged_runs(base.summary.series, upload.runs(~taken))
    before = None if base is None or base.summary.times is None else base.summary.times["ds"]
    extent = extent_of_runs(sent, whole, RowsAt.of_frame(cells.frame), definition, before)
    compare(upload, is_taken, extent)
    _check_size(whole, upload, definition, faults)
    if faults:
        raise faults.refusal()
    return replace(extent, segment=upload.to_frame(), overlap=overlap)


def extent_of_runs(
    sent: pl.DataFrame,
    whole: pl.DataFrame,
    rows: RowsAt,
    definition: SeriesDefinition,
    times_before: pl.Series | None = None,
) -> Extent:
    """Return what an upload amounts to that has values in the periods ``sent``, the version in ``whole``.

    ``times_before`` are the last times of the version that it is appended to, where they are known.
    """
    frequency, n_filled = definition.frequency, _n_filled(whole, definition)
    found = period_findings(
        rows,
        rows,
        whole,
        frequency,
        n_filled=n_filled,
        is_filled=definition.fill is not None,
        is_merged=definition.aggregation is not None,
    )
    times = rows.last_times(frequency, times_before)
    return Extent(
        summary=Summary(whole, times=times.to_frame("ds")),
        upload=_period_totals(sent, frequency),
        version=_period_totals(whole, frequency),
        filled_periods=n_filled,
        findings=tuple(found),
    )


def _n_filled(whole: pl.DataFrame, definition: SeriesDefinition) -> int:
    return 0 if definition.fill is None else n_missing(whole, definition.fill.start)


def _check_repetitions(upload: PeriodValues, frame: pl.DataFrame, faults: FaultList) -> None:
    if not len(upload.repeated):
        return
    first = upload.repeated[np.argsort(upload.repeated[:, 0], kind="stable")[:MAX_LISTED]].tolist()
    listed = frame[[place for _, _, place in first]]
    periods = upload.frequency.to_period(listed["ds"].to_numpy()).tolist()
    samples = (
        Fault(
            code="duplicate_period",
            message=f"row {earlier} has this series in {period_text(upload.frequency, period)} too; {_MERGE}",
            row=row,
            value=f"{y:g}",
            unique_id=unique_id,
            ds=period_text(upload.frequency, period),
        )
        for (row, earlier, _), unique_id, y, period in zip(
            first, listed["unique_id"], listed["y"], periods, strict=True
        )
    )
    faults.add_all("duplicate_period", len(upload.repeated), samples)


def _check_finite(values: PeriodValues, faults: FaultList) -> None:
    bad = np.flatnonzero(~np.isfinite(values.y))
    samples = (
        Fault(
            code="overflow",
            message=f"the rows of {values.period_text(i)} add up beyond a float64",
            unique_id=values.unique_id(i),
            ds=values.period_text(i),
        )
        for i in bad[:MAX_LISTED]
    )
    if len(bad):
        faults.add_all("overflow", len(bad), samples)


def _check_attributes(frame: pl.DataFrame, definition: SeriesDefinition, faults: FaultList) -> None:
    for i, column in enumerate(definition.columns.attributes):
        cell = pl.col(f"s_{i}")
        first = cell.drop_nulls().first().over("unique_id")
        other = frame.with_columns(first=first).filter(cell.is_not_null() & (cell != pl.col("first")))
        samples = (
            Fault(
                code="attribute_changes",
                message=f"product {unique_id!r} has {before!r} in a row before: an attribute is the same in "
                "all rows of a product",
                row=row,
                column=column,
                value=value,
                unique_id=unique_id,
            )
            for row, unique_id, value, before in other.select(ROW, "unique_id", f"s_{i}", "first")
            .head(MAX_LISTED)
            .iter_rows()
        )
        if other.height:
            faults.add_all("attribute_changes", other.height, samples)


def _check_zone(base: Base, cells: Cells, definition: SeriesDefinition, faults: FaultList) -> None:
    if cells.time_zone != base.time_zone:
        faults.add(
            "mixed_time_zones",
            f"these times {_TIMES[cells.time_zone]}, those of the version before {_TIMES[base.time_zone]}: "
            "send times of the same kind, or all data anew with mode=full",
            column=definition.columns.ds,
        )


def _check_taken(upload: PeriodValues, taken: NDArray[np.bool_], faults: FaultList) -> None:
    at = np.flatnonzero(taken)
    samples = (
        Fault(
            code="duplicate_period",
            message=f"an earlier upload has this series in {upload.period_text(i)}: leave the row out, or "
            f"upload all data with `mode=full`; {_MERGE}",
            row=int(upload.row[i]),
            value=f"{upload.y[i]:g}",
            unique_id=upload.unique_id(i),
            ds=upload.period_text(i),
        )
        for i in at[np.argsort(upload.row[at])][:MAX_LISTED]
    )
    if len(at):
        faults.add_all("duplicate_period", len(at), samples)


def _check_size(
    whole: pl.DataFrame, upload: PeriodValues, definition: SeriesDefinition, faults: FaultList
) -> None:
    n_filled = _n_filled(whole, definition)
    n_dense = int(whole["length"].sum()) + n_filled
    if not n_filled or n_dense <= MAX_DENSE_ROWS:
        return
    first, last = _ends(whole)
    middle = np.median(whole["first"].to_numpy())
    is_early = middle - first > last - middle
    far = first if is_early else last
    sent = np.flatnonzero(upload.period == far)
    of_far = whole.filter((pl.col("first") <= far) & (far < pl.col("first") + pl.col("length")))
    row, unique_id = None, of_far["unique_id"][0]
    if len(sent):
        row, unique_id = int(upload.row[sent[0]]), upload.unique_id(sent[0])
    begin, end, farthest = (period_text(upload.frequency, period) for period in (first, last, far))
    message = (
        f"filling {whole['unique_id'].n_unique()} series from {begin} to {end} makes {n_dense} values, "
        f"more than {MAX_DENSE_ROWS}; the date farthest from the others is {farthest}, of series "
        f"{unique_id!r}{' in an earlier upload' if row is None else ''}: is it mistyped?"
    )
    fault = Fault(
        "too_many_filled_periods", message, row, definition.columns.ds, farthest, unique_id, farthest
    )
    faults.add_all(fault.code, 1, [fault])


def _ends(runs: pl.DataFrame) -> tuple[int, int]:
    """The first and the last period of all."""
    last = pl.col("first") + pl.col("length") - 1
    first, end = runs.select(pl.col("first").min(), last.max().alias("last")).row(0)
    return int(first), int(end)


def _period_totals(runs: pl.DataFrame, frequency: Frequency) -> Totals:
    first, last = _ends(runs)
    return Totals(
        values=int(runs["length"].sum()),
        series=runs["unique_id"].n_unique(),
        periods=last - first + 1,
        first=period_text(frequency, first),
        last=period_text(frequency, last),
    )


def _row_totals(tasks: pl.DataFrame) -> Totals:
    return Totals(values=int(tasks["length"].sum()), series=tasks.height, periods=None, first=None, last=None)


def _rows_by_task(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.group_by("unique_id").agg(pl.len().cast(pl.Int64).alias("length")).sort("unique_id")


def _added_up(tasks: list[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat(tasks).group_by("unique_id").agg(pl.col("length").sum()).sort("unique_id")
