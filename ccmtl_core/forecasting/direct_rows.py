"""Make rows for a value k steps ahead of what is known at an origin, and their statistics by block of time.

All rows of a series are in its own unit, its scale, so that every series counts alike. Rows are made for some
series at a time, added up and let go: memory does not grow with their number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ccmtl_core.base.arguments import check_integer, check_kind
from ccmtl_core.base.arrays import as_float64, as_integers, as_shape, locked, read_only
from ccmtl_core.base.display import counted, shown
from ccmtl_core.base.exceptions import DataError, ParameterError
from ccmtl_core.base.frozen_value import FrozenValue
from ccmtl_core.base.threads import sharing, slices
from ccmtl_core.base.types import BoolArray, FloatArray, IntArray
from ccmtl_core.data.row_blocks import IN_PLACE
from ccmtl_core.data.task_dataset import TaskDataset
from ccmtl_core.forecasting.features import RowFeatures
from ccmtl_core.kernels.grouping import group_sums
from ccmtl_core.kernels.series.row_kernel import Rows, Stretches, Targets, fill_latest, fill_rows
from ccmtl_core.series.calendar import Frequency
from ccmtl_core.series.panel import MAX_DENSE_ROWS, SeriesPanel
from ccmtl_core.statistics.gram_totals import add_rows, zeros
from ccmtl_core.statistics.sufficient_statistics import SufficientStatistics

LEAST_SCALE = 1e-3
"""Of the size of a series' values: one that hardly moves would else have the largest rows of all."""
MAX_HORIZON = 2**16
CHUNK = 2**21
"""Numbers in the rows that are made at a time."""


@dataclass(frozen=True, eq=False)
class DirectRows(FrozenValue):
    """Rows of T series, each with the steps from its origin to its target.

    Parameters
    ----------
    dataset : TaskDataset
        n rows in the order of series, target and step; tasks are the series, also those without rows.
    target_period : (n,) int64
        The period that each row's y belongs to.
    step : (n,) int64
        k; the origin is ``target_period - step``.
    n_left_out : int
        Pairs of an origin and a known target that became no row, as a feature was not known.
    """

    dataset: TaskDataset
    target_period: IntArray
    step: IntArray
    n_left_out: int

    def __repr__(self) -> str:
        return shown(self, repr(self.dataset), f"{self.n_left_out:,} left out")


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


def direct_rows(
    panel: SeriesPanel,
    features: RowFeatures,
    horizon: int,
    *,
    origins: ArrayLike | None = None,
    scale: ArrayLike | None = None,
    series: slice = slice(None),
) -> DirectRows:
    """Make one row for each origin and step whose target is known.

    Parameters
    ----------
    panel : SeriesPanel
        T series, with or without gaps.
    features : RowFeatures
        P features.
    horizon : int
        Steps 1 to h from each origin.
    origins : integers, optional
        Periods that forecasts start from; by default each period of the panel.
    scale : (T,) float64, optional
        What values are divided by; by default :func:`series_scale`.
    series : slice
        Make the rows of these series alone.

    Returns
    -------
    DirectRows

    Raises
    ------
    ParameterError
        Arguments out of their range.
    DataError
        A scale that is not positive.

    Examples
    --------
    >>> panel = SeriesPanel(("a",), [0, 4], [0, 1, 2, 3], [1.0, 2.0, 4.0, 7.0], "D")
    >>> rows = direct_rows(panel, RowFeatures(windows=(2,)), 2, origins=[1], scale=[1.0])
    >>> rows.dataset.X.ravel(), rows.dataset.y, rows.step
    (array([1.5, 1.5]), array([4., 7.]), array([1, 2]))
    """
    check_kind(series, "series", slice)
    chosen = range(*series.indices(check_panel(panel).n_series))
    if chosen.step != 1 or not chosen:
        raise ParameterError(f"series must be a slice of some of the {panel.n_series} series, without a step")
    maker = _RowMaker(panel, features, horizon, origins, scale)
    made = [maker.made(piece) for piece in maker.pieces(chosen)]
    # Pieces cut by time each hold rows of all series: a stable sort brings those of a series together.
    task = np.concatenate([part.task for part in made])
    order = np.argsort(task, kind="stable")
    X, y, period, step = (
        np.concatenate(arrays)[order] for arrays in zip(*(p.rows for p in made), strict=True)
    )
    offsets = np.concatenate([[0], np.cumsum(np.bincount(task - chosen.start, minlength=len(chosen)))])
    dataset = TaskDataset(X, y, offsets, panel.unique_ids[chosen.start : chosen.stop], features.names)
    n_left_out = sum(part.n_left_out for part in made)
    return DirectRows(dataset, read_only(period), read_only(step), n_left_out)


def direct_statistics(
    panel: SeriesPanel,
    features: RowFeatures,
    horizon: int,
    *,
    n_blocks: int = 6,
    n_origins: int | None = None,
    scale: ArrayLike | None = None,
) -> list[SufficientStatistics]:
    """Add up the rows of :func:`direct_rows` by blocks of the period that their targets lie in.

    Blocks share no target, so those before a block train, and none of what it holds is among their targets.

    Parameters
    ----------
    panel, features, horizon, scale
        As in :func:`direct_rows`.
    n_blocks : int
        Blocks of time, at least 1: the first holds half of the periods of targets, the others equal parts.
    n_origins : int, optional
        At most so many, at equal distances up to the end; by default each period from where the features are
        known, or from the middle of a short history.

    Returns
    -------
    list of SufficientStatistics
        The oldest block first; fewer than ``n_blocks`` where there are fewer periods of targets. Series that
        never change have no rows: their forecast is their constant.

    Raises
    ------
    ParameterError
        Arguments out of their range.
    DataError
        A panel that has no row.

    Examples
    --------
    >>> panel = SeriesPanel(("a",), [0, 6], list(range(6)), [1.0, 2.0, 4.0, 7.0, 1.0, 3.0], "D")
    >>> blocks = direct_statistics(panel, RowFeatures(windows=(1,)), 2, n_blocks=2)
    >>> [int(block.n_samples[0]) for block in blocks]
    [5, 4]
    """
    check_integer(n_blocks, "n_blocks", least=1)
    origins = rolling_origins(panel, features, horizon, n_origins)
    maker = _RowMaker(panel, features, horizon, origins, scale, constant_values(panel), n_blocks)
    T, K = panel.n_series, len(maker.bounds)
    totals = zeros(K * T, len(features.names))
    pieces = list(maker.pieces(range(T)))

    def add(part: slice) -> None:
        for piece in pieces[part]:
            made = maker.made(piece)
            slot = (np.arange(K) * T + np.arange(piece.start, piece.stop)[:, None]).ravel()
            offsets = np.concatenate([[0], np.cumsum(made.counts)])
            add_rows(totals, made.rows.X, made.rows.y, IN_PLACE, offsets, slot)

    parts = slices(len(pieces), 2)
    with sharing(len(parts)) as share:
        share(add, parts)
    if not totals[-1].any():
        raise DataError(
            f"no series has a row: the longest has {counted(int(np.diff(panel.offsets).max()), 'value')}, "
            f"and a row needs one before its target and each of the lags, at most "
            f"{max(features.lags, default=1)}; series that never change have none"
        )
    gram, xty, yty, x_sum, y_sum, weight = (locked(total).reshape(K, T, *total.shape[1:]) for total in totals)
    names = panel.unique_ids, features.names
    return [
        SufficientStatistics(
            gram[b], xty[b], yty[b], weight[b].astype(np.int64), *names, weight[b], x_sum[b], y_sum[b]
        )
        for b in range(K)
        if weight[b].any()
    ]


def latest_rows(
    tail: ArrayLike,
    features: RowFeatures,
    scale: ArrayLike,
    steps: Sequence[int],
    origin: ArrayLike,
    frequency: Frequency | str,
) -> tuple[FloatArray, BoolArray]:
    """Make the rows that forecast from the newest values of each series.

    Parameters
    ----------
    tail : (T, R)
        Values of consecutive periods up to the origin, newest last, NaN where not known; of more than
        ``features.reach`` the newest are taken.
    features : RowFeatures
        P features.
    scale : (T,)
        What values are divided by.
    steps : sequence of H int
        Steps from the origin, such as ``range(1, 9)``.
    origin : (T,) integers
        The period of the newest value of each series.
    frequency : Frequency
        What a period is.

    Returns
    -------
    X : (T, H, P) float64
        Without NaN: a lag or level that is not known is the mean of the values of the tail. A series without
        any has zeros.
    known : (T,) bool
        Whether a series has any.

    Raises
    ------
    ParameterError, DataError
        Arguments of other shapes or out of their range.

    Examples
    --------
    >>> latest_rows([[np.nan, 2.0, 6.0]], RowFeatures(lags=(1, 3)), [2.0], [1], [0], "D")
    (array([[[3., 2.]]]), array([ True]))
    """
    check_kind(features, "features", RowFeatures)
    tails = as_float64(tail, "tail")
    if tails.ndim != 2 or tails.shape[1] == 0:
        raise DataError(f"tail must be (T, R) with R at least 1; got {tails.shape}")
    T = len(tails)
    units, last = _checked_scale(scale, T), as_integers(origin, "origin")
    if last.shape != (T,):
        raise DataError(f"origin must be ({T},); got {last.shape}")
    for step in steps:
        check_integer(step, "steps", 1, MAX_HORIZON)
    ahead = np.array(list(steps), dtype=np.int64)
    distinct, place = np.unique(last, return_inverse=True)
    periods = (distinct[:, None] + ahead).ravel()
    dates = features.calendar_values(periods, Frequency(frequency)).reshape(len(distinct), len(ahead), -1)
    X, known = np.zeros((T, len(ahead), len(features.names))), np.zeros(T, dtype=np.bool_)
    if X.size:
        newest = np.ascontiguousarray(tails[:, -features.reach :] / units[:, None])
        fill_latest(newest, ahead, np.ascontiguousarray(dates[place]), features.plan(), X, known)
    return X, known


def latest_tails(panel: SeriesPanel, reach: int) -> tuple[FloatArray, IntArray]:
    """Return the newest values of each series, as :func:`latest_rows` takes them.

    Parameters
    ----------
    panel : SeriesPanel
        T series.
    reach : int
        Most periods up to the last one of each series.

    Returns
    -------
    tail : (T, R) float64
        Newest last, NaN where not known; R is at most ``reach`` and no more than the longest series spans.
    last_period : (T,) int64
        That of the newest value; the panel's last one of a series without values.

    Examples
    --------
    >>> latest_tails(SeriesPanel(("a", "b"), [0, 2, 3], [4, 6, 6], [1.0, 2.0, 3.0], "D"), 5)
    (array([[ 1., nan,  2.],
           [nan, nan,  3.]]), array([6, 6]))
    """
    check_integer(reach, "reach", 1)
    some = np.diff(check_panel(panel).offsets) > 0
    newest = np.full(panel.n_series, panel.period.max() if len(panel.period) else 0)
    newest[some] = panel.period[panel.offsets[1:][some] - 1]
    back = newest[panel.series_index] - panel.period
    R = min(reach, int(back.max(initial=0)) + 1)
    near = back < R
    tail = np.full((panel.n_series, R), np.nan)
    tail[panel.series_index[near], R - 1 - back[near]] = panel.values[near]
    return tail, newest


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


def rolling_origins(
    panel: SeriesPanel, features: RowFeatures, horizon: int, n_origins: int | None = None
) -> IntArray:
    """Return the periods that rows start from, rising.

    Parameters
    ----------
    panel : SeriesPanel
        T series.
    features : RowFeatures
        The first origin is where they are all known, or the middle of a history that is shorter.
    horizon : int
        Steps from an origin. The last period but ``horizon`` is an origin.
    n_origins : int, optional
        At most so many, at equal distances; by default each period.

    Returns
    -------
    (G,) int64

    Raises
    ------
    DataError
        A panel of fewer than two periods.

    Examples
    --------
    >>> panel = SeriesPanel(("a",), [0, 9], list(range(9)), np.arange(9.0), "D")
    >>> rolling_origins(panel, RowFeatures(windows=(2,)), 3, n_origins=4)
    array([1, 3, 5, 7])
    """
    check_kind(features, "features", RowFeatures)
    check_integer(horizon, "horizon", 1, MAX_HORIZON)
    first, last = _ends(check_panel(panel))
    start = first + min(features.warm_up, (last - first + 1) // 2) - 1
    every = 1
    if n_origins is not None:
        check_integer(n_origins, "n_origins", least=1)
        every = -(-(last - start) // n_origins)
    start += (last - horizon - start) % every
    return np.arange(start, last, every)


def check_panel(panel: SeriesPanel) -> SeriesPanel:
    """Return the panel; raise a ParameterError if it is none."""
    check_kind(panel, "panel", SeriesPanel)
    return panel


def _ends(panel: SeriesPanel) -> tuple[int, int]:
    """The first and last period of a panel that has at least two."""
    if not len(panel.period) or panel.period.min() == panel.period.max():
        n = counted(int(len(panel.period) > 0), "period")
        raise DataError(f"the panel has values in {n}: a forecast needs two or more to learn from")
    first, last = int(panel.period.min()), int(panel.period.max())
    if last - first >= MAX_DENSE_ROWS:
        ends = panel.frequency.to_datetime([first, last]).astype("datetime64[s]")
        raise DataError(f"the series span {ends[0]} to {ends[1]}: is one of the times mistyped?")
    return first, last


def _checked_scale(scale: ArrayLike, n_series: int) -> FloatArray:
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


class _Piece(NamedTuple):
    """Series from ``start`` to before ``stop``, targets from ``low`` to ``high``."""

    start: int
    stop: int
    low: int
    high: int


class _Made(NamedTuple):
    """Rows of a piece, the series of each (n,), how many by series and block, how many not made."""

    rows: Rows
    task: IntArray
    counts: IntArray
    n_left_out: int


class _RowMaker:
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
    ) -> None:
        check_kind(features, "features", RowFeatures)
        check_integer(horizon, "horizon", 1, MAX_HORIZON)
        self._panel, self._plan, self._horizon = panel, features.plan(), int(horizon)
        self._scale = series_scale(panel) if scale is None else _checked_scale(scale, panel.n_series)
        self._skipped = None if constant is None else constant == constant
        first, last = _ends(panel)
        given = np.arange(first, last) if origins is None else np.unique(as_integers(origins, "origins"))
        given = given[(given >= first) & (given < last)]
        if not len(given):
            raise ParameterError(f"origins must hold periods from {first} to {last - 1}, those of the panel")
        self._low, self._high = int(given[0]) + 1, min(int(given[-1]) + self._horizon, last)
        self._back = self._horizon + features.reach - 1  # periods before a target that its row may read
        self._base = self._low - self._back
        self._origin = np.full(self._high - self._base + 1, -1)
        self._origin[given - self._base] = np.arange(len(given))
        self.bounds = _block_bounds(panel, self._low, self._high, n_blocks)
        targets = np.arange(self._low, self._high + 1)
        self._block = np.full(len(self._origin), -1)
        self._block[self._back :] = np.searchsorted(self.bounds, targets, side="right") - 1
        dates = features.calendar_values(targets, panel.frequency)
        self._calendar = np.concatenate([np.zeros((self._back, dates.shape[1])), dates])
        self._width = len(features.names)
        self._most_steps = min(self._horizon, len(given))

    def pieces(self, series: range) -> Iterator[_Piece]:
        """Cut the series, and where one alone has too many rows also the periods of the targets."""
        numbers = self._most_steps * (self._width + 1) + 1
        lengths = np.diff(self._panel.offsets)[series.start : series.stop]
        n_periods = self._high - self._low + 1
        if int(lengths.max()) * numbers > CHUNK:
            n_periods = max(1, CHUNK // numbers)
        size = np.minimum(lengths, n_periods + self._back) * numbers
        bins = np.cumsum(size) // CHUNK
        cuts = [0, *(np.flatnonzero(np.diff(bins)) + 1).tolist(), len(series)]
        for low in range(self._low, self._high + 1, n_periods):
            for start, stop in pairwise(cuts):
                yield _Piece(
                    series.start + start, series.start + stop, low, min(low + n_periods - 1, self._high)
                )

    def made(self, piece: _Piece) -> _Made:
        """Make the rows of a piece."""
        series, n_entries = self._stretches(piece)
        base = piece.low - self._back
        part = slice(base - self._base, piece.high - self._base + 1)
        origin, block = self._origin[part], self._block[part].copy()
        block[: self._back] = -1
        used = origin >= 0
        origin = np.where(used, origin - origin[used].min(initial=len(self._origin)), -1)
        targets = Targets(base, origin, block, self._calendar[part], self._horizon)
        n = n_entries * self._most_steps
        rows = Rows(np.empty((n, self._width)), np.empty(n), np.empty(n, np.int64), np.empty(n, np.int64))
        counts = np.zeros((piece.stop - piece.start, len(self.bounds)), dtype=np.int64)
        n_left_out = fill_rows(series, targets, self._plan, rows, counts)
        n = int(counts.sum())
        task = np.repeat(np.arange(piece.start, piece.stop), counts.sum(axis=1))
        return _Made(Rows(rows.X[:n], rows.y[:n], rows.period[:n], rows.step[:n]), task, counts, n_left_out)

    def _stretches(self, piece: _Piece) -> tuple[Stretches, int]:
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
        return Stretches(dense, bounds, begin), int((period >= piece.low).sum())
