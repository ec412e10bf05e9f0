"""Choose the features of rows by forecasts of past blocks of time.

The statistics of the widest rows hold those of any of their features, so rows are made once, and each set of
features is compared without another look at the values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ccmtl_core.base.arguments import check_integer, check_kind
from ccmtl_core.base.display import counted, shown
from ccmtl_core.base.types import BoolArray, FloatArray, IntArray
from ccmtl_core.forecasting.features import RowFeatures
from ccmtl_core.forecasting.row_maker import check_panel, panel_ends, series_scale
from ccmtl_core.forecasting.series_rows import direct_statistics
from ccmtl_core.forecasting.shared_models import SharedModels
from ccmtl_core.series.columns import SeriesColumns
from ccmtl_core.series.panel import SeriesPanel
from ccmtl_core.statistics.sufficient_statistics import SufficientStatistics

WORTH = 1e-3
"""What a feature must take off the error to stay, as a share of it: each one makes fits slower."""
MOST_WORSE = 0.02
"""Share by which the error over all series may exceed the least: where most values are zero, the mean over
series favours sets that forecast next to nothing."""
SHARE_OF_REACH = 3
"""Longest lag, window and trend: the history over this. Rows begin after it, whatever features are chosen."""
RARELY = 3
"""A season so far back that fewer than one in so many targets know it is left out: all forecasts would read
what few rows of training have seen."""
MOST_LOST = 0.1
"""Share of the values at which a lag or a column may be missing: no row starts, or ends, where one is."""
MOST_ORIGINS = 100
LAGS_FROM = (2, 4, 8, 15, 27)
"""Where the groups of lags begin that are tried together, after the newest value."""
MOST_BYTES = 2**29
"""Of the statistics of the widest rows: where more series are, a part of them is drawn."""


@dataclass(frozen=True)
class TriedRows:
    """One set of features that was tried, and its error on what was held out.

    Parameters
    ----------
    features : RowFeatures
        What the rows have.
    fit_intercept : bool
        Whether each series has an intercept of its own.
    error : float
        Of one model for all series: root mean squared error of each in units of its scale; mean over series
        and blocks.
    error_over_all : float
        Of the same model: root of the squared error's mean over series; mean over blocks.
    """

    features: RowFeatures
    fit_intercept: bool
    error: float
    error_over_all: float

    @property
    def cost(self) -> float:
        """The error, and what its features cost beside."""
        return self.error * (1.0 + WORTH) ** len(self.features.names)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {
            "rows": self.features.to_dict(),
            "fit_intercept": self.fit_intercept,
            "shared_model_error": self.error,
            "shared_model_error_over_all": self.error_over_all,
        }


@dataclass(frozen=True)
class RowChoice:
    """What was chosen, and what was tried.

    Parameters
    ----------
    features : RowFeatures
        Of the rows.
    tried : tuple of TriedRows
        The best first: sets to begin with, and those that steps led to.
    n_compared : int
        Sets that were compared at all.
    n_series : int
        Series that they were compared on.
    """

    features: RowFeatures
    tried: tuple[TriedRows, ...]
    n_compared: int
    n_series: int

    def __repr__(self) -> str:
        compared = counted(self.n_compared, "set")
        return shown(self, repr(self.features), f"error {self.tried[0].error:.4g}", f"{compared} compared")


def choose_rows(
    panel: SeriesPanel,
    horizon: int,
    *,
    widest: RowFeatures | None = None,
    scale: FloatArray | None = None,
    n_blocks: int = 6,
    columns: SeriesColumns | None = None,
) -> RowChoice:
    """Choose what rows have.

    Parameters
    ----------
    panel : SeriesPanel
        T series, of which at least one changes.
    horizon : int
        Periods ahead.
    widest : RowFeatures, optional
        Choose among these features; by default among :meth:`RowFeatures.widest` and the columns: of the
        lags, windows and trends those that look back at most a third of the history, and no lag that gaps
        often hide.
    scale : (T,) float64, optional
        Unit of each series; by default :func:`series_scale`.
    n_blocks : int
        Blocks of time, each but the first forecast from those before it.
    columns : SeriesColumns, optional
        Beside the values. Those that are known ahead, as their ``ahead`` says, may be features of the future,
        the others of the past; those that are known at fewer than nine of ten values are left out.

    Returns
    -------
    RowChoice
        All of ``widest`` where the history is too short to hold any of it out.

    Raises
    ------
    ParameterError
        Arguments out of their range.
    DataError
        A panel that no row can be made of.

    Examples
    --------
    >>> noise = np.random.default_rng(0).normal(size=80)
    >>> values = np.tile([1.0, 3.0, 2.0, 8.0], 20) + 0.1 * noise
    >>> panel = SeriesPanel(("a", "b"), [0, 40, 80], [*range(40)] * 2, values, "D")
    >>> choose_rows(panel, 2, widest=RowFeatures(windows=(1, 2), seasons=((4, 1), (7, 1)))).features
    RowFeatures(seasons=((4, 1),))
    """
    check_integer(n_blocks, "n_blocks", least=2)
    units = series_scale(check_panel(panel)) if scale is None else scale
    if widest is None:
        first, last = panel_ends(panel)
        n_periods = last - first + 1
        widest = RowFeatures.widest(panel.frequency, horizon, n_periods)
        most = max(n_periods // SHARE_OF_REACH, 1)
        windows = tuple(window for window in widest.windows if window <= most)
        trends = tuple(window for window in widest.trends if 2 * window <= most)
        longest = min(most, _longest_lag(panel, widest.lags))
        lags = tuple(lag for lag in widest.lags if lag <= longest)
        past, future = ((), ()) if columns is None else _past_and_future(columns, panel)
        widest = replace(widest, lags=lags, windows=windows, trends=trends, past=past, future=future)
        widest = _without_rare_seasons(widest, n_periods)
    check_kind(widest, "widest", RowFeatures)
    some = _some_series(panel.n_series, len(widest.names), n_blocks)
    chosen = panel if len(some) == panel.n_series else panel.take(some)
    blocks = direct_statistics(
        chosen, widest, horizon, n_blocks=n_blocks, n_origins=MOST_ORIGINS, scale=units[some], columns=columns
    )
    if len(blocks) < 2:
        return RowChoice(widest, (), 0, len(some))
    tried, n_compared = _compared(blocks, widest)
    return RowChoice(tried[0].features, tuple(tried), n_compared, len(some))


def _without_rare_seasons(widest: RowFeatures, n_periods: int) -> RowFeatures:
    """Leave out seasons so far back that few targets know them."""
    n_targets = min(MOST_ORIGINS, n_periods - n_periods // SHARE_OF_REACH)
    known = n_periods - n_targets // RARELY  # so far back from one target in RARELY
    return replace(
        widest,
        season_levels=tuple((m, w) for m, w in widest.season_levels if m + w <= known),
        seasons=tuple((m, back) for m, back in widest.seasons if m * back <= known),
        season_means=tuple((m, min(n, known // m)) for m, n in widest.season_means if 2 * m <= known),
    )


def _past_and_future(columns: SeriesColumns, panel: SeriesPanel) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the columns that are known up to the present alone, and of those known ahead."""
    at_values = columns.at(columns.places(panel.unique_ids)[panel.series_index], panel.period)
    usable = np.isnan(at_values).mean(axis=0) <= MOST_LOST
    ahead = columns.known_ahead(int(panel.period.max()))
    names = np.array(columns.names)
    return tuple(names[usable & ~ahead].tolist()), tuple(names[usable & ahead].tolist())


def _longest_lag(panel: SeriesPanel, lags: Sequence[int]) -> int:
    """The longest lag that gaps leave known, with all shorter ones, at most values."""
    index, period = panel.series_index, panel.period
    entry = np.arange(len(period))
    new = np.diff(index, prepend=-1) != 0
    begins = new | (np.diff(period, prepend=0) != 1)
    run = entry - np.maximum.accumulate(np.where(begins, entry, 0)) + 1
    age = period - period[np.maximum.accumulate(np.where(new, entry, 0))] + 1
    lost = ((lag, float((run < lag)[age >= lag].mean())) for lag in lags if (age >= lag).any())
    return max((lag for lag, share in lost if share <= MOST_LOST), default=1)


def _some_series(n_series: int, n_features: int, n_blocks: int) -> IntArray:
    """As many series, drawn with a fixed seed, as the statistics of the widest rows have room for."""
    most = max(MOST_BYTES // (8 * n_blocks * n_features**2), 1)
    if n_series <= most:
        return np.arange(n_series)
    return np.sort(np.random.default_rng(0).choice(n_series, most, replace=False))


def _compared(blocks: Sequence[SufficientStatistics], widest: RowFeatures) -> tuple[list[TriedRows], int]:
    """Sets that were begun with or stepped to, the best first, and how many were compared."""
    shared, groups, names = SharedModels(blocks), feature_groups(widest), np.array(widest.names)
    member = np.array([[name in group for name in names] for group in groups], dtype=np.int64)
    of_level = np.array([group[0].startswith(("level_", "ewm_", "lag_", "season_")) for group in groups])
    n_compared, most = 0, np.inf

    def best(sets: BoolArray, fit_intercept: bool) -> tuple[BoolArray, TriedRows]:
        """The set of groups of the least cost among some."""
        nonlocal n_compared
        n_compared += len(sets)
        wanted = sets @ member > 0
        errors, over_all = shared.errors(wanted, fit_intercept=fit_intercept)
        costs = errors * (1.0 + WORTH) ** wanted.sum(axis=1)
        least = int(np.argmin(np.where(over_all <= most, costs, np.inf)))
        features = widest.subset(names[wanted[least]])
        return sets[least], TriedRows(features, fit_intercept, float(errors[least]), float(over_all[least]))

    def order(one: TriedRows) -> tuple[bool, float]:
        return one.error_over_all > most, one.cost

    starts = [[best(one[None], fit_intercept) for one in _starts(groups)] for fit_intercept in (False, True)]
    tried = [found for some in starts for _, found in some]
    most = (1.0 + MOST_WORSE) * min(one.error_over_all for one in tried)
    for some in starts:
        now, found = min(some, key=lambda start: order(start[1]))
        while True:
            changed = now ^ np.eye(len(groups), dtype=np.bool_)
            changed = changed[(changed & of_level).any(axis=1)]  # else it would forecast zero for all
            if not len(changed):
                break
            one, step = best(changed, found.fit_intercept)
            if not order(step) < order(found):
                break
            now, found = one, step
            tried.append(step)
    return sorted(tried, key=order), n_compared


def feature_groups(features: RowFeatures) -> list[tuple[str, ...]]:
    """Part features into groups that are tried together: windows, lags of one range, one season, one word.

    Each trend and each column beside the values is a group of its own.

    Parameters
    ----------
    features : RowFeatures
        P features.

    Returns
    -------
    list of tuple of str
        Their names.

    Examples
    --------
    >>> feature_groups(RowFeatures(windows=(2, 4), lags=(1, 2, 3), calendar=("fourier_7_1",)))
    [('level_2', 'level_4'), ('lag_1',), ('lag_2', 'lag_3'), ('fourier_7_1_sin', 'fourier_7_1_cos')]
    """
    groups: dict[str, list[str]] = {}
    for name in features.names:
        groups.setdefault(_group_of(name), []).append(name)
    return [tuple(group) for group in groups.values()]


def _group_of(name: str) -> str:
    if name.startswith(("past_", "future_", "trend_")):
        return name
    kind, *numbers = name.replace("season_", "season-").split("_")
    if kind == "lag":
        return f"lag {np.searchsorted(LAGS_FROM, int(numbers[0]), side='right')}"
    return f"{kind} {numbers[0]}" if kind.startswith(("season-", "fourier")) else kind


def _starts(groups: Sequence[tuple[str, ...]]) -> list[BoolArray]:
    """Sets of groups to begin with: of levels, of weighted means, of lags, alone and with seasons; of all."""

    def those(*beginnings: str) -> BoolArray:
        return np.array([f"{group[0]} ".startswith(beginnings) for group in groups])

    kinds = [("level_", "lag_1 "), ("ewm_",), ("lag_",), ("level_", "ewm_", "lag_")]
    sets = [those(*kind) for kind in kinds] + [those(*kind, "season_") for kind in kinds]
    sets.append(np.ones(len(groups), dtype=np.bool_))
    return list({one.tobytes(): one for one in sets if one.any()}.values())
