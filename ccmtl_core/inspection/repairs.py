"""Apply the policies to rows, and account for each row: used, merged or dropped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ccmtl_core.base.id_codes import id_codes
from ccmtl_core.base.types import BoolArray, FloatArray, IntArray
from ccmtl_core.inspection.policies import Policies
from ccmtl_core.inspection.report import Accounts
from ccmtl_core.series.calendar import Frequency
from ccmtl_core.series.panel import SeriesPanel
from ccmtl_core.series.runs import n_missing, runs_of, series_order

NONE_UNREAD: Mapping[str, int] = MappingProxyType({})
_PERIODS_BEFORE = 8
"""Periods that the last one is compared with, to see whether it is whole."""


@dataclass(frozen=True, eq=False)
class Rows:
    """The readable rows of a table in their order, n of T series."""

    row: IntArray
    """Number of each in the file, (n,)."""
    unique_ids: tuple[str, ...]
    series: IntArray
    """Place of each row's series in ``unique_ids``, (n,)."""
    ds: pl.Series
    period: IntArray
    y: FloatArray
    """NaN where there is no value, (n,)."""
    frequency: Frequency

    @classmethod
    def from_frame(cls, frame: pl.DataFrame, frequency: Frequency) -> Rows:
        """Return the rows of a table of ``row``, ``unique_id``, ``ds`` (Datetime), ``y`` (null: no value)."""
        ids, series = id_codes(frame["unique_id"], ordered=True)
        return cls(
            frame["row"].to_numpy().astype(np.int64),
            tuple(ids),
            series.astype(np.int64),
            frame["ds"],
            frequency.to_period(frame["ds"].to_numpy()),
            frame["y"].fill_null(float("nan")).to_numpy(),
            frequency,
        )

    @property
    def is_missing(self) -> BoolArray:
        """Which rows have no value, (n,)."""
        return np.isnan(self.y)

    def samples(self, at: IntArray) -> list[dict[str, object]]:
        """Return the first rows of ``at`` for a report."""
        return [
            {
                "row": int(self.row[i]),
                "unique_id": self.unique_ids[self.series[i]],
                "ds": str(self.period[i]) if self.frequency is Frequency.INTEGER else str(self.ds[int(i)]),
                "y": None if np.isnan(self.y[i]) else float(self.y[i]),
            }
            for i in at[:5].tolist()
        ]


@dataclass(frozen=True, eq=False)
class Repaired:
    """What the policies make of rows."""

    panel: SeriesPanel
    """One value a series and period, without filling; of several rows, where they are refused, the first."""
    kept: BoolArray
    """Which rows make the values, (n,); of several in a period all."""
    first_row: IntArray
    """The row in the file that each value begins with, (m,)."""
    accounts: Accounts
    duplicate: IntArray
    """Rows (places) in a period in which their series has a row before, of those that are kept."""
    leading: IntArray
    """Rows (places) with zeros before the first other value of their series."""
    partial: IntArray
    """Rows (places) in the last period, which ends after the file; none where it is whole."""
    beyond: IntArray
    """Rows (places) that begin a value beyond a float64; the panel has 0 for it."""


def repaired(
    rows: Rows, policies: Policies, unread: Mapping[str, int] = NONE_UNREAD, begun: Collection[str] = ()
) -> Repaired:
    """Apply the policies.

    Parameters
    ----------
    rows : Rows
        The rows that can be read.
    policies : Policies
        The repairs.
    unread : mapping of int
        Rows of the file that were not read, by the code that accounts for them.
    begun : collection of str
        Series that have no leading zeros, as their first values are known already.

    Returns
    -------
    Repaired
    """
    dropped: Counter[str] = Counter()
    kept = ~rows.is_missing
    dropped["empty_number"] = int((~kept).sum())
    partial = _partial_rows(rows, kept)
    if policies.partial_last == "drop":
        kept[partial] = False
        dropped["partial_last"] = len(partial)
    leading = _leading_rows(rows, kept, begun)
    if policies.leading_zeros == "drop":
        kept[leading] = False
        dropped["leading_zeros"] = len(leading)
    at = np.flatnonzero(kept)
    order = at[series_order(rows.series[at], rows.period[at])]
    is_first = np.ones(len(order), dtype=np.bool_)
    is_first[1:] = (np.diff(rows.series[order]) != 0) | (np.diff(rows.period[order]) != 0)
    starts = np.flatnonzero(is_first)
    values = _merged(rows.y[order], starts, policies.duplicates)
    changed = 0
    if policies.negatives == "clip":
        changed = int((values < 0).sum())
        values = np.maximum(values, 0.0)
    duplicate = np.sort(order[~is_first])
    if policies.duplicates == "error":
        dropped["duplicate_period"] = len(duplicate)
    panel = _panel(rows, order[starts], values)
    n_added = (
        n_missing(panel_runs(panel), policies.fill_start) if policies.fill != "none" and len(starts) else 0
    )
    accounts = Accounts(
        rows_read=len(rows.row) + sum(unread.values()),
        rows_used=len(starts),
        rows_merged=0 if policies.duplicates == "error" else len(duplicate),
        rows_dropped={code: n for code, n in {**unread, **dropped}.items() if n},
        values_changed={"negatives": changed} if changed else {},
        values_added={"fill": n_added} if n_added else {},
    )
    first = order[starts]
    beyond = first[~np.isfinite(values)]
    return Repaired(panel, kept, rows.row[first], accounts, duplicate, leading, partial, beyond)


def _merged(y: FloatArray, starts: IntArray, how: str) -> FloatArray:
    if how == "error" or not len(starts):
        return y[starts]
    ends: IntArray = np.append(starts[1:], len(y))
    if how == "last":
        return y[ends - 1]
    with np.errstate(over="ignore", invalid="ignore"):
        sums: FloatArray = np.add.reduceat(y, starts)
    means: FloatArray = sums / (ends - starts)
    return sums if how == "sum" else means


def _panel(rows: Rows, at: IntArray, values: FloatArray) -> SeriesPanel:
    """The values by series; in place of a sum beyond a float64, which a finding tells, stands 0."""
    series = rows.series[at]
    begins = np.flatnonzero(np.diff(series, prepend=-1))
    present, offsets = series[begins], np.append(begins, len(series)).astype(np.int64)
    ids = tuple(rows.unique_ids[s] for s in present.tolist())
    bounded = np.where(np.isfinite(values), values, 0.0)
    return SeriesPanel(ids, offsets, rows.period[at], bounded, rows.frequency)


def panel_runs(panel: SeriesPanel) -> pl.DataFrame:
    """Return in which periods the series of a panel have values."""
    return runs_of(pl.Series(panel.unique_ids, dtype=pl.String), panel.series_index, panel.period)


def _leading_rows(rows: Rows, kept: BoolArray, begun: Collection[str]) -> IntArray:
    """Rows before the first period in which their series has another value than 0."""
    far = np.iinfo(np.int64).max
    first = np.full(len(rows.unique_ids), far)
    sold = np.flatnonzero(kept & (rows.y != 0))
    np.minimum.at(first, rows.series[sold], rows.period[sold])
    has_begun = set(begun)
    first[[one in has_begun for one in rows.unique_ids]] = far
    begins = first[rows.series]
    return np.flatnonzero(kept & (begins != far) & (rows.period < begins))


def _partial_rows(rows: Rows, kept: BoolArray) -> IntArray:
    """Rows of the last period, if it ends longer after its last date than the periods before it did."""
    none = np.empty(0, dtype=np.int64)
    if rows.frequency in (Frequency.INTEGER, Frequency.DAY) or not kept.any():
        return none
    dates = pl.DataFrame({"period": rows.period, "date": rows.ds.dt.date()}).filter(pl.Series(kept))
    last = pl.col("date").max().alias("last")
    by_period = dates.group_by("period").agg(last, pl.col("date").n_unique().alias("n")).sort("period")
    by_period = by_period.tail(_PERIODS_BEFORE + 1)
    if by_period.height < 2 or int(by_period["n"].head(by_period.height - 1).max() or 1) < 2:  # type: ignore[arg-type]
        return none  # one date names the whole of a period
    spare = (_ends(rows.frequency, by_period["period"].to_numpy()) - by_period["last"].to_numpy()).astype(
        np.int64
    )
    if spare[-1] <= spare[:-1].max():
        return none
    return np.flatnonzero(kept & (rows.period == by_period["period"][-1]))


def _ends(frequency: Frequency, period: IntArray) -> NDArray[np.datetime64]:
    """The last day of each period."""
    if frequency is not frequency.kin:
        return frequency.to_datetime(period).astype("datetime64[D]")
    return frequency.to_datetime(period + 1).astype("datetime64[D]") - 1
