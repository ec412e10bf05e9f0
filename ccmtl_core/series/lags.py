"""Make regression rows of series: the L values before a period are the features for its value.

These are the features of the paper's sales sets (He et al., AAAI 2019, section "Retail datasets").
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ccmtl_core.base.arguments import check_integer
from ccmtl_core.base.arrays import is_real, read_only
from ccmtl_core.base.display import counted, shown
from ccmtl_core.base.exceptions import ParameterError
from ccmtl_core.base.frozen_value import FrozenValue
from ccmtl_core.base.types import FloatArray, IntArray
from ccmtl_core.data.task_dataset import TaskDataset
from ccmtl_core.series.panel import SeriesPanel

NO_PERIOD = np.iinfo(np.int64).min
"""Last period of a series that has no entries."""


@dataclass(frozen=True, eq=False)
class LaggedPanel(FrozenValue):
    """Regression rows made from a panel.

    Parameters
    ----------
    dataset : TaskDataset
        Features "lag_1" (the period before) to "lag_L"; tasks are the series, also those that
        have no row.
    target_period : (n,) int64
        The period that each row's y belongs to.
    n_dropped : int
        Entries of the panel that became no row because not all their lags exist.
    """

    dataset: TaskDataset
    target_period: IntArray
    n_dropped: int

    def __repr__(self) -> str:
        return shown(self, repr(self.dataset), f"{self.n_dropped:,} entries without all lags")


def lag_dataset(panel: SeriesPanel, n_lags: int) -> LaggedPanel:
    """Make one row for each value whose ``n_lags`` preceding periods all have values.

    Parameters
    ----------
    panel : SeriesPanel
        T series.
    n_lags : int
        L, at least 1 and below the number of values of the longest series.

    Returns
    -------
    LaggedPanel
        Tasks are the series, features are "lag_1" to "lag_L".

    Raises
    ------
    ParameterError
        ``panel`` is not a SeriesPanel, or ``n_lags`` is not an integer in its range.

    Examples
    --------
    >>> panel = SeriesPanel(("a",), [0, 5], [1, 2, 3, 7, 8], [1.0, 2.0, 3.0, 7.0, 8.0], "D")
    >>> lagged = lag_dataset(panel, 2)
    >>> lagged.dataset.X, lagged.dataset.y, lagged.n_dropped
    (array([[2., 1.]]), array([3.]), 4)
    """
    n_lags = _checked_lags(panel, n_lags, n_targets=1)
    names = tuple(f"lag_{lag}" for lag in range(1, n_lags + 1))
    n = len(panel.values)
    is_row = np.zeros(n, dtype=bool)
    same_series = panel.series_index[n_lags:] == panel.series_index[:-n_lags]
    is_row[n_lags:] = same_series & (panel.period[n_lags:] - panel.period[:-n_lags] == n_lags)
    target = np.flatnonzero(is_row)
    if len(target):
        # entry i of the view is values[i], …, values[i + L − 1]: the lags of entry i + L, oldest first
        windows = np.lib.stride_tricks.sliding_window_view(panel.values[:-1], n_lags)
        X = windows[:, ::-1][is_row[n_lags:]]
    else:
        X = np.empty((0, n_lags))
    rows_before = np.concatenate([[0], np.cumsum(is_row)])
    dataset = TaskDataset(X, panel.values[target], rows_before[panel.offsets], panel.unique_ids, names)
    return LaggedPanel(dataset, read_only(panel.period[target]), n - len(target))


def latest_lags(panel: SeriesPanel, n_lags: int) -> tuple[FloatArray, IntArray]:
    """Return the features for the period after each series' last one.

    Parameters
    ----------
    panel : SeriesPanel
        T series.
    n_lags : int
        L, at least 1 and at most the number of values of the longest series.

    Returns
    -------
    lags : (T, L) float64
        "lag_1" first; a row of NaN where the last L periods are not consecutive or not there.
    last_period : (T,) int64
        ``NO_PERIOD`` for a series without entries.

    Raises
    ------
    ParameterError
        ``panel`` is not a SeriesPanel, or ``n_lags`` is not an integer in its range.

    Examples
    --------
    >>> panel = SeriesPanel(("a",), [0, 3], [1, 2, 3], [1.0, 2.0, 3.0], "D")
    >>> latest_lags(panel, 2)
    (array([[3., 2.]]), array([3]))
    """
    n_lags = _checked_lags(panel, n_lags)
    start, end = panel.offsets[:-1], panel.offsets[1:]
    last_period = np.full(panel.n_series, NO_PERIOD)
    has_entries = end > start
    last_period[has_entries] = panel.period[end[has_entries] - 1]
    lags = np.full((panel.n_series, n_lags), np.nan)
    long_enough = np.flatnonzero(end - start >= n_lags)
    last = end[long_enough] - 1
    consecutive = panel.period[last] - panel.period[last - (n_lags - 1)] == n_lags - 1
    back = np.arange(n_lags)
    lags[long_enough[consecutive]] = panel.values[last[consecutive, None] - back]
    return lags, last_period


def split_by_time(lagged: LaggedPanel, holdout_fraction: float) -> tuple[IntArray, int]:
    """Hold out the last part of the time span that all rows together cover.

    Parameters
    ----------
    lagged : LaggedPanel
        n rows.
    holdout_fraction : float
        Share of the span's periods in (0, 1); at least one period is held out and one kept.

    Returns
    -------
    fold : (n,) int64
        0 before the cut, 1 from it on.
    cut : int
        First period held out.

    Raises
    ------
    ParameterError
        No LaggedPanel, a fraction outside (0, 1), or rows that span fewer than two periods.

    Examples
    --------
    >>> panel = SeriesPanel(("a",), [0, 5], [1, 2, 3, 4, 5], [1.0, 2.0, 3.0, 4.0, 5.0], "D")
    >>> split_by_time(lag_dataset(panel, 1), 0.5)
    (array([0, 0, 1, 1]), 4)
    """
    if not isinstance(lagged, LaggedPanel):
        raise ParameterError(
            f"lagged must be a LaggedPanel, as lag_dataset returns it, not {type(lagged).__name__}"
        )
    if not (is_real(holdout_fraction) and 0 < holdout_fraction < 1):
        raise ParameterError(f"holdout_fraction must lie in (0, 1), not {holdout_fraction!r}")
    period = lagged.target_period
    n_periods = int(period.max() - period.min()) + 1 if len(period) else 0
    if n_periods < 2:
        raise ParameterError(f"the rows span {counted(n_periods, 'period')}: too few to hold any out")
    cut = int(period.max()) - n_periods_held_out(n_periods, holdout_fraction) + 1
    return (period >= cut).astype(np.int64), cut


def n_periods_held_out(n_periods: int, holdout_fraction: float) -> int:
    """Return how many of ``n_periods`` (2 or more) are held out; at least one is, and one is kept."""
    return min(max(math.floor(n_periods * holdout_fraction + 0.5), 1), n_periods - 1)


def _checked_lags(panel: SeriesPanel, n_lags: int, n_targets: int = 0) -> int:
    """Check that some series has ``n_lags`` values and ``n_targets`` after them."""
    if not isinstance(panel, SeriesPanel):
        raise ParameterError(f"panel must be a SeriesPanel, not {type(panel).__name__}")
    check_integer(n_lags, "n_lags", least=1)
    longest = int(np.diff(panel.offsets).max(initial=0))
    if n_lags > longest - n_targets:
        raise ParameterError(
            f"n_lags is {n_lags}, and the longest series has {counted(longest, 'value')}, "
            f"which allow at most {max(longest - n_targets, 0)}"
        )
    return int(n_lags)
