"""How wrong forecasts are: each series in its own unit, and all values together."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from benchmarks.forecasting.sets import ForecastSet
from ccmtl_core.base.types import FloatArray, IntArray
from ccmtl_core.forecasting.metrics import bias, changes, rmsse, wape


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
    y, of_totals = data.held_out, None
    if data.group is not None:
        sums = [_totals(values, data.group, data.n_periods_in_total) for values in (y, yhat)]
        of_totals = float(wape(sums[0], sums[1]))
    unit = changes(data.panel)[1]
    return Scores(float(rmsse(y, yhat, unit)), float(wape(y, yhat)), float(bias(y, yhat)), of_totals)


def _totals(values: FloatArray, group: IntArray, n_periods: int) -> FloatArray:
    """Sums by group and by so many consecutive periods."""
    T, h = values.shape
    by_span = values.reshape(T, h // n_periods, n_periods).sum(axis=2)
    totals = np.zeros((int(group.max()) + 1, by_span.shape[1]))
    np.add.at(totals, group, by_span)
    return totals
