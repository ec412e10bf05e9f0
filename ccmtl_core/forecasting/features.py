"""Which features a row for forecasting has, and what they are called."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ccmtl_core.base.arguments import check_integer, check_kind
from ccmtl_core.base.arrays import as_sequence, checked_names, is_real
from ccmtl_core.base.exceptions import ParameterError
from ccmtl_core.base.types import FloatArray, IntArray
from ccmtl_core.forecasting.feature_kinds import (
    FORGOTTEN,
    calendar_columns,
    calendar_values,
    needed_by,
    reach_of,
    widest_of,
)
from ccmtl_core.kernels.series.row_kernel import RowPlan
from ccmtl_core.series.calendar import Frequency

MAX_REACH = 2**20
"""More than the hours of a century: a feature that looks further back is a mistake."""

_STEMS = {
    "windows": "level_",
    "smoothing": "ewm_",
    "lags": "lag_",
    "season_levels": "season_level_",
    "past": "past_",
    "trends": "trend_",
    "seasons": "season_",
    "season_means": "season_mean_",
    "calendar": "",
    "future": "future_",
}
"""How the names of each kind begin."""

_Pairs = tuple[tuple[int, int], ...]


@dataclass(frozen=True, kw_only=True)
class RowFeatures:
    """Features of a row with the target y at the period o + k, k steps after the origin o.

    Everything is known at the origin. Each field lists features of one kind; the columns of a row come kind
    by kind in the order of the fields, and rising within a kind. Where a season is not known, as in a gap or
    before the first value, the mean of the last season that ends with the origin stands for it.

    Parameters
    ----------
    windows : tuple of int
        ``level_w``: mean of the values known among the last w periods up to the origin.
    smoothing : tuple of float
        ``ewm_a``: exponentially weighted mean, the newest value counting a, 0 < a < 1, and each one before
        1 − a times as much as the next; those that count below a thousandth of it are left out.
    lags : tuple of int
        ``lag_j``: the value at o + 1 − j. Without it there is no row.
    season_levels : tuple of (m, w)
        ``season_level_m_w``: mean of the w periods up to o − m, the origin's place a season ago.
    past : tuple of str
        ``past_NAME``: a column beside the values, as it is at the origin.
    trends : tuple of int
        ``trend_w``: k times the change per period, 2 (level_w − level_2w) / w; without gaps, the mean of the
        last w values less the mean of the w before, over w. A history of fewer than 2 w periods tells a part
        of it, one of w or fewer nothing: zero.
    seasons : tuple of (m, i)
        ``season_m_i``: the value i seasons of m periods before the target, or the first season before that
        lies at or before the origin; one season earlier where it is not known.
    season_means : tuple of (m, n)
        ``season_mean_m_n``: mean of those known among the last n such values.
    calendar : tuple of str
        The target's date: ``hour_of_day``, ``day_of_week`` (1 is Monday), ``month``, each a column of 0 and 1
        for each level but the first, or ``fourier_m_j``, a sine and a cosine of j turns in m periods.
    future : tuple of str
        ``future_NAME``: a column beside the values that is known ahead, as it is at the target.

    Raises
    ------
    ParameterError
        A feature that does not exist, or none at all.

    Examples
    --------
    >>> features = RowFeatures(windows=(4, 1), seasons=((52, 1),), calendar=("fourier_52.18_1",))
    >>> features.names
    ('level_1', 'level_4', 'season_52_1', 'fourier_52.18_1_sin', 'fourier_52.18_1_cos')
    >>> features.subset(["season_52_1", "level_1"])
    RowFeatures(windows=(1,), seasons=((52, 1),))
    """

    windows: tuple[int, ...] = ()
    smoothing: tuple[float, ...] = ()
    lags: tuple[int, ...] = ()
    season_levels: _Pairs = ()
    past: tuple[str, ...] = ()
    trends: tuple[int, ...] = ()
    seasons: _Pairs = ()
    season_means: _Pairs = ()
    calendar: tuple[str, ...] = ()
    future: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("windows", "lags"):
            self._set(name, (_checked_length(value, name) for value in self._given(name)))
        halves = (_checked_length(value, "trends", MAX_REACH // 2) for value in self._given("trends"))
        self._set("trends", halves)
        self._set("smoothing", (_checked_share(value) for value in self._given("smoothing")))
        for name in ("season_levels", "seasons", "season_means"):
            self._set(name, (_checked_pair(value, name) for value in self._given(name)))
        columns = [column for word in self._given("calendar") for column in calendar_columns(word)]
        object.__setattr__(self, "calendar", tuple(dict.fromkeys(columns)))
        for name in ("past", "future"):
            object.__setattr__(self, name, checked_names(self._given(name), f"{name} column"))
        if not self.names:
            raise ParameterError("RowFeatures needs at least one feature, such as windows=(1,)")

    def __repr__(self) -> str:
        return f"RowFeatures({', '.join(f'{name}={value!r}' for name, value in self._some().items())})"

    @classmethod
    def for_lags(cls, n_lags: int) -> RowFeatures:
        """Return the lags 1 to ``n_lags`` alone, which at a horizon of 1 are the paper's features."""
        check_integer(n_lags, "n_lags", least=1)
        return cls(lags=tuple(range(1, n_lags + 1)))

    @classmethod
    def widest(cls, frequency: Frequency | str, horizon: int, n_periods: int) -> RowFeatures:
        """Return everything worth trying where series are this long.

        Levels are sums of lags that are among them: what is worth fitting is a part of it.

        Parameters
        ----------
        frequency : Frequency
            What a period is.
        horizon : int
            Periods ahead, at least 1.
        n_periods : int
            Periods of history, at least 1.

        Returns
        -------
        RowFeatures
            Those that leave twice the horizon of the history for targets or need at most a quarter of it; the
            newest value always.

        Examples
        --------
        >>> RowFeatures.widest("MS", horizon=1, n_periods=6).names
        ('level_2', 'level_3', 'ewm_0.4', 'lag_1', 'lag_2', 'lag_3', 'lag_4', 'trend_2')
        """
        check_integer(horizon, "horizon", least=1)
        check_integer(n_periods, "n_periods", least=1)
        most = max(n_periods - 2 * horizon, n_periods // 4, 1)
        found = widest_of(Frequency(frequency))
        kept = {
            kind: tuple(value for value in values if needed_by(kind, value) <= most)
            for kind, values in found.items()
            if kind != "calendar"
        }
        words = tuple(word for word, least in found["calendar"] if n_periods >= least)
        return cls(**kept, calendar=words)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features, in the order of the columns."""
        return tuple(name for name, _, _ in self._columns())

    @property
    def reach(self) -> int:
        """Periods up to and with the origin that a row may read."""
        return max((reach_of(kind, value) for _, kind, value in self._columns()), default=1)

    @property
    def warm_up(self) -> int:
        """Periods up to and with the origin from which each feature is what its name says, without gaps."""
        return max((needed_by(kind, value) for _, kind, value in self._columns()), default=1)

    def subset(self, names: Iterable[str]) -> RowFeatures:
        """Return these of the features, in the order that they have here.

        Raises
        ------
        ParameterError
            A name that is not among :attr:`names`, or no name.
        """
        wanted = set(as_sequence(names, "names"))
        if unknown := sorted(map(str, wanted - set(self.names))):
            raise ParameterError(f"{unknown[0]!r} is not among the features {', '.join(self.names)}")
        kept: dict[str, list[Any]] = {}
        for name, kind, value in self._columns():
            if name in wanted:
                kept.setdefault(kind, []).append(value)
        return RowFeatures(**{kind: tuple(values) for kind, values in kept.items()})

    def to_dict(self) -> dict[str, Any]:
        """Return what :meth:`from_dict` takes, as JSON holds it."""
        return {
            name: [list(value) if isinstance(value, tuple) else value for value in values]
            for name, values in self._some().items()
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> RowFeatures:
        """Return the features that :meth:`to_dict` described.

        Raises
        ------
        ParameterError
            Something else.

        Examples
        --------
        >>> RowFeatures.from_dict({"windows": [1, 8], "seasons": [[52, 1]]})
        RowFeatures(windows=(1, 8), seasons=((52, 1),))
        """
        check_kind(values, "features", Mapping)
        known = [field.name for field in fields(cls)]
        if unknown := sorted(map(str, set(values) - set(known))):
            raise ParameterError(f"there is no kind of feature {unknown[0]!r}; there are {', '.join(known)}")
        return cls(**values)

    def plan(self) -> RowPlan:
        """Return the features as the compiled loops take them."""
        pairs = self.season_levels, self.seasons, self.season_means
        levels = {*self.windows, *self.trends, *(2 * w for w in self.trends)}
        spans = sorted(levels | {m for kind in pairs for m, _ in kind})
        place = {span: s for s, span in enumerate(spans)}

        def triples(kind: _Pairs) -> IntArray:
            return np.array([(m, n, place[m]) for m, n in kind], dtype=np.int64).reshape(-1, 3)

        return RowPlan(
            np.array(spans, dtype=np.int64),
            np.array([place[w] for w in self.windows], dtype=np.int64),
            np.array([1.0 - a for a in self.smoothing], dtype=np.float64),
            np.array([reach_of("smoothing", a) for a in self.smoothing], dtype=np.int64),
            np.array(self.lags, dtype=np.int64),
            triples(self.season_levels),
            len(self.past),
            np.array([(place[w], place[2 * w]) for w in self.trends], dtype=np.int64).reshape(-1, 2),
            triples(self.seasons),
            triples(self.season_means),
            len(self.future),
        )

    def calendar_values(self, periods: IntArray, frequency: Frequency) -> FloatArray:
        """Return the columns (n, C) of the calendar for the periods (n,).

        Raises
        ------
        ParameterError
            A column that tells nothing at this frequency, as the day of the week of a month.
        """
        return calendar_values(self.calendar, periods, frequency)

    def _columns(self) -> list[tuple[str, str, Any]]:
        """Name, kind and value of each column."""
        columns = [(kind, value) for kind in _STEMS for value in getattr(self, kind)]
        texts = ["_".join(map(str, v if isinstance(v, tuple) else (v,))) for _, v in columns]
        return [(_STEMS[kind] + text, kind, v) for (kind, v), text in zip(columns, texts, strict=True)]

    def _some(self) -> dict[str, tuple[Any, ...]]:
        """The kinds that have features."""
        return {field.name: getattr(self, field.name) for field in fields(self) if getattr(self, field.name)}

    def _given(self, name: str) -> Sequence[Any]:
        value = getattr(self, name)
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise ParameterError(f"{name} must be a list, not {value!r}")
        return list(value)

    def _set(self, name: str, values: Iterable[Any]) -> None:
        object.__setattr__(self, name, tuple(sorted(set(values))))


def _checked_length(value: Any, name: str, most: int = MAX_REACH) -> int:
    check_integer(value, name, 1, most)
    return int(value)


def _checked_share(value: Any) -> float:
    if not (is_real(value) and FORGOTTEN <= value < 1.0):
        raise ParameterError(f"smoothing must lie in [{FORGOTTEN}, 1), not {value!r}")
    return float(value)


def _checked_pair(value: Any, name: str) -> tuple[int, int]:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise ParameterError(f"{name} must hold pairs such as (52, 1), not {value!r}")
    first, second = (_checked_length(part, name) for part in value)
    if reach_of(name, (first, second)) > MAX_REACH:
        raise ParameterError(f"{name} must look back at most {MAX_REACH} periods, not as {value!r}")
    return first, second
