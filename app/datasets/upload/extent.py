"""Checked cells in, the segment to store and its extent out: alone, and together with the data before it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from app.datasets.reading.cells import ROW, Cells
from app.datasets.reading.faults import FaultList
from app.datasets.schemas import SeriesDefinition, Totals, Warned
from app.datasets.stored.isolation import isolated_periods
from app.datasets.stored.period_values import PeriodValues, by_period, period_text
from app.datasets.upload.overlap import Overlap, overlap_of_rows, overlap_of_series, taken_periods
from app.http.errors import MAX_ERRORS, Fault
from ccmtl_core.forecasting import MAX_DENSE_ROWS

_TIMES = {
    None: "have no zone",
    "UTC": "have a zone and were converted to UTC",
    "local": "have a zone and keep its local date",
}
_MERGE = "a dataset that is defined with an `aggregation`, `sum` or `mean`, takes several rows of a period"


@dataclass(frozen=True)
class Base:
    """The version that an upload is appended to: the rows of its segments, and the zone of its times.

    ``heights`` are the numbers of rows of the segments.
    """

    frame: pl.DataFrame
    heights: tuple[int, ...]
    time_zone: str | None


@dataclass(frozen=True)
class Extent:
    """What an accepted upload amounts to.

    Parameters
    ----------
    segment : DataFrame
        What is stored.
    upload : Totals
        The upload alone.
    version : Totals
        The version that it makes.
    filled_periods : int
        Values that the fill policy adds to the version.
    warnings : tuple of Warned
        What the sender may not have meant.
    overlap : Overlap, optional
        Rows that may be in the version before already.
    """

    segment: pl.DataFrame
    upload: Totals
    version: Totals
    filled_periods: int = 0
    warnings: tuple[Warned, ...] = ()
    overlap: Overlap | None = None


def regression_extent(cells: Cells, base: Base | None, faults: FaultList) -> Extent:
    """Sort the rows by task.

    Raises
    ------
    InvalidContent
        If ``faults`` has any.
    """
    if faults:
        raise faults.refusal()
    features = [name for name in cells.frame.columns if name not in (ROW, "unique_id", "y")]
    segment = cells.frame.select("unique_id", "y", *features).sort("unique_id", maintain_order=True)
    if base is None:
        return Extent(segment, _row_totals(segment), _row_totals(segment))
    overlap = overlap_of_rows(cells.frame, base.frame, base.heights)
    whole = pl.concat([base.frame, segment])
    return Extent(segment, _row_totals(segment), _row_totals(whole), overlap=overlap)


def series_extent(cells: Cells, definition: SeriesDefinition, base: Base | None, faults: FaultList) -> Extent:
    """Bring the rows to one value per series and period, and put them beside those of ``base``.

    Raises
    ------
    InvalidContent
        If ``faults`` has any, or gets any here.
    """
    upload = by_period(cells.frame, definition.frequency, definition.aggregation)
    segment = upload.to_frame()
    _check_repetitions(upload, cells.frame, faults)
    _check_finite(upload, faults)
    whole, overlap = upload, None
    if base is not None:
        _check_zone(base, cells, definition, faults)
        taken = taken_periods(upload, segment, base.frame)
        if definition.aggregation is None:
            _check_taken(taken, definition, faults)
        else:
            overlap = overlap_of_series(upload, taken, definition.aggregation)
        joined = pl.concat([base.frame, segment])
        whole = by_period(joined, definition.frequency, definition.aggregation)
        if not faults:
            _check_finite(whole, faults)
    n_filled = 0 if definition.fill is None else whole.n_missing(definition.fill.start)
    _check_size(whole, n_filled, faults)
    if faults:
        raise faults.refusal()
    return Extent(
        segment,
        _period_totals(upload),
        _period_totals(whole),
        n_filled,
        (*_moved(cells.frame, definition), *isolated_periods(whole, upload, n_filled)),
        overlap,
    )


def _check_repetitions(upload: PeriodValues, frame: pl.DataFrame, faults: FaultList) -> None:
    if not len(upload.repeated):
        return
    first = upload.repeated[np.argsort(upload.repeated[:, 0], kind="stable")[:MAX_ERRORS]].tolist()
    listed = frame.filter(pl.col(ROW).is_in([row for row, _ in first])).sort(ROW)
    periods = upload.frequency.to_period(listed["ds"].to_numpy()).tolist()
    samples = (
        Fault(
            code="duplicate_period",
            message=f"row {earlier} has this series in {period_text(upload.frequency, period)} too; {_MERGE}",
            row=row,
            value=unique_id,
        )
        for (row, earlier), unique_id, period in zip(first, listed["unique_id"], periods, strict=True)
    )
    faults.add_all("duplicate_period", len(upload.repeated), samples)


def _check_finite(values: PeriodValues, faults: FaultList) -> None:
    bad = np.flatnonzero(~np.isfinite(values.y))
    samples = (
        Fault(
            code="overflow",
            message=f"the rows of {period_text(values.frequency, values.period[i])} add up beyond a float64",
            value=values.unique_ids[int(values.series[i])],
        )
        for i in bad[:MAX_ERRORS]
    )
    if len(bad):
        faults.add_all("overflow", len(bad), samples)


def _check_zone(base: Base, cells: Cells, definition: SeriesDefinition, faults: FaultList) -> None:
    if cells.time_zone != base.time_zone:
        faults.add(
            "mixed_time_zones",
            f"these times {_TIMES[cells.time_zone]}, those of the version before {_TIMES[base.time_zone]}: "
            "send times of the same kind, or all data anew with mode=full",
            column=definition.columns.ds,
        )


def _check_taken(taken: pl.DataFrame, definition: SeriesDefinition, faults: FaultList) -> None:
    samples = (
        Fault(
            code="duplicate_period",
            message=f"an earlier upload has this series in {period_text(definition.frequency, period)}: "
            f"leave the row out, or upload all data with `mode=full`; {_MERGE}",
            row=row,
            value=unique_id,
        )
        for row, unique_id, period, _ in taken.head(MAX_ERRORS).iter_rows()
    )
    if taken.height:
        faults.add_all("duplicate_period", taken.height, samples)


def _check_size(whole: PeriodValues, n_filled: int, faults: FaultList) -> None:
    n_dense = len(whole.period) + n_filled
    if n_filled and n_dense > MAX_DENSE_ROWS:
        first = period_text(whole.frequency, int(whole.period.min()))
        last = period_text(whole.frequency, int(whole.period.max()))
        faults.add(
            "too_many_filled_periods",
            f"filling {len(whole.unique_ids)} series from {first} to {last} makes {n_dense} values, "
            f"more than {MAX_DENSE_ROWS}: is a date mistyped?",
        )


def _moved(frame: pl.DataFrame, definition: SeriesDefinition) -> Iterator[Warned]:
    starts = pl.col("ds").dt.truncate(definition.frequency.polars_interval)
    n_moved = int(frame.select((pl.col("ds") != starts).sum()).item())
    if n_moved and definition.aggregation is None:
        message = "Times inside a period were taken for the period that they fall in."
        yield Warned(code="moved_to_period_start", message=message, count=n_moved)


def _period_totals(values: PeriodValues) -> Totals:
    first, last = int(values.period.min()), int(values.period.max())
    return Totals(
        values=len(values.period),
        series=len(values.unique_ids),
        periods=last - first + 1,
        first=period_text(values.frequency, first),
        last=period_text(values.frequency, last),
    )


def _row_totals(frame: pl.DataFrame) -> Totals:
    return Totals(
        values=frame.height, series=frame["unique_id"].n_unique(), periods=None, first=None, last=None
    )
