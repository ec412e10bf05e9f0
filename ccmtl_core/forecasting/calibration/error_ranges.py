"""Quantiles of errors, from the errors of forecasts of past blocks of time (split conformal prediction).

Errors are counted in units of each series, so that those of many series tell of one. Series that share one
model, or where these are few those of like size beside their ups and downs, pool their errors by step; how
far a series' own errors go beyond the pool's widens or narrows its ranges.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from ccmtl_core.base.arrays import as_shape
from ccmtl_core.base.exceptions import DataError
from ccmtl_core.base.types import FloatArray, IntArray
from ccmtl_core.forecasting.calibration.range_table import PROBABILITIES, RangeTable
from ccmtl_core.series.panel import SeriesPanel

ENOUGH = 500
"""Errors of a step that a group of its own needs; less a spread would tell more of chance."""
FEW = 100
"""Of fewer errors of a step, those of the steps beside it count as well."""
OWN_PERIODS = 10
"""Periods of its own after which a series' errors count as much as those of its group."""
MOST_BANDS, MOST_CLUSTERS = 10, 20
"""Groups of like size that series are parted into, and clusters with groups of their own."""
MOST_ERRORS = 20_000
"""Of one step in a group: more of them change no quantile by what matters."""
_CHUNKS = 5


def mean_size(panel: SeriesPanel, scale: FloatArray) -> FloatArray:
    """Return the mean absolute value of each series in its unit, (T,); 0 without values."""
    total = np.bincount(panel.series_index, np.abs(panel.values) / scale[panel.series_index], panel.n_series)
    mean: FloatArray = total / np.maximum(np.diff(panel.offsets), 1)
    return mean


def range_table(
    residuals: ArrayLike, size: ArrayLike, cluster: ArrayLike, n_newest: int | None = None
) -> RangeTable:
    """Make the table of quantiles of errors.

    Parameters
    ----------
    residuals : (T, N, h)
        Value less forecast in units of each series, by target period, oldest first, and step; NaN where none.
    size : (T,)
        Mean absolute value of each series in its unit, which tells sparse series from steady ones.
    cluster : (T,) integers
        Series with the same number share one model.
    n_newest : int, optional
        The quantiles are those of the errors of so many periods; by default of all. How much further off one
        series is than others is told by the errors of all periods.

    Returns
    -------
    RangeTable
        Without any error: the quantiles of a random walk whose changes have the root mean square 1.

    Examples
    --------
    >>> errors = np.random.default_rng(0).normal(size=(40, 50, 2))
    >>> table = range_table(errors, np.ones(40), np.zeros(40))
    >>> table.errors(np.array([0]), 1, [0.1, 0.9]).round(1)
    array([[[-1.3,  1.3]]])
    """
    found = np.asarray(residuals)
    if found.ndim != 3:
        raise DataError(f"residuals must be (T, N, h); got {found.shape}")
    T, N, h = found.shape
    newest = slice(N - (N if n_newest is None else n_newest), N)
    known = (~np.isnan(found[:, newest])).sum(axis=1)  # (T, h)
    if not known.any():
        steps = np.sqrt(np.arange(1.0, h + 1))
        return RangeTable((steps[:, None] * ndtri(PROBABILITIES))[None], np.zeros(T, np.int64), np.ones(T))
    group = _groups(known.max(axis=1), as_shape(size, (T,), "size"), np.asarray(cluster))
    unit = _step_units(found[:, newest], known.sum(axis=0))
    chunk = np.minimum(np.arange(N) * min(_CHUNKS, N) // N, N - 1)
    spread, spread_without = _spreads(found, unit, group, chunk)
    G = int(group.max()) + 1
    quantiles = np.empty((G, h, len(PROBABILITIES)))
    for g in range(G):
        members = np.flatnonzero(group == g)
        members = members[:: int(known[members].sum(axis=0).max() // MOST_ERRORS) + 1]
        errors = found[members, newest] / unit.astype(found.dtype)
        errors /= spread_without[members][:, chunk[newest], None].astype(found.dtype)
        quantiles[g] = unit[:, None] * _by_step(errors, N)
    return RangeTable(quantiles, group, spread)


def step_quantiles(errors: FloatArray) -> FloatArray:
    """Return quantiles of independent errors (n, h), NaN where none, at ``PROBABILITIES``, (h, 25).

    Examples
    --------
    >>> errors = np.random.default_rng(0).normal(size=(100_000, 1))
    >>> step_quantiles(errors)[0, [4, 20]].round(1)
    array([-1.3,  1.3])
    """
    unit = _step_units(errors[:, None, :], (~np.isnan(errors)).sum(axis=0))
    found: FloatArray = unit[:, None] * _by_step(errors[:, None, :] / unit, errors.size)
    return found


def _by_step(errors: NDArray[Any], n_periods: int) -> FloatArray:
    """Quantiles of errors (T, N, h) by step, (h, 25); of few errors those of the steps beside count too."""
    h, counts = errors.shape[2], (~np.isnan(errors)).sum(axis=(0, 1))
    quantiles = np.empty((h, len(PROBABILITIES)))
    for k in range(h):
        width = 0
        while counts[max(k - width, 0) : k + width + 1].sum() < FEW and width < h:
            width += 1
        near = errors[:, :, max(k - width, 0) : k + width + 1].ravel()
        quantiles[k] = conformal(np.sort(near[~np.isnan(near)]).astype(np.float64), n_periods)
    return quantiles


def _groups(n_known: IntArray, size: FloatArray, cluster: IntArray) -> IntArray:
    """Part series by cluster, those of small clusters together, and each part into bands of like size."""
    _, cluster = np.unique(cluster, return_inverse=True)
    n_errors = np.bincount(cluster, n_known)
    largest = np.argsort(-n_errors, kind="stable")[:MOST_CLUSTERS]
    part = np.full(len(n_errors), -1)
    own = largest[n_errors[largest] >= ENOUGH]
    part[own] = np.arange(len(own))
    of_series = part[cluster]
    if n_known[of_series < 0].sum() < ENOUGH and len(own):
        of_series[of_series < 0] = 0  # they are too few for a group, and go with the largest one
    group, n_groups = np.empty(len(size), dtype=np.int64), 0
    for one in np.unique(of_series):
        members = np.flatnonzero(of_series == one)
        members = members[np.argsort(size[members], kind="stable")]
        n = n_known[members]
        n_bands = int(np.clip(n.sum() // ENOUGH, 1, MOST_BANDS))
        band = (np.cumsum(n) - n) * n_bands // n.sum()
        # A series without errors goes with the last one before it that has some, or with the first.
        like = np.maximum.accumulate(np.where(n > 0, np.arange(len(n)), np.argmax(n > 0)))
        group[members] = n_groups + np.unique(band[like], return_inverse=True)[1]
        n_groups = int(group[members].max()) + 1
    return group


def _step_units(residuals: NDArray[Any], n_known: IntArray) -> FloatArray:
    """Mean absolute error of each step; of one without errors that of the step before, grown, or after."""
    sums = np.array([np.nansum(np.abs(residuals[:, :, k]), dtype=np.float64) for k in range(len(n_known))])
    unit = sums / np.maximum(n_known, 1)
    some = np.flatnonzero(n_known)
    steps = np.arange(len(unit))
    nearest = some[np.maximum(np.searchsorted(some, steps, side="right") - 1, 0)]
    unit = unit[nearest] * np.sqrt(np.maximum(steps + 1, nearest + 1) / (nearest + 1))
    return np.where(unit > 0.0, unit, 1.0)


def _spreads(
    residuals: NDArray[Any], unit: FloatArray, group: IntArray, chunk: IntArray
) -> tuple[FloatArray, FloatArray]:
    """How large each series' errors are, a share its own and the rest its group's.

    Returns
    -------
    of_all : (T,) float64
        By all its errors.
    without : (T, C) float64
        By those outside each chunk of time, for the errors inside it: an error does not judge itself.
    """
    C = int(chunk.max()) + 1
    total, n = np.zeros((2, len(residuals), C))
    for c in range(C):
        for p in np.flatnonzero(chunk == c):
            sizes = np.abs(residuals[:, p].astype(np.float64)) / unit
            there = ~np.isnan(sizes)
            count = there.sum(axis=1)
            total[:, c] += np.where(there, sizes, 0.0).sum(axis=1) / np.maximum(count, 1)
            n[:, c] += count > 0
    total, n = (
        np.column_stack([own.sum(axis=1), own.sum(axis=1, keepdims=True) - own]) for own in (total, n)
    )
    of_group = np.bincount(group, total[:, 0]) / np.maximum(np.bincount(group, n[:, 0]), 1.0)
    prior = OWN_PERIODS * np.where(of_group > 0.0, of_group, 1.0)[group]
    spread = (total + prior[:, None]) / (n + OWN_PERIODS)
    return spread[:, 0], spread[:, 1:]


def conformal(errors: FloatArray, n_periods: int) -> FloatArray:
    """Return quantiles of one more error than these, which rise; a normal tail goes on from the outermost.

    As errors of one period are alike, they count as no more than three a period do.
    """
    n, p = len(errors), np.array(PROBABILITIES)
    outside = np.minimum(p, 1.0 - p)
    outside -= (1.0 - outside) * max(1.0 / n, 1.0 / (3 * n_periods))
    rank = np.floor(outside * n + 1e-9).astype(np.int64)  # so many errors lie further out
    found = np.where(p < 0.5, errors[np.clip(rank, 0, n - 1)], errors[n - 1 - np.clip(rank, 0, n - 1)])
    middle = float(np.median(errors))
    outermost = np.where(p < 0.5, middle - errors[0], errors[-1] - middle)
    if n < 3:
        middle, outermost = 0.0, np.full(len(p), np.abs(errors).max())
    tail = np.maximum(np.abs(ndtri(p)) / ndtri(1.0 - 1.0 / (max(n, 2) + 1)), 1.0)
    found = np.where(outside < 0.0, middle + np.sign(p - 0.5) * outermost * tail, found)
    found[p == 0.5] = middle
    return np.maximum.accumulate(found)
