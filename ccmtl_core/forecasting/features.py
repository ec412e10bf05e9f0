"""Which features a row for forecasting has, and what they are called."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ccmtl_core.base.arguments import check_integer, check_kind
from ccmtl_core.base.arrays import as_sequence, checked_names, is_real
from ccmtl_core.base.exceptions import ParameterError
from ccmtl_core.base.types import FloatArray, IntArray
from ccmtl_core.kernels.series.row_kernel import RowPlan
from ccmtl_core.series.calendar import Frequency

FORGOTTEN = 1e-3
"""A value of an exponentially weighted mean that counts less than this beside the newest is left out."""
MAX_REACH = 2**20
"""More than the hours of a century: a feature that looks further back is a mistake."""

_ONE_HOT = {
    "hour_of_day": (range(1, 24), (Frequency.HOUR,)),
    "day_of_week": (range(2, 8), (Frequency.HOUR, *(f for f in Frequency if f.value[0] in "DB"))),
    "month": (range(2, 13), tuple(f for f in Frequency if f is not Frequency.INTEGER)),
}
"""Levels that have a column (the first has none, as all columns would add up to one), and where they tell."""
_LEVEL = re.compile(rf"({'|'.join(_ONE_HOT)})_(\d+)")
_FOURIER = re.compile(r"fourier_(\d+(?:\.\d+)?)_(\d+)_(sin|cos)")

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
    seasons: _Pairs = ()
    season_means: _Pairs = ()
    calendar: tuple[str, ...] = ()
    future: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("windows", "lags"):
            self._set(name, (_checked_length(value, name) for value in self._given(name)))
        self._set("smoothing", (_checked_share(value) for value in self._given("smoothing")))
        for name in ("season_levels", "seasons", "season_means"):
            self._set(name, (_checked_pair(value, name) for value in self._given(name)))
        columns = [column for word in self._given("calendar") for column in _calendar_columns(word)]
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
            Those that leave twice the horizon of the history for targets; the newest value always.

        Examples
        --------
        >>> RowFeatures.widest("MS", horizon=1, n_periods=6).names
        ('level_2', 'level_3', 'ewm_0.4', 'lag_1', 'lag_2', 'lag_3', 'lag_4')
        """
        check_integer(horizon, "horizon", least=1)
        check_integer(n_periods, "n_periods", least=1)
        most = max(n_periods - 2 * horizon, 1)
        found = _widest(Frequency(frequency))
        kept = {
            kind: tuple(value for value in values if _needs(kind, value) <= most)
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
        return max((_reach(kind, value) for _, kind, value in self._columns()), default=1)

    @property
    def warm_up(self) -> int:
        """Periods up to and with the origin from which each feature is what its name says, without gaps."""
        return max((_needs(kind, value) for _, kind, value in self._columns()), default=1)

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
        spans = sorted({*self.windows, *(m for kind in pairs for m, _ in kind)})
        place = {span: s for s, span in enumerate(spans)}

        def triples(kind: _Pairs) -> IntArray:
            return np.array([(m, n, place[m]) for m, n in kind], dtype=np.int64).reshape(-1, 3)

        return RowPlan(
            np.array(spans, dtype=np.int64),
            np.array([place[w] for w in self.windows], dtype=np.int64),
            np.array([1.0 - a for a in self.smoothing], dtype=np.float64),
            np.array([_reach("smoothing", a) for a in self.smoothing], dtype=np.int64),
            np.array(self.lags, dtype=np.int64),
            triples(self.season_levels),
            len(self.past),
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
        values = np.empty((len(periods), len(self.calendar)))
        parts = _date_parts(periods, frequency)
        for c, column in enumerate(self.calendar):
            if found := _FOURIER.fullmatch(column):
                turns = float(found[2]) * np.fmod(periods, float(found[1])) / float(found[1])
                values[:, c] = (np.sin if found[3] == "sin" else np.cos)(2.0 * np.pi * turns)
                continue
            word, level = column.rsplit("_", 1)
            if frequency not in _ONE_HOT[word][1]:
                raise ParameterError(f"{word} tells nothing at frequency {frequency.value!r}: leave it out")
            values[:, c] = parts[word]() == int(level)
        return values

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


_STEMS = {
    "windows": "level_",
    "smoothing": "ewm_",
    "lags": "lag_",
    "season_levels": "season_level_",
    "past": "past_",
    "seasons": "season_",
    "season_means": "season_mean_",
    "calendar": "",
    "future": "future_",
}
"""How the names of each kind begin."""

_WIDEST: dict[Frequency, dict[str, tuple[Any, ...]]] = {
    Frequency.HOUR: {
        "windows": (2, 3, 6, 12, 24, 48, 168, 336, 672),
        "smoothing": (0.05, 0.1, 0.2, 0.4),
        "lags": tuple(range(1, 25)),
        "season_levels": ((24, 24), (168, 24), (168, 168)),
        "seasons": ((24, 1), (24, 2), (168, 1), (168, 2)),
        "season_means": ((24, 7), (168, 4)),
        "calendar": (("hour_of_day", 96), ("day_of_week", 672)),
    },
    Frequency.WEEK: {
        "windows": (2, 4, 8, 13, 26, 52),
        "smoothing": (0.1, 0.2, 0.4),
        "lags": (*range(1, 14), 26, 39, 51, 52, 53),
        "season_levels": ((52, 4), (52, 13)),
        "seasons": ((52, 1), (52, 2)),
        "season_means": ((52, 4),),
        "calendar": (("fourier_52.18_1", 104), ("fourier_52.18_2", 104), ("fourier_52.18_3", 104)),
    },
    Frequency.MONTH: {
        "windows": (2, 3, 6, 12, 24),
        "smoothing": (0.1, 0.2, 0.4),
        "lags": tuple(range(1, 25)),
        "season_levels": ((12, 3), (12, 12)),
        "seasons": ((12, 1), (12, 2)),
        "season_means": ((12, 4),),
        "calendar": (("month", 36),),
    },
    Frequency.QUARTER: {
        "windows": (2, 4, 8, 12),
        "smoothing": (0.1, 0.2, 0.4),
        "lags": tuple(range(1, 9)),
        "season_levels": ((4, 4),),
        "seasons": ((4, 1), (4, 2)),
        "season_means": ((4, 3),),
        "calendar": (),
    },
}
"""Features worth trying; of the calendar with the least history that can tell of them."""
_WITHOUT_SEASON: dict[str, tuple[Any, ...]] = {
    "windows": (2, 3, 4, 6, 8, 12, 24, 52),
    "smoothing": (0.1, 0.2, 0.4),
    "lags": tuple(range(1, 9)),
    "calendar": (),
}
_DAYS_OF_YEAR = {7: "365.25", 6: "313.07", 5: "260.89"}
"""On average, by the open days of a week."""


def _widest(frequency: Frequency) -> dict[str, tuple[Any, ...]]:
    week = frequency.season
    if week not in _DAYS_OF_YEAR:
        return _WIDEST.get(frequency.kin, _WITHOUT_SEASON)
    year = _DAYS_OF_YEAR[week]
    waves = [(f"fourier_{year}_{j}", 2 * round(float(year))) for j in (1, 2)]
    return {
        "windows": (2, 3, *(week * n for n in (1, 2, 4, 8, 13, 26, 52))),
        "smoothing": (0.05, 0.1, 0.2, 0.4),
        "lags": (*range(1, 2 * week + 1), 3 * week, 4 * week, 5 * week),
        "season_levels": ((week, week), (52 * week, week), (52 * week, 4 * week)),
        "seasons": (*((week, n) for n in (1, 2, 3, 4)), (52 * week, 1)),
        "season_means": ((week, 4), (week, 8), (52 * week, 3)),
        "calendar": (("day_of_week", 4 * week), *waves),
    }


def _reach(kind: str, value: Any) -> int:
    """Periods up to and with the origin that a feature may read."""
    if kind in ("calendar", "past", "future"):
        return 1
    if kind == "smoothing":
        return math.ceil(math.log(FORGOTTEN) / math.log(1.0 - value))
    if kind == "season_levels":
        return int(sum(value))
    if kind == "seasons":
        return int(value[0] * (value[1] + 1))
    return int(value[0] * value[1] if kind == "season_means" else value)


def _needs(kind: str, value: Any) -> int:
    """Periods up to and with the origin that a feature needs to be what its name says."""
    if kind == "smoothing":
        return math.ceil(1.0 / float(value))
    if kind == "seasons":
        return int(value[0] * value[1])
    return _reach(kind, (value[0], 1) if kind == "season_means" else value)


def _checked_length(value: Any, name: str) -> int:
    check_integer(value, name, 1, MAX_REACH)
    return int(value)


def _checked_share(value: Any) -> float:
    if not (is_real(value) and FORGOTTEN <= value < 1.0):
        raise ParameterError(f"smoothing must lie in [{FORGOTTEN}, 1), not {value!r}")
    return float(value)


def _checked_pair(value: Any, name: str) -> tuple[int, int]:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise ParameterError(f"{name} must hold pairs such as (52, 1), not {value!r}")
    first, second = (_checked_length(part, name) for part in value)
    if _reach(name, (first, second)) > MAX_REACH:
        raise ParameterError(f"{name} must look back at most {MAX_REACH} periods, not as {value!r}")
    return first, second


def _calendar_columns(word: Any) -> list[str]:
    """The columns that a word of the calendar stands for."""
    if isinstance(word, str):
        if word in _ONE_HOT:
            return [f"{word}_{level}" for level in _ONE_HOT[word][0]]
        if (found := _LEVEL.fullmatch(word)) and int(found[2]) in _ONE_HOT[found[1]][0]:
            return [word]
        if (found := _FOURIER.fullmatch(word)) and float(found[1]) > 0.0 and int(found[2]) > 0:
            return [word]
        if (found := _FOURIER.fullmatch(f"{word}_sin")) and float(found[1]) > 0.0 and int(found[2]) > 0:
            return [f"{word}_sin", f"{word}_cos"]
    known = ", ".join(_ONE_HOT)
    raise ParameterError(f"calendar has no {word!r}; it has {known} and fourier_m_j, such as fourier_52.18_1")


def _date_parts(periods: IntArray, frequency: Frequency) -> dict[str, Callable[[], IntArray]]:
    """What the calendar tells of periods, by the words for it, made when asked for."""
    moments = frequency.to_datetime(periods)
    days = moments.astype("datetime64[D]")
    return {
        "hour_of_day": lambda: (moments - days).astype("timedelta64[h]").astype(np.int64),
        "day_of_week": lambda: (days.astype(np.int64) + 3) % 7 + 1,
        "month": lambda: moments.astype("datetime64[M]").astype(np.int64) % 12 + 1,
    }
