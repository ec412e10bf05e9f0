"""Errors of forecasts of past blocks of time, each by a model that knew nothing after the origin."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ccmtl_core.base.types import FloatArray
from ccmtl_core.forecasting.row_maker import RowMaker
from ccmtl_core.model.ccmtl_model import CCMTLModel, predict_rows
from ccmtl_core.series.panel import SeriesPanel

MOST_RESIDUALS = 2**25
"""Errors that are kept, those of the newest periods."""


def rolling_residuals(
    maker: RowMaker, n_series: int, n_blocks: int, model_before: Callable[[int], CCMTLModel]
) -> tuple[NDArray[np.float32], int]:
    """Forecast each block of rows but the first with the newest model that knows no target after the origin.

    Parameters
    ----------
    maker : RowMaker
        Makes the rows.
    n_series : int
        T.
    n_blocks : int
        Blocks of targets that it has.
    model_before : function of int
        Returns the model that knows the blocks before one.

    Returns
    -------
    residuals : (T, N, h) float32
        Value less forecast, in units of each series, by target period (the newest N) and step; NaN where
        there is no row, or no model that is old enough.
    first : int
        The first of these periods.
    """
    h = maker.horizon
    models = [model_before(b) for b in range(1, n_blocks)]
    knows_before = np.array([maker.block(b)[0] for b in range(1, n_blocks)])
    first = knows_before[0] if models else maker.high + 1
    first = int(max(first, maker.high + 1 - max(1, MOST_RESIDUALS // (n_series * h))))
    residuals = np.full((n_series, maker.high + 1 - first, h), np.nan, dtype=np.float32)
    for piece in maker.pieces(range(n_series), (first, maker.high)) if models else ():
        made = maker.made(piece)
        newest = np.searchsorted(knows_before, made.rows.period - made.rows.step + 1, side="right") - 1
        for m in np.unique(newest[newest >= 0]):
            own = newest == m
            task, period, step = made.task[own], made.rows.period[own] - first, made.rows.step[own] - 1
            yhat = predict_rows(models[m].weights, task, made.rows.X[own], models[m].intercept)
            residuals[task, period, step] = made.rows.y[own] - yhat
    return residuals, first


def dense_values(panel: SeriesPanel, first: int, n_periods: int) -> FloatArray:
    """Return the values of consecutive periods, (T, N); NaN where there is none."""
    values = np.full((panel.n_series, n_periods), np.nan)
    inside = (panel.period >= first) & (panel.period < first + n_periods)
    values[panel.series_index[inside], panel.period[inside] - first] = panel.values[inside]
    return values
