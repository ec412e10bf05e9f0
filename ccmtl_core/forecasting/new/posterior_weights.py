"""Find the weights of products with few rows: the mean of those of others, moved as far as the rows tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ccmtl_core.base.types import BoolArray, FloatArray, IntArray
from ccmtl_core.forecasting.fitted.forecast_model import ForecastModel
from ccmtl_core.forecasting.new.histories import MOST_TARGETS, means, panel_of
from ccmtl_core.forecasting.row_maker import RowMaker
from ccmtl_core.forecasting.series_rows import row_totals
from ccmtl_core.series.columns import SeriesColumns

AT_A_TIME = 512
"""Products whose weights are found at a time."""
LEAST_VARIANCE = 1e-8
"""Of the largest variance of weights: what they vary by in every direction."""


class Prior(NamedTuple):
    """What weights are before a product's own rows are seen: normal around the mean of its like.

    Parameters
    ----------
    weights : (T, P + 1) float64
        Of the forecaster's products, and what is left of their intercepts, which rise with their levels in
        units of their scales, ``of_level`` times.
    root : (P + 1, P + 1) float64
        L, where L Lᵀ is the covariance of the weights of products that vary.
    noise : float
        Variance of a row.
    of_level : float
        See ``weights``.
    """

    weights: FloatArray
    root: FloatArray
    noise: float
    of_level: float

    @classmethod
    def of(cls, forecaster: ForecastModel, among: BoolArray) -> Prior:
        """Return what the weights of some of a forecaster's products, (T,) bool, let expect of others."""
        model, varies = forecaster.model, among & np.isnan(forecaster.constant)
        level = np.nan_to_num(means(forecaster.tail)) / forecaster.scale
        square = float(level[varies] @ level[varies])
        of_level = float(model.intercept[varies] @ level[varies]) / square if square > 0.0 else 0.0
        weights = np.concatenate([model.weights, (model.intercept - of_level * level)[:, None]], axis=1)
        apart = weights[varies] - weights[varies].mean(axis=0) if varies.any() else weights[varies]
        values, vectors = np.linalg.eigh(apart.T @ apart / max(len(apart) - 1, 1))
        root = vectors * np.sqrt(np.maximum(values, LEAST_VARIANCE * values[-1]))
        return cls(weights, root, float(forecaster.report.get("error", 1.0)) ** 2, of_level)


def move(
    weights: FloatArray,
    moving: IntArray,
    forecaster: ForecastModel,
    prior: Prior,
    own: FloatArray,
    filled: FloatArray,
    scale: FloatArray,
    level: FloatArray,
    origin: int,
    ids: Sequence[str],
    columns: SeriesColumns | None,
) -> None:
    """Move weights from those of like products to their posterior mean, given rows of own targets.

    The rows of one target, one of each step, count as one, as they share its noise.

    Parameters
    ----------
    weights : (n, P + 1) float64
        Of all new products, as a :class:`Prior` holds them; those that move are written.
    moving : (m,) int64
        Places of these among all.
    forecaster, prior, columns
        What the weights are moved from, and what is known beside the values.
    own, filled : (n, R) float64
        Own values up to ``origin``, and these after what is borrowed; NaN where not known.
    scale, level : (n,) float64
        Unit of each product, and its level in this unit.
    origin : int
        The newest period.
    ids : sequence of n str
    """
    features, h, R = forecaster.features, forecaster.horizon, own.shape[1]
    begins = (~np.isnan(filled)).argmax(axis=1)
    warm = begins + np.minimum(features.warm_up, (R - begins) // 2) - 1
    first = np.maximum.reduce([(~np.isnan(own)).argmax(axis=1), warm, np.full(len(own), R - MOST_TARGETS)])
    noise, L = prior.noise * h, prior.root
    for start in np.unique(first[moving]):
        together = moving[first[moving] == start]
        for low in range(0, len(together), AT_A_TIME):
            some = together[low : low + AT_A_TIME]
            panel = panel_of(filled[some], origin, [ids[t] for t in some], forecaster.frequency)
            origins = np.arange(origin + 1 - R + start, panel.period.max())
            if not len(origins):
                continue
            maker = RowMaker(panel, features, h, origins, scale[some], columns=columns)
            gram, xty, _, x_sum, y_sum, n_rows = (part[0] for part in row_totals(maker, panel, features))
            gram = np.concatenate([gram, x_sum[:, None, :]], axis=1)
            last = np.concatenate([x_sum, n_rows[:, None]], axis=1)
            gram = np.concatenate([gram, last[:, :, None]], axis=2)
            xty = np.concatenate([xty, y_sum[:, None]], axis=1)
            xty -= last * (prior.of_level * level[some])[:, None]
            xty -= np.einsum("tpq,tq->tp", gram, weights[some])
            precision = L.T @ gram @ L / noise + np.eye(len(L))
            weights[some] += np.linalg.solve(precision, (xty @ L / noise)[:, :, None])[:, :, 0] @ L.T
