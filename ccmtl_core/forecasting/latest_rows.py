"""Make the rows that forecast, from the newest values of each series."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ccmtl_core.base.arguments import check_integer, check_kind
from ccmtl_core.base.arrays import as_float64, as_integers
from ccmtl_core.base.exceptions import DataError
from ccmtl_core.base.types import BoolArray, FloatArray, IntArray
from ccmtl_core.forecasting.features import RowFeatures
from ccmtl_core.forecasting.row_maker import MAX_HORIZON, check_panel, checked_scale
from ccmtl_core.kernels.series.row_kernel import fill_latest
from ccmtl_core.series.calendar import Frequency
from ccmtl_core.series.panel import SeriesPanel


def latest_rows(
    tail: ArrayLike,
    features: RowFeatures,
    scale: ArrayLike,
    steps: Sequence[int],
    origin: ArrayLike,
    frequency: Frequency | str,
) -> tuple[FloatArray, BoolArray]:
    """Make the rows that forecast from the newest values of each series.

    Parameters
    ----------
    tail : (T, R)
        Values of consecutive periods up to the origin, newest last, NaN where not known; of more than
        ``features.reach`` the newest are taken.
    features : RowFeatures
        P features.
    scale : (T,)
        What values are divided by.
    steps : sequence of H int
        Steps from the origin, such as ``range(1, 9)``.
    origin : (T,) integers
        The period of the newest value of each series.
    frequency : Frequency
        What a period is.

    Returns
    -------
    X : (T, H, P) float64
        Without NaN: a lag or level that is not known is the mean of the values of the tail. A series without
        any has zeros.
    known : (T,) bool
        Whether a series has any.

    Raises
    ------
    ParameterError, DataError
        Arguments of other shapes or out of their range.

    Examples
    --------
    >>> latest_rows([[np.nan, 2.0, 6.0]], RowFeatures(lags=(1, 3)), [2.0], [1], [0], "D")
    (array([[[3., 2.]]]), array([ True]))
    """
    check_kind(features, "features", RowFeatures)
    tails = as_float64(tail, "tail")
    if tails.ndim != 2 or tails.shape[1] == 0:
        raise DataError(f"tail must be (T, R) with R at least 1; got {tails.shape}")
    T = len(tails)
    units, last = checked_scale(scale, T), as_integers(origin, "origin")
    if last.shape != (T,):
        raise DataError(f"origin must be ({T},); got {last.shape}")
    for step in steps:
        check_integer(step, "steps", 1, MAX_HORIZON)
    ahead = np.array(list(steps), dtype=np.int64)
    distinct, place = np.unique(last, return_inverse=True)
    periods = (distinct[:, None] + ahead).ravel()
    dates = features.calendar_values(periods, Frequency(frequency)).reshape(len(distinct), len(ahead), -1)
    X, known = np.zeros((T, len(ahead), len(features.names))), np.zeros(T, dtype=np.bool_)
    if X.size:
        newest = np.ascontiguousarray(tails[:, -features.reach :] / units[:, None])
        fill_latest(newest, ahead, np.ascontiguousarray(dates[place]), features.plan(), X, known)
    return X, known


def latest_tails(panel: SeriesPanel, reach: int) -> tuple[FloatArray, IntArray]:
    """Return the newest values of each series, as :func:`latest_rows` takes them.

    Parameters
    ----------
    panel : SeriesPanel
        T series.
    reach : int
        Most periods up to the last one of each series.

    Returns
    -------
    tail : (T, R) float64
        Newest last, NaN where not known; R is at most ``reach`` and no more than the longest series spans.
    last_period : (T,) int64
        That of the newest value; the panel's last one of a series without values.

    Examples
    --------
    >>> latest_tails(SeriesPanel(("a", "b"), [0, 2, 3], [4, 6, 6], [1.0, 2.0, 3.0], "D"), 5)
    (array([[ 1., nan,  2.],
           [nan, nan,  3.]]), array([6, 6]))
    """
    check_integer(reach, "reach", 1)
    some = np.diff(check_panel(panel).offsets) > 0
    newest = np.full(panel.n_series, panel.period.max() if len(panel.period) else 0)
    newest[some] = panel.period[panel.offsets[1:][some] - 1]
    back = newest[panel.series_index] - panel.period
    R = min(reach, int(back.max(initial=0)) + 1)
    near = back < R
    tail = np.full((panel.n_series, R), np.nan)
    tail[panel.series_index[near], R - 1 - back[near]] = panel.values[near]
    return tail, newest
