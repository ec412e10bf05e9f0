"""Features that validation chooses, on series whose makers are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ccmtl_core import DataError
from ccmtl_core.base.types import BoolArray, FloatArray
from ccmtl_core.forecasting import Frequency, RowFeatures, SeriesColumns, SeriesPanel, fit_forecaster
from ccmtl_core.forecasting import row_choice as module
from ccmtl_core.forecasting.row_choice import choose_rows, feature_groups
from ccmtl_core.forecasting.shared_models import SharedErrors, SharedModels

WIDEST = RowFeatures(
    windows=(2, 4, 8), smoothing=(0.2,), lags=(1, 2, 3), seasons=((7, 1), (7, 2)), season_means=((7, 4),)
)


def panel(values: FloatArray) -> SeriesPanel:
    T, n = values.shape
    ids = tuple(f"{t:03d}" for t in range(T))
    return SeriesPanel(ids, np.arange(T + 1) * n, np.tile(np.arange(n), T), values.ravel(), "D")


def seasonal(n_series: int = 30, n_periods: int = 98) -> FloatArray:
    """Noise around a week of each series' own."""
    rng = np.random.default_rng(0)
    weeks = rng.normal(size=(n_series, 7)) * 3.0
    return np.tile(weeks, n_periods // 7) + rng.normal(size=(n_series, n_periods))


def wandering(n_series: int = 30, n_periods: int = 100) -> FloatArray:
    return np.random.default_rng(0).normal(size=(n_series, n_periods)).cumsum(axis=1)


def test_series_with_a_season_get_seasons() -> None:
    chosen = choose_rows(panel(seasonal()), 7, widest=WIDEST)
    assert chosen.features.season_means == ((7, 4),)
    assert chosen.tried[0].error < min(
        one.error for one in chosen.tried if not (one.features.seasons or one.features.season_means)
    )


def test_series_that_wander_get_their_newest_value_and_no_season() -> None:
    features = choose_rows(panel(wandering()), 3, widest=WIDEST).features
    assert 1 in features.lags
    assert not features.seasons
    assert not features.season_means


def test_every_set_can_forecast_more_than_zero() -> None:
    widest = RowFeatures(windows=(2, 4), calendar=("day_of_week",))
    rng = np.random.default_rng(0)
    sparse = np.where(rng.random((40, 90)) < 0.02, 1.0, 0.0)
    for one in choose_rows(panel(sparse), 7, widest=widest).tried:
        assert one.features.windows


def test_a_set_that_is_far_worse_over_all_series_is_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    def errors(self: SharedModels, wanted: BoolArray, *, fit_intercept: bool) -> SharedErrors:
        """By series the less the fewer features, over all series twice as large without the window."""
        return SharedErrors(wanted.sum(axis=1).astype(float), np.where(wanted[:, 0], 1.0, 2.0))

    monkeypatch.setattr(SharedModels, "errors", errors)
    tried = choose_rows(panel(seasonal()), 7, widest=RowFeatures(windows=(28,), lags=(1, 2))).tried
    assert tried[0].features == RowFeatures(windows=(28,))
    assert [one.error_over_all for one in tried] == sorted(one.error_over_all for one in tried)


def test_more_series_than_memory_are_chosen_for_by_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 8 * 6 * len(WIDEST.names) ** 2 * 12)
    chosen = choose_rows(panel(seasonal()), 7, widest=WIDEST)
    assert chosen.n_series == 12
    assert chosen.features.season_means == ((7, 4),)


def test_lags_that_closed_days_interrupt_are_not_tried() -> None:
    values = seasonal(5)
    open_days = np.flatnonzero((np.arange(98) + 3) % 7 != 6)
    n = len(open_days)
    gaps = SeriesPanel(
        tuple("abcde"), np.arange(6) * n, np.tile(open_days, 5), values[:, open_days].ravel(), Frequency.DAY
    )
    chosen = choose_rows(gaps, 7)
    assert len(chosen.tried) > 0
    assert all(set(one.features.lags) <= {1} for one in chosen.tried)
    one_day = np.delete(np.arange(98), 40)
    rare = SeriesPanel(("a",), [0, 97], one_day, values[0, one_day], Frequency.DAY)
    assert max(max(one.features.lags, default=0) for one in choose_rows(rare, 7).tried) == 9


def test_a_history_too_short_to_hold_any_out_gets_all_features() -> None:
    chosen = choose_rows(panel(np.array([[1.0, 2.0], [2.0, 1.0]])), 1)
    assert chosen.tried == ()
    assert chosen.features.lags == (1,)


def test_lags_and_windows_leave_two_thirds_of_the_history_for_targets() -> None:
    chosen = choose_rows(panel(wandering(n_periods=63)), 3)
    tried = [one.features for one in chosen.tried]
    assert max(max(features.windows, default=1) for features in tried) == 14
    assert max(max(features.lags, default=1) for features in tried) == 21


@pytest.mark.parametrize("n_weeks", [100, 103, 104])
def test_growing_series_do_not_fall_where_a_second_season_comes_into_reach(n_weeks: int) -> None:
    """A mean of past years is of one year in all rows of training, and would be of two in the forecasts."""
    week, rng = np.arange(n_weeks + 12), np.random.default_rng(0)
    values = 50.0 + 3.0 * week + rng.normal(0.0, 2.0, (20, n_weeks + 12))
    history = replace(panel(values[:, :n_weeks]), frequency=Frequency("W"))
    forecasts = fit_forecaster(history, 12).forecast()["yhat"].to_numpy().reshape(20, 12)
    assert forecasts.mean(axis=0) == pytest.approx(50.0 + 3.0 * week[n_weeks:], rel=0.02)


def test_growing_series_are_forecast_along_their_trend() -> None:
    month, rng = np.arange(46), np.random.default_rng(0)
    slope = rng.uniform(-2.0, 4.0, (20, 1))
    values = 100.0 + slope * month + 0.5 * rng.normal(size=(20, 46))
    history = replace(panel(values[:, :40]), frequency=Frequency("MS"))
    forecaster = fit_forecaster(history, 6)
    assert forecaster.features.trends
    errors = forecaster.point_forecasts() - values[:, 40:]
    assert np.sqrt((errors**2).mean(axis=0)).max() < 1.0  # a flat line is up to 10 off at the last step


def test_series_that_wander_get_no_trend() -> None:
    features = choose_rows(replace(panel(wandering(n_periods=60)), frequency=Frequency("MS")), 6).features
    assert not features.trends


def test_seasons_that_few_targets_know_are_not_tried() -> None:
    def tried(n_periods: int) -> list[RowFeatures]:
        values = np.tile(np.random.default_rng(0).normal(size=(8, 1)), n_periods)
        weekly = replace(panel(values + wandering(8, n_periods)), frequency=Frequency("W"))
        return [one.features for one in choose_rows(weekly, 4).tried]

    assert {pair for one in tried(112) for pair in one.season_means} == set()
    assert {pair for one in tried(112) for pair in one.seasons} == {(52, 1)}
    assert {pair for one in tried(140) for pair in one.season_means} == {(52, 2)}
    assert {pair for one in tried(140) for pair in one.seasons} == {(52, 1), (52, 2)}


def test_the_forecaster_chooses_its_rows_and_says_what_it_tried() -> None:
    forecaster = fit_forecaster(panel(seasonal(10)), 7)
    tried = forecaster.report["rows_tried"]
    assert tried[0]["rows"] == forecaster.features.to_dict() == forecaster.report["rows"]
    assert {one["fit_intercept"] for one in tried} == {False, True}
    assert all(one["shared_model_error"] > 0.0 for one in tried)


def test_groups_hold_each_feature_once() -> None:
    widest = RowFeatures.widest("D", 7, 1000)
    names = [name for group in feature_groups(widest) for name in group]
    assert sorted(names) == sorted(widest.names)
    assert ("lag_1",) in feature_groups(widest)


def test_columns_that_help_are_among_the_features() -> None:
    rng = np.random.default_rng(0)
    period = np.arange(110)
    promotion, noise, stock = (rng.random(110) < 0.3), rng.normal(size=110), rng.normal(size=110)
    stock[100:] = np.nan  # not known ahead
    beside = np.stack([promotion, noise, stock], axis=1).astype(np.float64)
    values = 5.0 + 2.0 * promotion[:100] + 0.1 * rng.normal(size=(10, 100))
    values[:, 1:] += stock[:99]
    columns = SeriesColumns(
        ("promotion", "noise", "stock"), (), np.zeros(110, dtype=np.int64), period, beside, Frequency.DAY
    )
    features = choose_rows(panel(values), 1, columns=columns).features
    assert features.future == ("promotion",)
    assert features.past == ("stock",)
    model = fit_forecaster(panel(values), 1, columns=columns, fusion_strength=1.0)
    assert model.features == features
    assert model.point_forecasts(columns=columns)[0, 0] == pytest.approx(
        5.0 + 2.0 * promotion[100] + stock[99], abs=0.6
    )


def test_a_column_that_is_mostly_unknown_is_not_tried() -> None:
    period = np.arange(105)
    known = np.where(period < 60, np.nan, 1.0 * (period % 3))
    columns = SeriesColumns(("price",), (), np.zeros(105, np.int64), period, known[:, None], "D")  # type: ignore[arg-type]
    chosen = choose_rows(panel(seasonal(3)), 7, columns=columns)
    assert not any(one.features.past or one.features.future for one in chosen.tried)


def test_a_panel_without_values_is_refused() -> None:
    empty = SeriesPanel(("a",), np.zeros(2, dtype=np.int64), *np.empty((2, 0)), Frequency.DAY)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="the panel has values in 0 periods"):
        choose_rows(empty, 1)
