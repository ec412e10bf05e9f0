"""The names, the subsets and the description of features, and what is worth trying at each frequency."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from ccmtl_core import ParameterError
from ccmtl_core.forecasting import Frequency, RowFeatures

ALL = RowFeatures(
    windows=(4, 1),
    smoothing=(0.2,),
    lags=(2,),
    season_levels=((52, 4),),
    trends=(8, 2),
    seasons=((52, 2), (52, 1)),
    season_means=((52, 3),),
    calendar=("month_3", "fourier_52.18_1"),
)


def test_columns_come_kind_by_kind_and_rise_within_a_kind() -> None:
    assert ALL.names == (
        "level_1", "level_4", "ewm_0.2", "lag_2", "season_level_52_4", "trend_2", "trend_8", "season_52_1",
        "season_52_2", "season_mean_52_3", "month_3", "fourier_52.18_1_sin", "fourier_52.18_1_cos",
    )  # fmt: skip


def test_one_hot_leaves_out_one_level() -> None:
    assert RowFeatures(calendar=("day_of_week",)).names == tuple(f"day_of_week_{d}" for d in range(2, 8))
    assert len(RowFeatures(calendar=("month",)).names) == 11
    assert len(RowFeatures(calendar=("hour_of_day",)).names) == 23


def test_a_subset_keeps_the_order_and_every_feature_alone_is_one() -> None:
    assert ALL.subset(reversed(ALL.names)) == ALL
    for name in ALL.names:
        assert ALL.subset([name]).names == (name,)
    with pytest.raises(ParameterError, match="'level_9' is not among the features level_1, level_4"):
        ALL.subset(["level_1", "level_9"])
    with pytest.raises(ParameterError, match="at least one feature"):
        ALL.subset([])


def test_a_description_in_json_makes_the_same_features() -> None:
    assert RowFeatures.from_dict(json.loads(json.dumps(ALL.to_dict()))) == ALL
    with pytest.raises(ParameterError, match="no kind of feature 'window'; there are windows, smoothing"):
        RowFeatures.from_dict({"window": [1]})


def test_lags_are_the_papers_features() -> None:
    assert RowFeatures.for_lags(3).names == ("lag_1", "lag_2", "lag_3")


def test_the_reach_is_that_of_the_feature_that_looks_back_furthest() -> None:
    assert RowFeatures(windows=(8,), lags=(9,)).reach == 9
    assert RowFeatures(seasons=((52, 1),)).reach == 104  # a season more where there is a gap
    assert RowFeatures(season_means=((52, 3),)).reach == 156
    assert RowFeatures(season_levels=((52, 4),)).reach == 56
    assert RowFeatures(windows=(9,), trends=(8,)).reach == 16
    assert RowFeatures(calendar=("month",)).reach == 1
    assert 0.8 ** RowFeatures(smoothing=(0.2,)).reach <= 1e-3
    assert RowFeatures(windows=(8,), seasons=((52, 1),)).warm_up == 52


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "at least one feature"),
        ({"windows": (0,)}, "windows must be at least 1, not 0"),
        ({"windows": (2.0,)}, "windows must be an integer, not 2.0"),
        ({"windows": 3}, "windows must be a list, not 3"),
        ({"calendar": "month"}, "calendar must be a list, not 'month'"),
        ({"lags": (2**40,)}, "lags must be at most"),
        ({"trends": (2**19 + 1,)}, "trends must be at most"),
        ({"smoothing": (1.0,)}, r"smoothing must lie in \[0.001, 1\), not 1.0"),
        ({"seasons": (52,)}, "seasons must hold pairs such as"),
        ({"seasons": ((2**20, 2),)}, "seasons must look back at most"),
        ({"calendar": ("easter",)}, "calendar has no 'easter'; it has hour_of_day, day_of_week, month"),
        ({"calendar": ("day_of_week_1",)}, "calendar has no 'day_of_week_1'"),
        ({"calendar": ("fourier_0_1",)}, "calendar has no 'fourier_0_1'"),
    ],
)
def test_features_that_do_not_exist_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        RowFeatures(**given)


@pytest.mark.parametrize("frequency", list(Frequency))
@pytest.mark.parametrize("n_periods", [1, 6, 60, 200, 2000])
def test_the_widest_features_fit_into_the_history(frequency: Frequency, n_periods: int) -> None:
    widest = RowFeatures.widest(frequency, 2, n_periods)
    assert "lag_1" in widest.names
    assert len(widest.names) <= 80
    assert widest.warm_up <= max(n_periods - 4, 1)


def test_the_calendar_is_that_of_the_date() -> None:
    features = RowFeatures(calendar=("day_of_week", "month_2", "fourier_7_1_cos"))
    days = Frequency.DAY.to_period(["2024-02-26", "2024-03-03"])  # a Monday and a Sunday
    values = features.calendar_values(days, Frequency.DAY)
    assert values[:, :7].tolist() == [[0.0, 0, 0, 0, 0, 0, 1], [0.0, 0, 0, 0, 0, 1, 0]]
    assert values[0, 7] == pytest.approx(np.cos(2 * np.pi * (days[0] % 7) / 7))
    hours = Frequency.HOUR.to_period(["2024-02-26T05:00"])
    assert RowFeatures(calendar=("hour_of_day",)).calendar_values(hours, Frequency.HOUR).argmax() == 4


def test_a_calendar_that_tells_nothing_at_a_frequency_is_refused() -> None:
    with pytest.raises(ParameterError, match="day_of_week tells nothing at frequency 'W'"):
        RowFeatures(calendar=("day_of_week",)).calendar_values(np.zeros(1, dtype=np.int64), Frequency.WEEK)


def test_a_long_horizon_leaves_more_to_compare_than_the_newest_value() -> None:
    """Half of the history ahead, as a year from two: windows of up to a quarter of it are left."""
    widest = RowFeatures.widest("MS", 12, 24)
    assert (widest.windows, widest.lags) == ((2, 3, 6), (1, 2, 3, 4, 5, 6))
