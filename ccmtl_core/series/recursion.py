"""Forecast several periods ahead: each forecast becomes the newest lag of the next one."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ccmtl_core.base.arguments import check_integer
from ccmtl_core.base.arrays import as_float64, as_shape
from ccmtl_core.base.exceptions import DataError
from ccmtl_core.base.types import FloatArray
from ccmtl_core.model.ccmtl_model import predict_rows

MAX_PERIODS_AHEAD = 2**20
"""More than the hours of a century: a larger horizon is a mistake."""


def recursive_forecast(
    weights_rows: ArrayLike, lags: ArrayLike, h: int, intercept: ArrayLike | None = None
) -> FloatArray:
    """Forecast h periods ahead for m series.

    Parameters
    ----------
    weights_rows : (m, L) float64
        Each series' own weights, "lag_1" first.
    lags : (m, L) float64
        Each series' last L values, newest first; a row with NaN gives NaN.
    h : int
        Periods, from 1 to ``MAX_PERIODS_AHEAD``.
    intercept : (m,) float64, optional
        Each series' own; zero by default.

    Returns
    -------
    (m, h) float64
        The first column equals ``predict_rows`` on the lags bit for bit. Unstable weights can
        make later ones overflow to infinity.

    Raises
    ------
    DataError
        Shapes that differ, or no lags.
    ParameterError
        ``h`` is not an integer in its range.

    Examples
    --------
    >>> recursive_forecast([[0.5, 0.25]], [[4.0, 8.0]], h=2)
    array([[4., 3.]])
    """
    W, window = as_float64(weights_rows, "weights_rows"), as_float64(lags, "lags").copy()
    if W.ndim != 2 or W.shape != window.shape:
        raise DataError(f"weights_rows and lags must both be (m, L); got {W.shape} and {window.shape}")
    if W.shape[1] == 0:
        raise DataError(f"weights_rows and lags must have at least one lag; got {W.shape}")
    added = None if intercept is None else as_shape(intercept, (len(W),), "intercept")
    check_integer(h, "h", 1, MAX_PERIODS_AHEAD)
    every_row = np.arange(len(W))
    forecast = np.empty((len(W), h))
    for step in range(h):
        forecast[:, step] = predict_rows(W, every_row, window, added)
        window[:, 1:] = window[:, :-1].copy()
        window[:, 0] = forecast[:, step]
    return forecast
