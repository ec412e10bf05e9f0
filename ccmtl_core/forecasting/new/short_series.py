"""Forecast series of a panel that begin late by what the others tell: few rows tell no weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from ccmtl_core.base.types import FloatArray, IntArray
from ccmtl_core.forecasting.calibration.range_table import RangeTable
from ccmtl_core.forecasting.calibration.residuals import dense_values
from ccmtl_core.forecasting.fitted.forecast_model import ForecastModel
from ccmtl_core.forecasting.new.first_ranges import ORIGINS, first_ranges
from ccmtl_core.forecasting.new.histories import Histories
from ccmtl_core.forecasting.new.levels import LEAST_LIKE
from ccmtl_core.forecasting.new.like_products import Alike
from ccmtl_core.forecasting.new.posterior_weights import Prior
from ccmtl_core.forecasting.new.product_models import product_models
from ccmtl_core.series.columns import SeriesColumns
from ccmtl_core.series.panel import SeriesPanel

ENOUGH = 8
"""Values that a series has at least whose own rows tell its weights."""


def with_short_series(
    forecaster: ForecastModel, panel: SeriesPanel, columns: SeriesColumns | None
) -> ForecastModel:
    """Return the forecaster with weights, scales and ranges for series with few values.

    Of up to a horizon of values, or fewer than eight, weights are the mean of those of all other series,
    moved as far as rows of their own tell, and scales are partly what the others' are beside their levels.
    One that has not changed yet is forecast as the others too, unless all is zero. Ranges of these, and of
    all with less history than a row looks back to, hold what came after so few values of the others.

    Parameters
    ----------
    forecaster : ForecastModel
        As it was fitted.
    panel, columns
        What it was fitted to.

    Returns
    -------
    ForecastModel
        The same for all other series; ``report["n_short"]`` counts those with other weights.
    """
    h, n_values, origin = forecaster.horizon, np.diff(panel.offsets), int(panel.period.max())
    R = forecaster.features.reach + (ORIGINS + 1) * h
    R = min(R, origin - int(panel.period.min()) + 1)
    tail = dense_values(panel, origin - R + 1, R)
    least = max(h + 1, ENOUGH)
    many = n_values >= max(least, forecaster.features.warm_up)
    short = (n_values < max(least, forecaster.features.warm_up)) & ~np.isnan(tail).all(axis=1)
    like = many & (origin - forecaster.last_period < h)
    if not short.any() or np.isnan(forecaster.constant[like]).sum() < LEAST_LIKE:
        return replace(forecaster, report={**forecaster.report, "n_short": 0})
    known, prior = Histories(panel.unique_ids, tail, origin, short, like), Prior.of(forecaster, like)
    alike = Alike.of(forecaster, known, pl.DataFrame(), prior.weights)
    rows = np.flatnonzero(short)
    ids, own, of_like = [panel.unique_ids[t] for t in rows], tail[rows], alike.of_new()
    made = product_models(forecaster, own, ids, origin, of_like, prior, columns, fill=False)
    ranges = first_ranges(alike, made, own, of_like, prior, columns, fill=False)
    fewest = (n_values[rows] < least) | ~np.isnan(made.constant)
    model, few = forecaster.model, rows[fewest]
    weights, intercept = model.weights.copy(), model.intercept.copy()
    scale, constant = forecaster.scale.copy(), forecaster.constant.copy()
    weights[few], intercept[few] = made.model.weights[fewest], made.model.intercept[fewest]
    scale[few], constant[few] = made.scale[fewest], made.constant[fewest]
    spread = ranges.spread * made.scale / scale[rows]
    return replace(
        forecaster,
        model=replace(model, weights=weights, intercept=intercept),
        scale=scale,
        constant=constant,
        ranges=_joined(forecaster.ranges, ranges.quantiles, rows, ranges.group, spread),
        report={**forecaster.report, "n_short": len(few)},
    )


def _joined(
    table: RangeTable, quantiles: FloatArray, rows: IntArray, group: IntArray, spread: FloatArray
) -> RangeTable:
    """The table with more quantiles, and some series in groups of these."""
    groups, spreads = table.group.copy(), table.spread.copy()
    groups[rows], spreads[rows] = group, spread
    if table.size is None or table.grid is None:
        return RangeTable(quantiles, groups, spreads)
    size = table.size.copy()
    size[rows] = np.nan
    values = None if np.isnan(size).all() else table.values
    return RangeTable(quantiles, groups, spreads, values, size, np.where(np.isnan(size), 0.0, table.grid))
