"""Apply the policies to rows, and account for each row: used, merged or dropped."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from ccmtl_core.base.arrays import all_finite
from ccmtl_core.base.id_codes import codes_of, id_codes
from ccmtl_core.base.types import BoolArray, FloatArray, IntArray
from ccmtl_core.inspection.policies import Policies
from ccmtl_core.inspection.report import MAX_SAMPLES, Sample, Seen
from ccmtl_core.series.calendar import Frequency
from ccmtl_core.series.panel import SeriesPanel
from ccmtl_core.series.runs import is_ordered, series_order


@dataclass(frozen=True, eq=False)
class Rows:
    """The readable rows of a table in their order, n of T series."""

    row: IntArray
    """Number of each in the file, (n,)."""
    unique_ids: Sequence[str]
    series: IntArray
    """Place of each row's series in ``unique_ids``, (n,)."""
    times: pl.Series
    """The distinct times of the table, (D,)."""
    time: IntArray
    """Place of each row's time in ``times``, (n,)."""
    period: IntArray
    y: FloatArray
    """NaN where there is no value, (n,)."""
    frequency: Frequency

    @classmethod
    def from_frame(cls, frame: pl.DataFrame, frequency: Frequency) -> Rows:
        """Return the rows of a table of ``row``, ``unique_id``, ``ds`` (Datetime), ``y`` (null: no value)."""
        ids, series = id_codes(frame["unique_id"], ordered=True)
        times, time = codes_of(frame["ds"])
        return cls(
            frame["row"].to_numpy().astype(np.int64),
            ids,
            series,
            times,
            time,
            frequency.to_period(times.to_numpy())[time],
            frame["y"].fill_null(float("nan")).to_numpy(),
            frequency,
        )

    @cached_property
    def is_missing(self) -> BoolArray:
        """Which rows have no value, (n,)."""
        return np.isnan(self.y)

    @cached_property
    def are_ordered(self) -> bool:
        """Whether the rows stand in the order of series and period."""
        return is_ordered(self.series, self.period)

    def seen(self, at: IntArray) -> Seen:
        """Return how many places ``at`` names, with the first rows of them."""
        first = at[np.argsort(self.row[at], kind="stable")[:MAX_SAMPLES]]
        return Seen(len(at), tuple(map(self._sample, first.tolist())))

    def _sample(self, i: int) -> Sample:
        is_number = self.frequency is Frequency.INTEGER
        ds = str(self.period[i]) if is_number else str(self.times[int(self.time[i])])
        value = None if np.isnan(self.y[i]) else f"{self.y[i]:g}"
        unique_id = self.unique_ids[int(self.series[i])]
        return Sample(int(self.row[i]), unique_id, ds.removesuffix(" 00:00:00"), value)


@dataclass(frozen=True, eq=False)
class Values:
    """One value a series and period, m of them, sorted so; of T series."""

    unique_ids: Sequence[str]
    """Of the series that have values, (T,)."""
    place: IntArray
    """Place of each of these series among those of the rows, (T,)."""
    offsets: IntArray
    """Where each series begins, and the end, (T + 1,)."""
    period: IntArray
    value: FloatArray
    """In place of a sum beyond a float64 stands 0."""
    frequency: Frequency

    @cached_property
    def series(self) -> IntArray:
        """The series of each value, (m,)."""
        return np.repeat(np.arange(len(self.unique_ids)), np.diff(self.offsets))

    def take(self, series: IntArray) -> Values:
        """Return those of some of the series, of which the places rise."""
        sizes = np.diff(self.offsets)
        wanted = np.zeros(len(sizes), dtype=np.bool_)
        wanted[series] = True
        kept = np.repeat(wanted, sizes)
        offsets = np.concatenate([[0], np.cumsum(sizes[wanted])])
        ids = [self.unique_ids[s] for s in np.flatnonzero(wanted).tolist()]
        return Values(ids, self.place[wanted], offsets, self.period[kept], self.value[kept], self.frequency)

    def panel(self) -> SeriesPanel:
        """Return them as a panel."""
        return SeriesPanel(tuple(self.unique_ids), self.offsets, self.period, self.value, self.frequency)


@dataclass(frozen=True, eq=False)
class Repaired:
    """What the policies make of rows."""

    values: Values
    """Without filling; of several rows in a period, where they are refused, the first."""
    merged: FloatArray
    """The values before those below zero are clipped, and as sums beyond a float64 are, (m,)."""
    kept: BoolArray
    """Which rows make the values, (n,); of several in a period all."""
    first: IntArray
    """The row (place) that each value begins with, (m,)."""
    n_rows: IntArray
    """How many rows make each value, (m,)."""
    n_clipped: int
    duplicate: IntArray
    """Rows (places) in a period in which their series has a row before, of those that are kept."""
    leading: IntArray
    """Rows (places) with zeros before the first other value of their series."""
    partial: IntArray
    """Rows (places) in the last period, which ends after the file; none where it is whole."""

    @property
    def beyond(self) -> IntArray:
        """Rows (places) that begin a value beyond a float64."""
        return self.first[~np.isfinite(self.merged)]


def repaired(
    rows: Rows, policies: Policies, partial_period: int | None = None, begun: Collection[str] = ()
) -> Repaired:
    """Apply the policies.

    Parameters
    ----------
    rows : Rows
        The rows that can be read, of all series or of some.
    policies : Policies
        The repairs.
    partial_period : int, optional
        The last period of the table, where it ends after the file.
    begun : collection of str
        Series that have no leading zeros, as their first values are known already.

    Returns
    -------
    Repaired
    """
    kept = ~rows.is_missing
    partial = np.empty(0, dtype=np.int64)
    if partial_period is not None:
        partial = np.flatnonzero(kept & (rows.period == partial_period))
    if policies.partial_last == "drop":
        kept[partial] = False
    leading = _leading_rows(rows, kept, begun)
    if policies.leading_zeros == "drop":
        kept[leading] = False
    order, series, period, y = _ordered(rows, kept)
    is_first = np.ones(len(order), dtype=np.bool_)
    is_first[1:] = (series[1:] != series[:-1]) | (period[1:] != period[:-1])
    first, merged, n_rows = order, y, np.ones(len(order), dtype=np.int64)
    if not is_first.all():
        starts = np.flatnonzero(is_first)
        first, merged = order[starts], _merged(y, starts, policies.duplicates)
        series, period, n_rows = series[starts], period[starts], np.diff(starts, append=len(order))
    value, n_clipped = merged, 0
    if policies.negatives == "clip":
        n_clipped = int((merged < 0).sum())
        value = np.maximum(merged, 0.0)
    return Repaired(
        values=_values(rows, series, period, value),
        merged=merged,
        kept=kept,
        first=first,
        n_rows=n_rows,
        n_clipped=n_clipped,
        duplicate=np.sort(order[~is_first]),
        leading=leading,
        partial=partial,
    )


def _ordered(rows: Rows, kept: BoolArray) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """The places of the rows that are kept, by series and period, and what stands in these rows."""
    at = np.flatnonzero(kept)
    if len(at) == len(kept) and rows.are_ordered:
        return at, rows.series, rows.period, rows.y
    order = at[series_order(rows.series[at], rows.period[at])]
    return order, rows.series[order], rows.period[order], rows.y[order]


def _merged(y: FloatArray, starts: IntArray, how: str) -> FloatArray:
    if how == "error":
        return y[starts]
    ends: IntArray = np.append(starts[1:], len(y))
    if how == "last":
        return y[ends - 1]
    with np.errstate(over="ignore", invalid="ignore"):
        sums: FloatArray = np.add.reduceat(y, starts)
    means: FloatArray = sums / (ends - starts)
    return sums if how == "sum" else means


def _values(rows: Rows, series: IntArray, period: IntArray, value: FloatArray) -> Values:
    begins = np.flatnonzero(np.diff(series, prepend=-1))
    offsets = np.append(begins, len(series)).astype(np.int64)
    present = series[begins]
    ids = tuple(rows.unique_ids[s] for s in present.tolist())
    bounded = value if all_finite(value) else np.where(np.isfinite(value), value, 0.0)
    return Values(ids, present, offsets, period, bounded, rows.frequency)


def _leading_rows(rows: Rows, kept: BoolArray, begun: Collection[str]) -> IntArray:
    """Rows before the first period in which their series has another value than 0."""
    far = np.iinfo(np.int64).max
    first = np.full(len(rows.unique_ids), far)
    sold = np.flatnonzero(kept & (rows.y != 0))
    np.minimum.at(first, rows.series[sold], rows.period[sold])
    if begun:
        has_begun = set(begun)
        first[[one in has_begun for one in rows.unique_ids]] = far
    begins = first[rows.series]
    return np.flatnonzero(kept & (begins != far) & (rows.period < begins))
