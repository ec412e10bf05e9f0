"""Make the forecaster of products with hardly any values, from these and from what the products are like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ccmtl_core.base.types import FloatArray, IntArray
from ccmtl_core.forecasting.calibration.range_table import RangeTable
from ccmtl_core.forecasting.fitted.forecast_model import ForecastModel
from ccmtl_core.forecasting.new.histories import means, panel_of
from ccmtl_core.forecasting.new.like_products import LikeProducts
from ccmtl_core.forecasting.new.posterior_weights import Prior, move
from ccmtl_core.forecasting.row_maker import constant_values, series_scale
from ccmtl_core.model.ccmtl_model import CCMTLModel
from ccmtl_core.series.columns import SeriesColumns

SEASONS = 4
"""Past seasons whose mean like products are taken to sell where their values end before a new one's."""
WORTH_OF_LIKE = 4.0
"""Changes of its own from value to value that count as much for a product's scale as those of its like."""


def product_models(
    forecaster: ForecastModel,
    own: FloatArray,
    ids: Sequence[str],
    origin: int,
    like: LikeProducts,
    prior: Prior,
    columns: SeriesColumns | None,
    *,
    fill: bool = True,
) -> ForecastModel:
    """Make the forecaster of n products.

    Parameters
    ----------
    forecaster : ForecastModel
        Of others.
    own : (n, R) float64
        Values up to ``origin``; NaN where not known.
    ids : sequence of n str
    origin : int
        The newest period.
    like : LikeProducts
        Of each.
    prior : Prior
        What weights are moved from.
    columns : SeriesColumns, optional
        What the features name beside the values.
    fill : bool
        Whether values before the first are those of like products.

    Returns
    -------
    ForecastModel
        Its ranges are those of like products, which know more of what they sell.
    """
    n_own, h, reach = (~np.isnan(own)).sum(axis=1), forecaster.horizon, forecaster.features.reach
    panel = panel_of(own, origin, ids, forecaster.frequency)
    if fill:
        like = like._replace(history=continued(like.history, forecaster.frequency.season))
    filled = _filled(own, n_own, like, h, reach) if fill else own
    tail = filled[:, -reach:]
    level, scale = np.nan_to_num(means(tail)), series_scale(panel)
    size = np.nan_to_num(means(np.abs(own)))
    zero = (n_own > 0) & (size == 0.0)
    size = np.where(level != 0.0, np.abs(level), np.where(size > 0.0, size, np.abs(like.level)))
    borrowed, n_changes = like.unevenness * size, np.maximum(n_own - 1, 0)
    squares = n_changes * scale**2 + WORTH_OF_LIKE * np.where(borrowed > 0.0, borrowed, scale) ** 2
    scale = np.where(zero & (borrowed > 0.0), borrowed, np.sqrt(squares / (n_changes + WORTH_OF_LIKE)))
    constant = constant_values(panel)
    constant[(n_own <= h) & (constant != 0.0)] = np.nan
    if not np.isnan(forecaster.constant).any():
        constant = np.where(np.isnan(constant), level, constant)
    weights = like.weights.copy()
    moving = np.flatnonzero((n_own > h) & np.isnan(constant))
    if columns is not None and not len(columns.period):  # no row can be made
        moving = moving[:0]
    move(weights, moving, forecaster, prior, own, filled, scale, level / scale, origin, ids, columns)
    return replace(
        forecaster,
        model=CCMTLModel(
            weights[:, :-1],
            tuple(ids),
            forecaster.model.feature_names,
            {},
            weights[:, -1] + prior.of_level * level / scale,
        ),
        scale=scale,
        nonnegative=like.nonnegative & ~(own < 0.0).any(axis=1),
        constant=constant,
        tail=tail,
        last_period=np.full(len(ids), origin),
        ranges=RangeTable(forecaster.ranges.quantiles, like.range_group, like.spread),
        report={"new_products": len(ids)},
        graph=None,
    )


def _filled(own: FloatArray, n_own: IntArray, like: LikeProducts, horizon: int, reach: int) -> FloatArray:
    """Histories (n, R), before the first value those of like products at the level of the product's own.

    Of products that ended before what rows can reach, so are all values that are not known.
    """
    both = ~np.isnan(own) & ~np.isnan(like.history)
    total, of_like = (np.where(both, values, 0.0).sum(axis=1) for values in (own, like.history))
    level_of_like = means(like.history)
    top, below = np.where(n_own > 0, total, like.level), np.where(n_own > 0, of_like, level_of_like)
    usable = (below > 0.0) & (top >= 0.0) & (like.tells | (n_own > horizon) | (n_own == 0))
    ratio = np.divide(top, below, out=np.zeros(len(top)), where=usable)
    flat = np.where(n_own > 0, means(own), like.level)
    brought = np.where(usable[:, None], ratio[:, None] * like.history, flat[:, None])
    ended = np.isnan(own[:, -reach:]).all(axis=1)
    first = np.where(ended, own.shape[1], (~np.isnan(own)).argmax(axis=1))
    return np.where(np.isnan(own) & (np.arange(own.shape[1]) < first[:, None]), brought, own)


def continued(values: FloatArray, season: int) -> FloatArray:
    """Return values (n, R) that go on after the last known one: with means of the same season before.

    Of up to four seasons; where none is known, the mean of the row.

    Examples
    --------
    >>> continued(np.array([[1.0, 5.0, 3.0, 5.0, np.nan, np.nan]]), 2)
    array([[1., 5., 3., 5., 2., 5.]])
    """
    found, R = values.copy(), values.shape[1]
    last = R - 1 - (~np.isnan(values))[:, ::-1].argmax(axis=1)
    for j in range(int(last.min(initial=R)) + 1, R):
        before = found[:, [j - k * season for k in range(1, SEASONS + 1) if j >= k * season]]
        mean = means(before)
        ended = last < j
        found[ended, j] = np.where(np.isnan(mean), means(values), mean)[ended]
    return found
