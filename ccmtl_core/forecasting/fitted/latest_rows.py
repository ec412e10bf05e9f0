"""Make the rows that forecast, from the newest values of each series."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from ccmtl_core.base.arguments import check_integer, check_kind
from ccmtl_core.base.arrays import MAX_FAULTS, as_float64, as_integers
from ccmtl_core.base.display import quoted
from ccmtl_core.base.exceptions import DataError
from ccmtl_core.base.types import BoolArray, FloatArray, IntArray
from ccmtl_core.forecasting.features import RowFeatures
from ccmtl_core.forecasting.row_maker import (
    MAX_HORIZON,
    check_columns,
    check_panel,
    checked_scale,
    column_places,
)
from ccmtl_core.kernels.series.row_kernel import fill_latest
from ccmtl_core.series.calendar import Frequency
from ccmtl_core.series.columns import SeriesColumns
from ccmtl_core.series.panel import SeriesPanel

FARTHEST = 1e6
"""Times the largest value that it starts from: as far as any forecast goes."""
BEYOND = 10
"""Periods that count as more than they are in how far forecasts go that feed on others."""


def latest_rows(
    tail: ArrayLike,
    features: RowFeatures,
    scale: ArrayLike,
    steps: Sequence[int],
    origin: ArrayLike,
    frequency: Frequency | str,
    *,
    unique_ids: Sequence[str] = (),
    columns: SeriesColumns | None = None,
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
    unique_ids : sequence of T str
        The series, for columns by series.
    columns : SeriesColumns, optional
        What the ``past`` and ``future`` features name.

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
        Arguments of other shapes or out of their range; columns that are not known, by series.

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
    frequency = Frequency(frequency)
    distinct, place = np.unique(last, return_inverse=True)
    periods = (distinct[:, None] + ahead).ravel()
    dates = features.calendar_values(periods, frequency).reshape(len(distinct), len(ahead), -1)[place]
    past, future = columns_beside(columns, features, unique_ids, last, ahead, frequency)
    X, known = np.zeros((T, len(ahead), len(features.names))), np.zeros(T, dtype=np.bool_)
    if X.size:
        newest = np.ascontiguousarray(tails[:, -features.reach :] / units[:, None])
        some = np.flatnonzero(~np.isnan(newest).all(axis=1)).tolist()
        if np.isnan(past[some]).any() or np.isnan(future[some]).any():
            ids = [unique_ids[t] for t in some]
            refuse_missing(
                missing_columns(past[some], future[some], features, ids, last[some], ahead, frequency)
            )
        coming = np.concatenate([dates, future], axis=2)
        fill_latest(newest, past, ahead, coming, features.plan(), X, known)
    return X, known


def columns_beside(
    columns: SeriesColumns | None,
    features: RowFeatures,
    unique_ids: Sequence[str],
    origin: IntArray,
    steps: IntArray,
    frequency: Frequency,
) -> tuple[FloatArray, FloatArray]:
    """Return the columns at the origins (T, C) and at the targets (T, H, C'); NaN where not known."""
    T, H, n_past, n_future = len(origin), len(steps), len(features.past), len(features.future)
    given = check_columns(columns, features, frequency)
    if given is None:
        return np.empty((T, 0)), np.empty((T, H, 0))
    place, chosen = given.places(unique_ids), column_places(given, features)
    past = given.at(place, origin)[:, chosen[:n_past]]
    targets = (origin[:, None] + steps).ravel()
    future = given.at(np.repeat(place, H), targets)[:, chosen[n_past:]]
    return np.ascontiguousarray(past), future.reshape(T, H, n_future)


def missing_columns(
    past: FloatArray,
    future: FloatArray,
    features: RowFeatures,
    unique_ids: Sequence[str],
    origin: IntArray,
    steps: IntArray,
    frequency: Frequency,
) -> pl.DataFrame:
    """Return what is not known of the columns: ``unique_id``, ``ds`` and ``column``, in this order."""
    t, c = np.nonzero(np.isnan(past))
    u, h, d = np.nonzero(np.isnan(future))
    series, period = np.concatenate([t, u]), np.concatenate([origin[t], origin[u] + steps[h]])
    names = [*(features.past[i] for i in c), *(features.future[i] for i in d)]
    frame = pl.DataFrame(
        {
            "unique_id": pl.Series(unique_ids, dtype=pl.String)[series],
            "ds": dated(period, frequency),
            "column": pl.Series(names, dtype=pl.String),
        }
    )
    return frame.unique(maintain_order=True).sort("unique_id", "ds", "column")


def missing_by_series(missing: pl.DataFrame) -> pl.DataFrame:
    """Return what :func:`missing_columns` lists with a row for each series.

    Columns ``unique_id``, ``columns`` (their names), ``n_periods``, ``first`` and ``last``: series that need
    the latest periods first, and of these the ones that need most.

    Examples
    --------
    >>> days = {"unique_id": ["a", "b", "b"], "ds": [7, 8, 9], "column": ["price", "price", "offer"]}
    >>> missing_by_series(pl.DataFrame(days)).rows()
    [('b', ['offer', 'price'], 2, 8, 9), ('a', ['price'], 1, 7, 7)]
    """
    ds = pl.col("ds")
    found = missing.group_by("unique_id").agg(
        columns=pl.col("column").unique().sort(), n_periods=ds.n_unique(), first=ds.min(), last=ds.max()
    )
    return found.sort("last", "n_periods", "unique_id", descending=[True, True, False])


def not_known(columns: Sequence[str], n_periods: int, first: object, last: object) -> str:
    """Return the words for columns that are missing in periods.

    Examples
    --------
    >>> not_known(["price"], 1, "2025-03-02", "2025-03-02"), not_known(["offer", "price"], 3, 7, 9)
    ("'price' is not known at 2025-03-02", "'offer', 'price' are not known for 3 periods, 7 to 9")
    """
    verb = "is" if len(columns) == 1 else "are"
    when = f"at {first}" if n_periods == 1 else f"for {n_periods:,} periods, {first} to {last}"
    return f"{', '.join(map(quoted, columns))} {verb} not known {when}"


def refuse_missing(missing: pl.DataFrame) -> None:
    """Raise DataError with what is missing, a fault for each series, if there is any."""
    if not missing.height:
        return
    found = missing_by_series(missing)
    faults = [
        f"series {quoted(unique_id)}: {not_known(*needed)}; add rows without a value that say it"
        for unique_id, *needed in found.head(MAX_FAULTS).iter_rows()
    ]
    raise DataError(faults, len(found))


def farthest(tail: FloatArray, scale: FloatArray) -> FloatArray:
    """Return how far from zero forecasts may be, (n, 1), in units of each series, by newest values (n, R)."""
    known = np.fmax.reduce(np.abs(tail) / scale[:, None], axis=1, initial=1.0)
    most: FloatArray = FARTHEST * known[:, None]
    return most


def bounds_beyond(
    tail: FloatArray, near: FloatArray, scale: FloatArray, steps: Sequence[int]
) -> tuple[FloatArray, FloatArray]:
    """Return what forecasts at steps beyond the horizon lie between, (n, H) each.

    No series drifts farther in some periods than as many of its changes, whose root mean square is its scale.
    So forecasts that feed on others stay so near to the newest values (n, R) and the forecasts within the
    horizon (n, h), with ten periods more of room: weights that make them grow by a share each time would else
    lead anywhere.

    Examples
    --------
    >>> bounds_beyond(np.array([[np.nan, 5.0, 7.0]]), np.array([[8.0]]), np.array([2.0]), [2, 3])
    (array([[-19., -21.]]), array([[32., 34.]]))
    """
    both = np.concatenate([tail, near], axis=1)
    room = scale[:, None] * (BEYOND + np.array(steps))
    low, high = (reduced(both, axis=1)[:, None] for reduced in (np.fmin.reduce, np.fmax.reduce))
    return low - room, high + room


def are_cut(yhat: FloatArray, tail: FloatArray, scale: FloatArray, horizon: int) -> BoolArray:
    """Return which series have a forecast (n, H) that was cut to what is allowed, (n,).

    That is what :func:`farthest` says and, beyond the horizon, :func:`bounds_beyond`.
    """
    most = farthest(tail, scale) * scale[:, None]
    cut = (np.abs(yhat) >= most * (1.0 - 1e-12)).any(axis=1)
    if (H := yhat.shape[1]) > horizon:
        low, high = bounds_beyond(tail, yhat[:, :horizon], scale, range(horizon + 1, H + 1))
        cut |= ((yhat[:, horizon:] <= low) | (yhat[:, horizon:] >= high)).any(axis=1)
    return np.asarray(cut)


def dated(periods: IntArray, frequency: Frequency) -> pl.Series:
    """Return what names periods; hours as times in UTC."""
    return frequency.dated(periods)


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
