"""Say how far forecasts, quantiles and ranges are from what happened: by series, by step, or over all.

Values come as (T, h): a row for each series, a column for each step. What is not known is NaN and does not
count; the result is NaN where nothing is left. "all" means over series where a series has a mean of its own
(MASE and RMSSE), and over all values elsewhere. Formulas and signs are those of ``utilsforecast``, but that
the bias is a share of what was sold.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ccmtl_core.base.arguments import check_integer
from ccmtl_core.base.arrays import as_float64, is_real
from ccmtl_core.base.exceptions import DataError, ParameterError
from ccmtl_core.base.types import FloatArray
from ccmtl_core.kernels.grouping import group_sums
from ccmtl_core.series.panel import SeriesPanel

By = Literal["series", "step", "all"]
"""What a number is for: each series (T,), each step (h,), or everything ()."""
_AXES = {"series": 1, "step": 0, "all": None}


def wape(y: ArrayLike, yhat: ArrayLike, by: By = "all") -> FloatArray:
    """Absolute errors as a share of the absolute values: sum over sum.

    Parameters
    ----------
    y, yhat : (T, h)
        Values and their forecasts.
    by : {"all", "series", "step"}
        What each number is for.

    Returns
    -------
    (), (T,) or (h,) float64

    Examples
    --------
    >>> wape([[2.0, 4.0], [0.0, 2.0]], [[3.0, 4.0], [0.0, 1.0]], "series").round(3)
    array([0.167, 0.5  ])
    """
    y, error = _errors(y, yhat)
    return _ratio(np.abs(error), np.abs(y), by)


def bias(y: ArrayLike, yhat: ArrayLike, by: By = "all") -> FloatArray:
    """Forecasts less values as a share of the absolute values: above zero where forecasts are too high.

    Takes and returns what :func:`wape` does.

    Examples
    --------
    >>> bias([[2.0, 2.0]], [[3.0, 2.0]]).item()
    0.25
    """
    y, error = _errors(y, yhat)
    return _ratio(error, np.abs(y), by)


def mase(y: ArrayLike, yhat: ArrayLike, unit: ArrayLike, by: By = "all") -> FloatArray:
    """Mean absolute error in units of the mean absolute change of each series before.

    Parameters
    ----------
    y, yhat, by
        As in :func:`wape`.
    unit : (T,) or (T, h)
        The first that :func:`changes` returns; a series where it is zero does not count.

    Returns
    -------
    As :func:`wape`.

    Examples
    --------
    >>> mase([[2.0, 4.0], [9.0, 9.0]], [[3.0, 1.0], [9.0, 8.0]], [2.0, 1.0], "series")
    array([1. , 0.5])
    """
    _, error = _errors(y, yhat)
    return _over_series(np.abs(_in_units(error, unit)), by)


def rmsse(y: ArrayLike, yhat: ArrayLike, unit: ArrayLike, by: By = "all") -> FloatArray:
    """Root mean squared error in units of the root mean square of the changes of each series before.

    Parameters
    ----------
    y, yhat, by
        As in :func:`wape`. By step the mean below the root is over series.
    unit : (T,) or (T, h)
        The second that :func:`changes` returns; a series where it is zero does not count.

    Returns
    -------
    As :func:`wape`.

    Examples
    --------
    >>> rmsse([[2.0, 4.0], [9.0, 9.0]], [[5.0, 8.0], [9.0, 9.0]], [2.5, 1.0], "series").round(3)
    array([1.414, 0.   ])
    """
    _, error = _errors(y, yhat)
    squares = _in_units(error, unit) ** 2
    if by == "all":
        return _mean(np.sqrt(_mean(squares, "series")), "all")
    return np.sqrt(_mean(squares, by))


def pinball(y: ArrayLike, quantile: ArrayLike, probability: float, by: By = "all") -> FloatArray:
    """Mean loss of a forecast quantile: what lies above it counts p, what lies below 1 − p.

    Parameters
    ----------
    y, quantile, by
        As in :func:`wape`.
    probability : float
        p, 0 < p < 1.

    Returns
    -------
    As :func:`wape`.

    Examples
    --------
    >>> pinball([[1.0, 5.0]], [[3.0, 3.0]], 0.9).item()
    1.0
    """
    if not (is_real(probability) and 0.0 < probability < 1.0):
        raise ParameterError(f"probability must lie in (0, 1), not {probability!r}")
    _, error = _errors(y, quantile)
    return _mean(np.maximum(-probability * error, (1.0 - probability) * error), by)


def winkler(y: ArrayLike, lower: ArrayLike, upper: ArrayLike, level: float, by: By = "all") -> FloatArray:
    """Mean width of ranges, and for a value outside 2 / (1 − level / 100) times its distance beside.

    Parameters
    ----------
    y, lower, upper, by
        As in :func:`wape`.
    level : float
        What share of values the ranges shall hold, in percent: above 0, below 100.

    Returns
    -------
    As :func:`wape`.

    Examples
    --------
    >>> winkler([[1.0, 5.0]], [[0.0, 0.0]], [[4.0, 4.0]], 80).item()
    9.0
    """
    if not (is_real(level) and 0.0 < level < 100.0):
        raise ParameterError(f"level must lie in (0, 100), not {level!r}")
    y, above = _errors(y, lower)
    below = _errors(y, upper)[1]
    outside = np.maximum(above, 0.0) + np.maximum(-below, 0.0)
    return _mean(below - above + 2.0 / (1.0 - level / 100.0) * outside, by)


def coverage(y: ArrayLike, lower: ArrayLike, upper: ArrayLike, by: By = "all") -> FloatArray:
    """Share of values that lie in their ranges, ends included; returned as by :func:`wape`.

    Examples
    --------
    >>> coverage([[0.0, 5.0]], [[0.0, 0.0]], [[4.0, 4.0]]).item()
    0.5
    """
    y, above = _errors(y, lower)
    below = _errors(y, upper)[1]
    inside = ((above <= 0.0) & (below >= 0.0)).astype(np.float64)
    return _mean(np.where(np.isnan(above + below), np.nan, inside), by)


def mean(values: ArrayLike, by: By = "all") -> FloatArray:
    """Mean of what is known of values (T, h); returned as by :func:`wape`.

    Examples
    --------
    >>> mean([[1.0, 3.0], [np.nan, 5.0]], "step")
    array([1., 4.])
    """
    return _mean(as_float64(values, "values"), by)


def quotient(over: ArrayLike, under: ArrayLike) -> FloatArray:
    """Return quotients, NaN where what is divided by is not above zero."""
    return np.asarray(over / np.where(np.asarray(under) > 0.0, under, np.nan))


def randomised_pit(y: ArrayLike, quantiles: ArrayLike, probabilities: ArrayLike, seed: int = 0) -> FloatArray:
    """Where each value lies among its forecast quantiles, as a probability; uniform where they are right.

    Between two quantiles it is interpolated; beyond the outermost, and where several quantiles equal the
    value, as zeros do, it is drawn from the probabilities that are possible.

    Parameters
    ----------
    y : (T, h)
        Values.
    quantiles : (T, h, Q)
        Rising in the last axis.
    probabilities : (Q,)
        Rising, in (0, 1).
    seed : int
        Of the draws.

    Returns
    -------
    (T, h) float64
        In [0, 1]; NaN where a value or a quantile is not known.

    Examples
    --------
    >>> randomised_pit([[3.0]], [[[1.0, 2.0, 4.0]]], [0.1, 0.5, 0.9]).round(3)
    array([[0.7]])
    """
    y, values = as_float64(y, "y"), as_float64(quantiles, "quantiles")
    p = as_float64(probabilities, "probabilities")
    if p.ndim != 1 or not len(p) or values.shape != (*y.shape, len(p)):
        raise DataError(f"quantiles must be {y.shape} and one for each probability; got {values.shape}")
    Q, edges = len(p), np.concatenate([[0.0], p, [1.0]])
    less, at_most = (values < y[..., None]).sum(axis=-1), (values <= y[..., None]).sum(axis=-1)
    share = np.random.default_rng(seed).random(y.shape)
    ties = at_most > less
    start = np.where(ties & (less > 0), edges[np.minimum(less + 1, Q)], edges[less])
    stop = np.where(ties & (at_most < Q), edges[at_most], edges[np.minimum(at_most + 1, Q + 1)])
    between = ~ties & (less > 0) & (less < Q)
    low = np.take_along_axis(values, np.clip(less - 1, 0, Q - 1)[..., None], axis=-1)[..., 0]
    high = np.take_along_axis(values, np.clip(less, 0, Q - 1)[..., None], axis=-1)[..., 0]
    share[between] = ((y - low)[between]) / (high - low)[between]
    found = start + share * (stop - start)
    return np.where(np.isnan(y) | np.isnan(values).any(axis=-1), np.nan, found)


def changes(panel: SeriesPanel, season: int = 1) -> tuple[FloatArray, FloatArray]:
    """Return the units of :func:`mase` and :func:`rmsse`: sizes of the changes over a season in a history.

    Parameters
    ----------
    panel : SeriesPanel
        T series, before what is forecast.
    season : int
        Each value is compared with the one so many entries before it.

    Returns
    -------
    mean_absolute, root_mean_square : (T,) float64
        NaN where a series is too short.

    Examples
    --------
    >>> changes(SeriesPanel(("a",), [0, 3], [0, 1, 2], [1.0, 3.0, 9.0], "D"))
    (array([4.]), array([4.47213595]))
    """
    check_integer(season, "season", least=1)
    same = panel.series_index[season:] == panel.series_index[:-season]
    own = panel.series_index[season:][same]
    size = np.abs(panel.values[season:] - panel.values[:-season])[same]
    n = np.maximum(np.diff(panel.offsets) - season, 0)
    count = np.where(n > 0, n, np.nan)
    T = panel.n_series
    return group_sums(own, size, T) / count, np.sqrt(group_sums(own, size**2, T) / count)


def _errors(y: ArrayLike, yhat: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """The values, NaN where either is not known, and forecast less value."""
    values, forecasts = as_float64(y, "y"), as_float64(yhat, "yhat")
    if values.ndim != 2 or values.shape != forecasts.shape:
        raise DataError(f"values and forecasts must both be (T, h); got {values.shape}, {forecasts.shape}")
    error = forecasts - values
    return np.where(np.isnan(error), np.nan, values), error


def _in_units(error: FloatArray, unit: ArrayLike) -> FloatArray:
    units = as_float64(unit, "unit")
    if units.shape not in (error.shape[:1], error.shape):
        raise DataError(f"unit must be (T,) or (T, h) for errors {error.shape}; got {units.shape}")
    units = units if units.ndim == 2 else units[:, None]
    in_units: FloatArray = error / np.where(units > 0.0, units, np.nan)
    return in_units


def _sums(values: FloatArray, by: By) -> tuple[FloatArray, FloatArray]:
    """Sums of what is known, and how much that is."""
    if by not in _AXES:
        raise ParameterError(f"by must be one of {', '.join(map(repr, _AXES))}, not {by!r}")
    axis = _AXES[by]
    known = ~np.isnan(values)
    return np.asarray(np.where(known, values, 0.0).sum(axis=axis)), np.asarray(known.sum(axis=axis))


def _mean(values: FloatArray, by: By) -> FloatArray:
    return quotient(*_sums(values, by))


def _ratio(over: FloatArray, under: FloatArray, by: By) -> FloatArray:
    return quotient(_sums(over, by)[0], _sums(under, by)[0])


def _over_series(values: FloatArray, by: By) -> FloatArray:
    """Means; over all of the means of series."""
    return _mean(_mean(values, "series"), "all") if by == "all" else _mean(values, by)
