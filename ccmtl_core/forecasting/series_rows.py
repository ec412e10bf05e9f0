"""Make rows for a value k steps ahead of what is known at an origin, and their statistics by block of time.

All rows of a series are in its own unit, its scale, so that every series counts alike. Rows are made for some
series at a time, added up and let go: memory does not grow with their number.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ccmtl_core.base.arguments import check_integer, check_kind
from ccmtl_core.base.arrays import locked, read_only
from ccmtl_core.base.display import counted, shown
from ccmtl_core.base.exceptions import DataError, ParameterError
from ccmtl_core.base.frozen_value import FrozenValue
from ccmtl_core.base.threads import sharing, slices
from ccmtl_core.base.types import FloatArray, IntArray
from ccmtl_core.data.row_blocks import IN_PLACE
from ccmtl_core.data.task_dataset import TaskDataset
from ccmtl_core.forecasting.features import RowFeatures
from ccmtl_core.forecasting.row_maker import MAX_HORIZON, RowMaker, check_panel, constant_values, panel_ends
from ccmtl_core.series.columns import SeriesColumns
from ccmtl_core.series.panel import SeriesPanel
from ccmtl_core.statistics.gram_totals import add_rows, zeros
from ccmtl_core.statistics.sufficient_statistics import SufficientStatistics


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


def direct_rows(
    panel: SeriesPanel,
    features: RowFeatures,
    horizon: int,
    *,
    origins: ArrayLike | None = None,
    scale: ArrayLike | None = None,
    series: slice = slice(None),
    columns: SeriesColumns | None = None,
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
    columns : SeriesColumns, optional
        What the ``past`` and ``future`` features name. A row for which one is not known is left out.

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
    maker = RowMaker(panel, features, horizon, origins, scale, columns=columns)
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
    columns: SeriesColumns | None = None,
) -> list[SufficientStatistics]:
    """Add up the rows of :func:`direct_rows` by blocks of the period that their targets lie in.

    Blocks share no target, so those before a block train, and none of what it holds is among their targets.

    Parameters
    ----------
    panel, features, horizon, scale, columns
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
    maker = RowMaker(panel, features, horizon, origins, scale, constant_values(panel), n_blocks, columns)
    return block_statistics(maker, panel, features)


def block_statistics(
    maker: RowMaker, panel: SeriesPanel, features: RowFeatures
) -> list[SufficientStatistics]:
    """Add up the rows of each block; those without rows are joined to the block before."""
    totals = row_totals(maker, panel, features)
    if not totals[-1].any():
        raise DataError(
            f"no series has a row: the longest has {counted(int(np.diff(panel.offsets).max()), 'value')}, "
            f"and a row needs one before its target, each of the lags without a gap, at most "
            f"{max(features.lags, default=1)}, and each of the columns; series that never change have none"
        )
    gram, xty, yty, x_sum, y_sum, weight = totals
    kept = np.flatnonzero(weight.any(axis=1))
    maker.join_blocks(kept)
    names = panel.unique_ids, features.names
    return [
        SufficientStatistics(
            gram[b], xty[b], yty[b], weight[b].astype(np.int64), *names, weight[b], x_sum[b], y_sum[b]
        )
        for b in kept
    ]


def row_totals(maker: RowMaker, panel: SeriesPanel, features: RowFeatures) -> list[FloatArray]:
    """Add up the rows of K blocks of T series: Xᵀ X, Xᵀ y, yᵀ y, sums of X and y, how many; (K, T, …)."""
    T, K = panel.n_series, len(maker.bounds)
    totals = zeros(K * T, len(features.names))
    pieces = list(maker.pieces(range(T)))

    def add(part: slice) -> None:
        for piece in pieces[part]:
            made = maker.made(piece)
            slot = (np.arange(K) * T + np.arange(piece.start, piece.stop)[:, None]).ravel()
            offsets = np.concatenate([[0], np.cumsum(made.counts)])
            add_rows(totals, made.rows.X, made.rows.y, IN_PLACE, offsets, slot)

    # Pieces that are cut by time too hold rows of the same series, which only one thread may add up.
    parts = slices(len(pieces), 2 if len({piece.start for piece in pieces}) == len(pieces) else 1)
    with sharing(len(parts)) as share:
        share(add, parts)
    return [locked(total).reshape(K, T, *total.shape[1:]) for total in totals]


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
    first, last = panel_ends(check_panel(panel))
    start = first + min(features.warm_up, (last - first + 1) // 2) - 1
    every = 1
    if n_origins is not None:
        check_integer(n_origins, "n_origins", least=1)
        every = -(-(last - start) // n_origins)
    start += (last - horizon - start) % every
    return np.arange(start, last, every)
