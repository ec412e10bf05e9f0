"""Quantiles of the values of series that are often zero, for each height of the forecast."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ccmtl_core.base.types import BoolArray, FloatArray, IntArray
from ccmtl_core.forecasting.calibration.error_ranges import (
    ENOUGH,
    FEW,
    MOST_ERRORS,
    conformal,
    mean_size,
    range_table,
)
from ccmtl_core.forecasting.calibration.range_table import HEIGHTS, PROBABILITIES, RangeTable, place_of
from ccmtl_core.forecasting.calibration.residuals import dense_values
from ccmtl_core.kernels.grouping import group_sums
from ccmtl_core.series.panel import SeriesPanel

OFTEN = 0.1
"""Share of values that are zero from which on a series is told of by its values."""
NEWEST, MANY = 3, 10_000
"""One part in three of the periods counts, the newest, if so many errors of a step remain: the models of the
others had less to learn from, and were further off."""
_MOST_VALUES = 2**22
_LARGEST_WHOLE = 2.0**53


class Sparse(NamedTuple):
    """Series that are often zero.

    Parameters
    ----------
    size : (T,) float64
        The mean of the values that are not zero; NaN for series that are not often zero.
    grid : (T,) float64
        What the values of such a series are multiples of; 0 where they are any numbers.
    """

    size: FloatArray
    grid: FloatArray


def sparse_series(panel: SeriesPanel) -> Sparse:
    """Find the series that are often zero, sometimes not, and never negative.

    Parameters
    ----------
    panel : SeriesPanel
        T series.

    Returns
    -------
    Sparse

    Examples
    --------
    >>> sparse_series(SeriesPanel(("a", "b"), [0, 3, 6], [0, 1, 2] * 2, [0.0, 6.0, 12.0, 1.0, 2.0, 1.0], "D"))
    Sparse(size=array([ 9., nan]), grid=array([6., 0.]))
    """
    own, values, T = panel.series_index, panel.values, panel.n_series

    def count(which: BoolArray) -> IntArray:
        return np.bincount(own[which], minlength=T)

    n, n_zero = np.diff(panel.offsets), count(values == 0.0)
    told = (n_zero >= OFTEN * n) & (n_zero < n) & (count(values < 0.0) == 0)
    size = np.where(told, group_sums(own, values, T) / np.maximum(n - n_zero, 1), np.nan)
    whole = told & (count((values != np.round(values)) | (values > _LARGEST_WHOLE)) == 0)
    some, grid = whole[own], np.zeros(T, dtype=np.int64)
    np.gcd.at(grid, own[some], values[some].astype(np.int64))
    return Sparse(size, grid.astype(np.float64))


def ranges_of(
    panel: SeriesPanel, scale: FloatArray, residuals: NDArray[np.float32], first: int, cluster: IntArray
) -> RangeTable:
    """Return the ranges that errors of past forecasts tell of.

    Parameters
    ----------
    panel : SeriesPanel
        T series.
    scale : (T,) float64
        The unit of each.
    residuals : (T, N, h) float32
        Value less forecast in these units, by target period and step; NaN where none.
    first : int
        The first of the N periods.
    cluster : (T,) int64
        Series with the same number share one model.

    Returns
    -------
    RangeTable
    """
    T, N, h = residuals.shape
    n_newest = min(max(-(-N // NEWEST), h), N)
    if T * n_newest < MANY:
        n_newest = N
    table = range_table(residuals, mean_size(panel, scale), cluster, n_newest)
    residuals, first = residuals[:, N - n_newest :], first + N - n_newest
    size, grid = sparse_series(panel)
    some = np.flatnonzero(~np.isnan(size) & ~np.isnan(residuals).all(axis=(1, 2)))
    if not len(some):
        return table
    drawn = some[:: 1 + residuals[0].size * len(some) // _MOST_VALUES]
    y = dense_values(panel, first, residuals.shape[1])[drawn, :, None]
    yhat = y - residuals[drawn] * scale[drawn, None, None]
    unit = size[drawn, None, None]
    return replace(table, values=_values(yhat / unit, y / unit), size=size, grid=grid)


def _values(height: FloatArray, value: FloatArray) -> FloatArray:
    """What :class:`RangeTable` holds of values (n, N, 1) beside their forecasts (n, N, h)."""
    h, rng = height.shape[2], np.random.default_rng(0)
    known = ~np.isnan(height)
    x, step = height[known], np.nonzero(known)[2]
    v = np.broadcast_to(value, height.shape)[known]
    place = place_of(x)
    at_least = np.cumsum(np.bincount(place.astype(np.int64), minlength=len(HEIGHTS))[::-1])[::-1]
    top = int(np.flatnonzero(at_least >= min(FEW * h, len(v)))[-1])  # of higher forecasts are too few
    v = v / np.maximum(x / HEIGHTS[top], 1.0)
    # Each counts for one of the two heights that it lies between, the more likely the nearer it is.
    cell = np.minimum((place + rng.random(len(v))).astype(np.int64), top) * h + step
    order = np.argsort(cell, kind="stable")
    v, bounds = v[order], np.concatenate([[0], np.cumsum(np.bincount(cell, minlength=(top + 1) * h))])
    found = np.empty((len(HEIGHTS), h, len(PROBABILITIES)))
    for k in range(top + 1):
        for s in range(h):
            near = _near(bounds, k, s, h)
            each = np.concatenate([v[start:stop] for start, stop in near])
            above = np.sort(each[each > 0.0])
            found[k, s] = (len(each) - len(above)) / (len(each) + 1), *np.ones(len(PROBABILITIES) - 1)
            if len(above):
                told = conformal(above[:: len(above) // MOST_ERRORS + 1], len(above))
                found[k, s, 1:] = np.maximum(told, above[0])[1:]
    found[top + 1 :] = found[top]
    found[top + 1 :, :, 1:] *= HEIGHTS[top + 1 :, None, None] / HEIGHTS[top]
    return found


def _near(bounds: IntArray, k: int, s: int, h: int) -> list[tuple[int, int]]:
    """Where the values of a height and step lie, with those beside it until they are enough."""
    n_heights = (len(bounds) - 1) // h
    for width in range(h + n_heights):
        steps = min(width, h - 1)
        first, last = max(s - steps, 0), min(s + steps, h - 1)
        lower, upper = max(k - (width - steps), 0), min(k + (width - steps), n_heights - 1)
        found = [(int(bounds[j * h + first]), int(bounds[j * h + last + 1])) for j in range(lower, upper + 1)]
        if sum(stop - start for start, stop in found) >= ENOUGH:
            break
    return found
