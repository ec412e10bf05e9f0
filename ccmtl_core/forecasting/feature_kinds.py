"""Kinds of features for forecasts: which are worth trying, how far back they read, and those of the date."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ccmtl_core.base.exceptions import ParameterError
from ccmtl_core.base.types import FloatArray, IntArray
from ccmtl_core.series.calendar import Frequency

FORGOTTEN = 1e-3
"""A value of an exponentially weighted mean that counts less than this beside the newest is left out."""
_ONE_HOT = {
    "hour_of_day": (range(1, 24), (Frequency.HOUR,)),
    "day_of_week": (range(2, 8), (Frequency.HOUR, *(f for f in Frequency if f.value[0] in "DB"))),
    "month": (range(2, 13), tuple(f for f in Frequency if f is not Frequency.INTEGER)),
}
"""Levels that have a column (the first has none, as all columns would add up to one), and where they tell."""
_LEVEL = re.compile(rf"({'|'.join(_ONE_HOT)})_(\d+)")
_FOURIER = re.compile(r"fourier_(\d+(?:\.\d+)?)_(\d+)_(sin|cos)")

_WIDEST: dict[Frequency, dict[str, tuple[Any, ...]]] = {
    Frequency.HOUR: {
        "windows": (2, 3, 6, 12, 24, 48, 168, 336, 672),
        "smoothing": (0.05, 0.1, 0.2, 0.4),
        "lags": tuple(range(1, 25)),
        "trends": (24, 168),
        "season_levels": ((24, 24), (168, 24), (168, 168)),
        "seasons": ((24, 1), (24, 2), (168, 1), (168, 2)),
        "season_means": ((24, 7), (168, 4)),
        "calendar": (("hour_of_day", 96), ("day_of_week", 672)),
    },
    Frequency.WEEK: {
        "windows": (2, 4, 8, 13, 26, 52),
        "smoothing": (0.1, 0.2, 0.4),
        "lags": (*range(1, 14), 26, 39, 51, 52, 53),
        "trends": (4, 13, 26),
        "season_levels": ((52, 4), (52, 13)),
        "seasons": ((52, 1), (52, 2)),
        "season_means": ((52, 4),),
        "calendar": (("fourier_52.18_1", 104), ("fourier_52.18_2", 104), ("fourier_52.18_3", 104)),
    },
    Frequency.MONTH: {
        "windows": (2, 3, 6, 12, 24),
        "smoothing": (0.1, 0.2, 0.4),
        "lags": tuple(range(1, 25)),
        "trends": (2, 3, 6, 12),
        "season_levels": ((12, 3), (12, 12)),
        "seasons": ((12, 1), (12, 2)),
        "season_means": ((12, 4),),
        "calendar": (("month", 36),),
    },
    Frequency.QUARTER: {
        "windows": (2, 4, 8, 12),
        "smoothing": (0.1, 0.2, 0.4),
        "lags": tuple(range(1, 9)),
        "trends": (2, 4, 8),
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
    "trends": (2, 4, 8),
    "calendar": (),
}
_DAYS_OF_YEAR = {7: "365.25", 6: "313.07", 5: "260.89"}
"""On average, by the open days of a week."""


def widest_of(frequency: Frequency) -> dict[str, tuple[Any, ...]]:
    """Values worth trying of each kind; of the calendar with the least history that can tell of them."""
    week = frequency.season
    if week not in _DAYS_OF_YEAR:
        return _WIDEST.get(frequency.kin, _WITHOUT_SEASON)
    year = _DAYS_OF_YEAR[week]
    waves = [(f"fourier_{year}_{j}", 2 * round(float(year))) for j in (1, 2)]
    return {
        "windows": (2, 3, *(week * n for n in (1, 2, 4, 8, 13, 26, 52))),
        "smoothing": (0.05, 0.1, 0.2, 0.4),
        "lags": (*range(1, 2 * week + 1), 3 * week, 4 * week, 5 * week),
        "trends": tuple(week * n for n in (1, 2, 4, 13)),
        "season_levels": ((week, week), (52 * week, week), (52 * week, 4 * week)),
        "seasons": (*((week, n) for n in (1, 2, 3, 4)), (52 * week, 1)),
        "season_means": ((week, 4), (week, 8), (52 * week, 3)),
        "calendar": (("day_of_week", 4 * week), *waves),
    }


def reach_of(kind: str, value: Any) -> int:
    """Periods up to and with the origin that a feature may read."""
    if kind in ("calendar", "past", "future"):
        return 1
    if kind == "smoothing":
        return math.ceil(math.log(FORGOTTEN) / math.log(1.0 - value))
    if kind == "trends":
        return int(2 * value)
    if kind == "season_levels":
        return int(sum(value))
    if kind == "seasons":
        return int(value[0] * (value[1] + 1))
    return int(value[0] * value[1] if kind == "season_means" else value)


def needed_by(kind: str, value: Any) -> int:
    """Periods up to and with the origin that a feature needs to be what its name says."""
    if kind == "smoothing":
        return math.ceil(1.0 / float(value))
    if kind == "seasons":
        return int(value[0] * value[1])
    return reach_of(kind, (value[0], 1) if kind == "season_means" else value)


def calendar_columns(word: Any) -> list[str]:
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


def calendar_values(columns: Sequence[str], periods: IntArray, frequency: Frequency) -> FloatArray:
    """The columns (n, C) of the calendar for the periods (n,)."""
    values = np.empty((len(periods), len(columns)))
    parts = _date_parts(periods, frequency)
    for c, column in enumerate(columns):
        if found := _FOURIER.fullmatch(column):
            turns = float(found[2]) * np.fmod(periods, float(found[1])) / float(found[1])
            values[:, c] = (np.sin if found[3] == "sin" else np.cos)(2.0 * np.pi * turns)
            continue
        word, level = column.rsplit("_", 1)
        if frequency not in _ONE_HOT[word][1]:
            raise ParameterError(f"{word} tells nothing at frequency {frequency.value!r}: leave it out")
        values[:, c] = parts[word]() == int(level)
    return values


def _date_parts(periods: IntArray, frequency: Frequency) -> dict[str, Callable[[], IntArray]]:
    """What the calendar tells of periods, by the words for it, made when asked for."""
    moments = frequency.to_datetime(periods)
    days = moments.astype("datetime64[D]")
    return {
        "hour_of_day": lambda: (moments - days).astype("timedelta64[h]").astype(np.int64),
        "day_of_week": lambda: (days.astype(np.int64) + 3) % 7 + 1,
        "month": lambda: moments.astype("datetime64[M]").astype(np.int64) % 12 + 1,
    }
