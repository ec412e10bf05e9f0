"""How wrong forecasts are: each series in its own unit, and all values together."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from benchmarks.forecasting.sets import ForecastSet
from ccmtl_core.base.types import FloatArray, IntArray


class Scores(NamedTuple):
    """Errors of forecasts.

    Parameters
    ----------
    rmsse : float
        Root mean squared error of each series over the root mean square of the changes of its history; mean
        over the series whose history changes.
    wape : float
        Sum of absolute errors over the sum of absolute values.
    bias : float
        Sum of forecasts less values over the sum of absolute values: negative where forecasts are too low.
    wape_of_totals : float or None
        Of the sums over a store or category and a week.
    """

    rmsse: float
    wape: float
    bias: float
    wape_of_totals: float | None


def score(data: ForecastSet, yhat: FloatArray) -> Scores:
    """Score forecasts (T, h) of what was held out."""
    error, size = yhat - data.held_out, np.abs(data.held_out).sum()
    of_totals = None
    if data.group is not None:
        total = _totals(data.held_out, data.group, data.n_periods_in_total)
        forecast = _totals(yhat, data.group, data.n_periods_in_total)
        of_totals = float(np.abs(forecast - total).sum() / np.abs(total).sum())
    rmsse = float(np.nanmean(series_rmsse(data, yhat)))
    return Scores(rmsse, float(np.abs(error).sum() / size), float(error.sum() / size), of_totals)


def series_rmsse(data: ForecastSet, yhat: FloatArray) -> FloatArray:
    """RMSSE of each series, (T,); NaN for one whose history never changes."""
    unit = np.sqrt((np.diff(data.history, axis=1) ** 2).mean(axis=1))
    error = np.sqrt(((yhat - data.held_out) ** 2).mean(axis=1))
    each: FloatArray = np.divide(error, unit, out=np.full(len(unit), np.nan), where=unit > 0.0)
    return each


def _totals(values: FloatArray, group: IntArray, n_periods: int) -> FloatArray:
    """Sums by group and by so many consecutive periods."""
    T, h = values.shape
    by_span = values.reshape(T, h // n_periods, n_periods).sum(axis=2)
    totals = np.zeros((int(group.max()) + 1, by_span.shape[1]))
    np.add.at(totals, group, by_span)
    return totals
