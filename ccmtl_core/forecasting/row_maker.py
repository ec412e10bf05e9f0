"""Make rows of a panel piece by piece, so that the memory that they take does not grow with their number."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ccmtl_core.base.arguments import check_integer, check_kind
from ccmtl_core.base.arrays import as_integers, as_shape
from ccmtl_core.base.display import counted
from ccmtl_core.base.exceptions import DataError, ParameterError
from ccmtl_core.base.types import BoolArray, FloatArray, IntArray
from ccmtl_core.forecasting.features import RowFeatures
from ccmtl_core.kernels.grouping import group_sums
from ccmtl_core.kernels.series.row_kernel import Rows, Stretches, Targets, fill_rows
from ccmtl_core.series.calendar import Frequency
from ccmtl_core.series.columns import SeriesColumns
from ccmtl_core.series.panel import MAX_DENSE_ROWS, SeriesPanel

LEAST_SCALE = 1e-3
"""Of the size of a series' values: one that hardly moves would else have the largest rows of all."""
MAX_HORIZON = 2**16
CHUNK = 2**21
"""Numbers in the rows that are made at a time."""


def series_scale(panel: SeriesPanel) -> FloatArray:
    """Return the unit of each series: the root mean square of its changes from value to value.

    Parameters
    ----------
    panel : SeriesPanel
        T series.

    Returns
    -------
    (T,) float64
        At least a thousandth of the root mean square of its values; 1 where all values are zero.

    Examples
    --------
    >>> series_scale(SeriesPanel(("a", "b"), [0, 3, 4], [0, 1, 2, 0], [1.0, 3.0, 1.0, 0.0], "D"))
    array([2., 1.])
    """
    check_panel(panel)
    same = panel.series_index[1:] == panel.series_index[:-1]
    own = panel.series_index[1:][same]
    largest = np.zeros(panel.n_series)
    np.maximum.at(largest, panel.series_index, np.abs(panel.values))
    unit = np.where(largest > 0.0, largest, 1.0)  # squares of very large or small values would be lost
    values = panel.values / unit[panel.series_index]
    n = np.diff(panel.offsets)
    changes = group_sums(own, np.diff(values)[same] ** 2, panel.n_series) / np.maximum(n - 1, 1)
    squares = group_sums(panel.series_index, values**2, panel.n_series) / np.maximum(n, 1)
    scale = unit * np.maximum(np.sqrt(changes), LEAST_SCALE * np.sqrt(squares))
    return np.where(largest > 0.0, scale, 1.0)


def constant_values(panel: SeriesPanel) -> FloatArray:
    """Return the value of each series that never changes; NaN for one that does, or has no values.

    Examples
    --------
    >>> constant_values(SeriesPanel(("a", "b"), [0, 2, 4], [0, 1, 0, 1], [3.0, 3.0, 1.0, 2.0], "D"))
    array([ 3., nan])
    """
    first = np.full(panel.n_series, np.nan)
    some = np.diff(panel.offsets) > 0
    first[some] = panel.values[panel.offsets[:-1][some]]
    differs = panel.values != first[panel.series_index]
    first[panel.series_index[differs]] = np.nan
    return first


def unit_of_ranges(scale: FloatArray, constant: FloatArray) -> FloatArray:
    """Return what the errors of series are told in, (n,): 0 for one that never changed, as it has none.

    One of few values that are all the same may still change: its ``scale`` is then that of others.

    Examples
    --------
    >>> unit_of_ranges(np.array([1.0, 1.0, 0.003, 0.5]), np.array([np.nan, 0.0, 3.0, 3.0]))
    array([1. , 0. , 0. , 0.5])
    """
    size = np.abs(constant)
    of_constant = np.where(size == 0.0, 1.0, LEAST_SCALE * size)
    return np.where(np.isclose(scale, of_constant, rtol=1e-9, atol=0.0), 0.0, scale)


def never_negative(panel: SeriesPanel) -> BoolArray:
    """Return whether all values of each series are zero or more.

    Examples
    --------
    >>> never_negative(SeriesPanel(("a", "b"), [0, 2, 4], [0, 1, 0, 1], [3.0, 0.0, 1.0, -2.0], "D"))
    array([ True, False])
    """
    found = np.ones(panel.n_series, dtype=np.bool_)
    found[panel.series_index[panel.values < 0.0]] = False
    return found


def check_panel(panel: SeriesPanel) -> SeriesPanel:
    """Return the panel; raise a ParameterError if it is none."""
    check_kind(panel, "panel", SeriesPanel)
    return panel


def panel_ends(panel: SeriesPanel) -> tuple[int, int]:
    """The first and last period of a panel that has at least two."""
    if not len(panel.period) or panel.period.min() == panel.period.max():
        n = counted(int(len(panel.period) > 0), "period")
        raise DataError(f"the panel has values in {n}: a forecast needs two or more to learn from")
    first, last = int(panel.period.min()), int(panel.period.max())
    if last - first >= MAX_DENSE_ROWS:
        ends = [panel.frequency.text(period, "s") for period in (first, last)]
        raise DataError(f"the series span {ends[0]} to {ends[1]}: is one of the times mistyped?")
    return first, last


def check_columns(
    columns: SeriesColumns | None, features: RowFeatures, frequency: Frequency
) -> SeriesColumns | None:
    """Return the columns; raise an error unless they are those that the features name."""
    wanted = (*features.past, *features.future)
    if columns is None:
        if wanted:
            raise ParameterError(f"the features name the columns {', '.join(wanted)}: give them as columns=")
        return None
    check_kind(columns, "columns", SeriesColumns)
    if columns.frequency is not frequency:
        raise DataError(
            f"the columns have the frequency {columns.frequency.value!r}, the series {frequency.value!r}"
        )
    if missing := [name for name in wanted if name not in columns.names]:
        raise DataError(f"there is no column {missing[0]!r}; there are {', '.join(columns.names)}")
    return columns if wanted else None


def column_places(columns: SeriesColumns | None, features: RowFeatures) -> IntArray:
    """Return where the columns of the features stand among all, those of the past first."""
    names = () if columns is None else (*features.past, *features.future)
    return np.array([columns.names.index(name) for name in names if columns is not None], dtype=np.int64)


def checked_scale(scale: ArrayLike, n_series: int) -> FloatArray:
    """Return the units of series; a DataError unless they are positive and finite."""
    units = as_shape(scale, (n_series,), "scale")
    if not (np.isfinite(units).all() and (units > 0.0).all()):
        raise DataError("scale must be positive and finite")
    return units


def _block_bounds(panel: SeriesPanel, first: int, last: int, n_blocks: int) -> IntArray:
    """The first period of each block of targets: half of those with values, then equal parts of the rest."""
    has_values = np.zeros(last - first + 1, dtype=np.bool_)
    inside = panel.period[(panel.period >= first) & (panel.period <= last)]
    has_values[inside - first] = True
    periods = first + np.flatnonzero(has_values)
    half = -(-len(periods) // 2)
    K = min(n_blocks, len(periods) - half + 1)
    if K < 2:
        return np.array([first])
    later = half + (len(periods) - half) * np.arange(K - 1) // (K - 1)
    return np.concatenate([[first], periods[later]])


class Piece(NamedTuple):
    """Series from ``start`` to before ``stop``, targets from ``low`` to ``high``."""

    start: int
    stop: int
    low: int
    high: int


class Made(NamedTuple):
    """Rows of a piece, the series of each (n,), how many by series and block, how many not made."""

    rows: Rows
    task: IntArray
    counts: IntArray
    n_left_out: int


class RowMaker:
    """Checks what rows are asked for, cuts it into pieces that fit into the cache, and makes these."""

    def __init__(
        self,
        panel: SeriesPanel,
        features: RowFeatures,
        horizon: int,
        origins: ArrayLike | None,
        scale: ArrayLike | None,
        constant: FloatArray | None = None,
        n_blocks: int = 1,
        columns: SeriesColumns | None = None,
    ) -> None:
        check_kind(features, "features", RowFeatures)
        check_integer(horizon, "horizon", 1, MAX_HORIZON)
        self._panel, self._plan, self.horizon = panel, features.plan(), int(horizon)
        self._scale = series_scale(panel) if scale is None else checked_scale(scale, panel.n_series)
        self._skipped = None if constant is None else constant == constant
        first, last = panel_ends(panel)
        given = np.arange(first, last) if origins is None else np.unique(as_integers(origins, "origins"))
        given = given[(given >= first) & (given < last)]
        if not len(given):
            raise ParameterError(f"origins must hold periods from {first} to {last - 1}, those of the panel")
        self._low, self.high = int(given[0]) + 1, min(int(given[-1]) + self.horizon, last)
        self._back = self.horizon + features.reach - 1  # periods before a target that its row may read
        self._base = self._low - self._back
        self._origin = np.full(self.high - self._base + 1, -1)
        self._origin[given - self._base] = np.arange(len(given))
        self.bounds = _block_bounds(panel, self._low, self.high, n_blocks)
        targets = np.arange(self._low, self.high + 1)
        self._block = np.full(len(self._origin), -1)
        self._block[self._back :] = np.searchsorted(self.bounds, targets, side="right") - 1
        dates = features.calendar_values(targets, panel.frequency)
        self._calendar = np.concatenate([np.zeros((self._back, dates.shape[1])), dates])
        self._width = len(features.names)
        self._columns = check_columns(columns, features, panel.frequency)
        self._chosen = column_places(columns, features)
        self._column_of = None if columns is None else columns.places(panel.unique_ids)
        self._most_steps = min(self.horizon, len(given))

    def block(self, b: int) -> tuple[int, int]:
        """The first and last period of the targets of a block."""
        ends = [*self.bounds.tolist(), self.high + 1]
        return ends[b], ends[b + 1] - 1

    def join_blocks(self, kept: IntArray) -> None:
        """Keep these blocks alone; each of the others, which have no rows, becomes part of the one before."""
        self.bounds = self.bounds[kept]
        self.bounds[0] = self._low

    def pieces(self, series: range, span: tuple[int, int] | None = None) -> Iterator[Piece]:
        """Cut the series, and where one alone has too many rows also the periods of the targets."""
        first, last = span or (self._low, self.high)
        numbers = self._most_steps * (self._width + 1) + 1
        lengths = np.diff(self._panel.offsets)[series.start : series.stop]
        n_periods = last - first + 1
        if min(int(lengths.max()), n_periods) * numbers > CHUNK:
            n_periods = max(1, CHUNK // numbers)
        bins = np.cumsum(np.minimum(lengths, n_periods + self._back) * numbers) // CHUNK
        cuts = [0, *(np.flatnonzero(np.diff(bins)) + 1).tolist(), len(series)]
        for low in range(first, last + 1, n_periods):
            high = min(low + n_periods - 1, last)
            for start, stop in pairwise(cuts):
                yield Piece(series.start + start, series.start + stop, low, high)

    def made(self, piece: Piece) -> Made:
        """Make the rows of a piece."""
        series, n_entries = self._stretches(piece)
        base = piece.low - self._back
        part = slice(base - self._base, piece.high - self._base + 1)
        origin, block = self._origin[part], self._block[part].copy()
        block[: self._back] = -1
        used = origin >= 0
        origin = np.where(used, origin - origin[used].min(initial=len(self._origin)), -1)
        targets = Targets(base, origin, block, self._calendar[part], self.horizon)
        n = n_entries * self._most_steps
        rows = Rows(np.empty((n, self._width)), np.empty(n), np.empty(n, np.int64), np.empty(n, np.int64))
        counts = np.zeros((piece.stop - piece.start, len(self.bounds)), dtype=np.int64)
        n_left_out = fill_rows(series, targets, self._plan, rows, counts)
        n = int(counts.sum())
        task = np.repeat(np.arange(piece.start, piece.stop), counts.sum(axis=1))
        return Made(Rows(rows.X[:n], rows.y[:n], rows.period[:n], rows.step[:n]), task, counts, n_left_out)

    def _stretches(self, piece: Piece) -> tuple[Stretches, int]:
        """What the rows of a piece may read, in units of each series; and how many of it are targets."""
        panel, first = self._panel, piece.low - self._back
        entries = slice(*panel.offsets[[piece.start, piece.stop]])
        task, period = panel.series_index[entries], panel.period[entries]
        kept = (period >= first) & (period <= piece.high)
        if self._skipped is not None:
            kept &= ~self._skipped[task]
        values = panel.values[entries][kept] / self._scale[task[kept]]
        task, period = task[kept] - piece.start, period[kept]
        ends = np.cumsum(np.bincount(task, minlength=piece.stop - piece.start))
        starts = np.concatenate([[0], ends[:-1]])
        some = ends > starts
        begin, length = np.zeros(len(ends), dtype=np.int64), np.zeros(len(ends), dtype=np.int64)
        begin[some] = period[starts[some]]
        length[some] = period[ends[some] - 1] + 1 - begin[some]
        bounds = np.concatenate([[0], np.cumsum(length)])
        dense = np.full(bounds[-1], np.nan)
        dense[period + (bounds[:-1] - begin)[task]] = values
        beside = np.empty((len(dense), 0))
        if self._columns is not None and self._column_of is not None:
            own = np.repeat(np.arange(len(ends)), length)
            every = np.arange(len(dense)) - (bounds[:-1] - begin)[own]
            beside = self._columns.at(self._column_of[piece.start + own], every).take(self._chosen, axis=1)
        return Stretches(dense, bounds, begin, beside), int((period >= piece.low).sum())
