"""A fitted forecaster: the weights that rows have, forecasts that are dated, and histories of every kind."""

from __future__ import annotations

import pickle
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from ccmtl_core import DataError, ModelChoices, ModelFileError, ParameterError, UnknownTaskError, fit
from ccmtl_core.forecasting import (
    ForecastModel,
    RowFeatures,
    SeriesColumns,
    SeriesPanel,
    direct_rows,
    direct_statistics,
    fit_forecaster,
    lag_dataset,
    latest_rows,
    series_scale,
)
from ccmtl_core.forecasting.calibration import value_ranges
from ccmtl_core.forecasting.calibration.error_ranges import range_table
from ccmtl_core.forecasting.fitted.latest_rows import without_lone_values

ROWS = RowFeatures(windows=(1, 3), seasons=((4, 1),))


def panel_of(*series: list[float], frequency: str = "D", start: int = 0) -> SeriesPanel:
    offsets = np.concatenate([[0], np.cumsum([len(own) for own in series])])
    period = [start + p for own in series for p in range(len(own))]
    values = [value for own in series for value in own]
    return SeriesPanel(tuple(f"s{t}" for t in range(len(series))), offsets, period, values, frequency)  # type: ignore[arg-type]


def noisy(n_series: int = 6, n: int = 40, seed: int = 0) -> SeriesPanel:
    rng = np.random.default_rng(seed)
    size = rng.lognormal(2.0, 1.0, n_series)[:, None]
    season = np.tile([1.0, 3.0, 2.0, 0.5], (n_series, n))[:, :n]
    return panel_of(*(size * (season + 0.2 * rng.normal(size=(n_series, n)) + 1.0)).tolist())


@pytest.fixture(scope="module")
def forecaster() -> ForecastModel:
    return fit_forecaster(noisy(), 3, rows=ROWS)


def test_the_forecasts_are_those_of_a_fit_to_the_rows() -> None:
    panel = noisy()
    choices = ModelChoices(fit_intercept=True, metric="mahalanobis")
    model = fit_forecaster(panel, 3, rows=ROWS, choices=choices, fusion_strength=2.0)
    rows = direct_rows(panel, ROWS, 3, origins=range(3, 39))
    plain = fit(rows.dataset, 2.0, choices=choices).model
    np.testing.assert_allclose(model.model.weights, plain.weights, rtol=1e-6)
    scale = series_scale(panel)
    X, _ = latest_rows(panel.values.reshape(6, 40), ROWS, scale, [1, 2, 3], [39] * 6, "D")
    yhat = (np.einsum("thp,tp->th", X, plain.weights) + plain.intercept[:, None]) * scale[:, None]
    np.testing.assert_allclose(model.point_forecasts(), np.maximum(yhat, 0.0), rtol=1e-5)


def test_lags_alone_at_one_step_are_the_papers_model() -> None:
    panel = noisy()
    choices = ModelChoices()
    forecasts = fit_forecaster(panel, 1, rows=RowFeatures.for_lags(2), choices=choices, fusion_strength=0.0)
    scaled = SeriesPanel(
        panel.unique_ids, panel.offsets, panel.period, panel.values / np.repeat(series_scale(panel), 40), "D"
    )
    plain = fit(lag_dataset(scaled, 2).dataset, 0.0).model
    np.testing.assert_allclose(forecasts.model.weights, plain.weights, rtol=1e-9)


def test_validation_decides_on_the_intercept_and_the_report_lists_what_was_tried(
    forecaster: ForecastModel,
) -> None:
    report = forecaster.report
    assert [tried["choices"]["fit_intercept"] for tried in report["tried"]] == [False, True]
    least = [min(tried["errors"]) for tried in report["tried"]]
    assert report["error"] == min(least)
    assert report["choices"]["fit_intercept"] is (least[1] < least[0])
    assert report["choices"]["metric"] == "mahalanobis"
    assert report["fusion_strength"] in report["tried"][int(least[1] < least[0])]["fusion_strengths"]
    assert set(report["tried"][0]["rivals"]) >= {"pooled", "single_task", "shrunk_same_choices"}
    assert report["n_rows"] == sum(int(b.n_samples.sum()) for b in direct_statistics(noisy(), ROWS, 3))


def test_choices_that_simple_models_leave_behind_are_not_fused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ccmtl_core.forecasting.forecaster.promising", lambda simple: np.array([False, True]))
    report = fit_forecaster(noisy(), 3, rows=ROWS).report
    left_out, fused = report["tried"]
    assert left_out["fusion_strengths"] == left_out["errors"] == []
    assert left_out["rivals"].keys() == fused["rivals"].keys()
    assert report["choices"] == fused["choices"]
    assert report["error"] == min(fused["errors"])


def test_ranges_are_of_forecasts_by_fits_to_the_blocks_before(monkeypatch: pytest.MonkeyPatch) -> None:
    panel, choices = noisy(), ModelChoices(metric="mahalanobis")
    seen: list[Any] = []

    def watched(*given: Any) -> Any:
        seen.append(given)
        return range_table(*given)

    monkeypatch.setattr(value_ranges, "range_table", watched)
    model = fit_forecaster(panel, 3, rows=ROWS, choices=choices, fusion_strength=2.0, n_blocks=3)
    residuals, size, _ = seen[-1]
    assert size == pytest.approx([np.abs(own).mean() for own in panel.values.reshape(6, 40)] / model.scale)
    blocks = direct_statistics(panel, ROWS, 3, n_blocks=3)
    rows = direct_rows(panel, ROWS, 3, origins=range(3, 39))
    assert residuals.shape == (6, 18, 3)  # half of the 36 targets
    missing = np.argwhere(np.isnan(residuals[0]))  # no model was fitted when these forecasts were due
    assert missing.tolist() == [[0, 1], [0, 2], [1, 2]]
    early = fit(blocks[0], 2.0, choices=choices, tolerance=1e-3).model
    X, y = rows.dataset.X, rows.dataset.y
    of_row = (rows.dataset.task_index == 2) & (rows.target_period == 23) & (rows.step == 2)
    expected = y[of_row] - X[of_row] @ early.weights[2]
    assert residuals[2, 23 - 22, 1] == pytest.approx(expected.item(), rel=1e-5)


def test_held_out_errors_by_step_are_those_of_the_residuals_and_of_forecasts_by_hand() -> None:
    panel = noisy()
    report = fit_forecaster(panel, 2, rows=ROWS, fusion_strength=1.0).report["held_out"]
    values = panel.values.reshape(6, 40) / series_scale(panel)[:, None]
    first = int(panel.frequency.to_period([report["first"]])[0])
    assert (first, report["n_series"]) == (22, 6)
    assert report["n_rows"] == 6 * (2 * (40 - first) - 1)  # no fit was made before the first origin
    for k in (1, 2):
        targets = range(first + k - 1, 40)
        by_hand = {
            "zero": [values[:, p] for p in targets],
            "window_average": [values[:, p] - values[:, p - k - 7 : p - k + 1].mean(axis=1) for p in targets],
            "seasonal_naive": [values[:, p] - values[:, p - 7] for p in targets],
        }
        for name, errors in by_hand.items():
            expected = np.sqrt((np.array(errors) ** 2).mean(axis=0)).mean()
            assert report["errors_by_step"][name][k - 1] == pytest.approx(expected)
    squares = np.concatenate([values[:, first:], values[:, first + 1 :]], axis=1) ** 2
    zero = np.sqrt(squares.mean(axis=1)).mean()
    assert report["errors"]["zero"] == pytest.approx(zero)
    assert report["errors"]["ccmtl"] < report["errors"]["window_average"]
    assert report["bias"]["zero"] == -1.0
    assert abs(report["bias"]["ccmtl"]) < 0.1


def test_a_rival_that_the_history_cannot_tell_is_left_out() -> None:
    report = fit_forecaster(noisy(n=12), 1, rows=RowFeatures(windows=(1,)), fusion_strength=1.0).report
    assert set(report["held_out"]["errors"]) == {"ccmtl", "zero", "window_average"}


def test_left_out_pairs_of_origin_and_target_are_counted() -> None:
    panel = panel_of([1.0, 2.0, 4.0, 1.0, 3.0, 2.0, 5.0, 1.0])
    panel = panel.take(np.array([0]))
    gap = SeriesPanel(("a",), [0, 7], [0, 1, 2, 4, 5, 6, 7], np.delete(panel.values, 3), "D")
    rows = RowFeatures(lags=(1, 2))
    report = fit_forecaster(gap, 2, rows=rows, fusion_strength=1.0).report
    made = direct_rows(gap, rows, 2, origins=range(1, 7))
    assert (report["n_rows"], report["n_left_out"]) == (len(made.step), made.n_left_out)
    assert made.n_left_out > 0


def test_phases_are_told_as_they_begin() -> None:
    phases: list[str] = []
    fit_forecaster(noisy(n=24), 1, on_phase=phases.append, fusion_strength=1.0)
    assert phases == ["rows", "statistics", "selection", "residuals"]
    phases.clear()
    fit_forecaster(panel_of([1.0, 2.0]), 1, rows=RowFeatures(windows=(1,)), on_phase=phases.append)
    assert phases == ["statistics", "selection"]


def test_of_several_choices_validation_takes_one() -> None:
    tried = [ModelChoices(), ModelChoices(n_neighbors=2)]
    report = fit_forecaster(noisy(), 2, rows=ROWS, choices=tried, fusion_strength=1.0).report
    assert [one["choices"]["n_neighbors"] for one in report["tried"]] == [10, 2]
    assert report["fit"]["status"] == "converged"
    assert report["fit"]["gap"] <= 1e-4


def test_dates_follow_the_newest_value_of_each_series() -> None:
    start = {
        "h": datetime(2024, 2, 28, 22),
        "D": date(2024, 2, 27),
        "W": date(2024, 2, 26),
        "MS": date(2024, 1, 1),
    }
    expected = {
        "h": [datetime(2024, 2, 29, 18), datetime(2024, 2, 29, 19)],
        "D": [date(2024, 3, 18), date(2024, 3, 19)],
        "W": [date(2024, 7, 15), date(2024, 7, 22)],
        "MS": [date(2025, 9, 1), date(2025, 10, 1)],
    }
    for frequency, first in start.items():
        shape = noisy(3, 20)
        times = SeriesPanel.from_frame(
            pl.DataFrame({"unique_id": ["a"], "ds": [first], "y": [1.0]}), frequency
        ).period
        panel = SeriesPanel(shape.unique_ids, shape.offsets, shape.period + times, shape.values, frequency)
        frame = fit_forecaster(panel, 2, rows=ROWS, fusion_strength=1.0).forecast()
        assert frame["unique_id"].to_list() == ["s0", "s0", "s1", "s1", "s2", "s2"]
        assert frame["ds"].to_list() == expected[frequency] * 3


def test_month_ends_are_followed_by_the_next_months() -> None:
    ends = [
        date(2023, m, 28) + timedelta(days=31 - 28 if m in (1, 3, 5, 7, 8, 10, 12) else 0)
        for m in range(1, 13)
    ]
    frame = pl.DataFrame({"unique_id": ["a"] * 12, "ds": ends, "y": [float(i % 3) for i in range(12)]})
    panel = SeriesPanel.from_frame(frame, "MS")
    dates = fit_forecaster(panel, 2, rows=RowFeatures(windows=(1,))).forecast()["ds"]
    assert dates.to_list() == [date(2024, 1, 1), date(2024, 2, 1)]


def test_times_with_a_zone_count_for_their_local_date() -> None:
    shape = noisy(1, 20)
    times = pl.datetime_range(
        datetime(2024, 3, 25), datetime(2024, 4, 13), "1d", time_zone="Europe/Berlin", eager=True
    )
    frame = pl.DataFrame({"unique_id": ["a"] * 20, "ds": times, "y": shape.values})
    panel = SeriesPanel.from_frame(frame, "D")
    forecast = fit_forecaster(panel, 1, rows=ROWS, fusion_strength=1.0).forecast()
    assert forecast["ds"].to_list() == [date(2024, 4, 14)]


def test_steps_beyond_the_horizon_feed_on_the_forecasts_before_them(forecaster: ForecastModel) -> None:
    whole = forecaster.point_forecasts(8)
    panel = noisy()
    values = panel.values.reshape(6, 40)
    for done in (3, 6):
        longer = panel_of(*np.concatenate([values, whole[:, :done]], axis=1).tolist())
        np.testing.assert_allclose(
            forecaster.point_forecasts(2, panel=longer), whole[:, done : done + 2], rtol=1e-12
        )
    assert (forecaster.point_forecasts(3) == whole[:, :3]).all()


def test_forecasts_that_feed_on_themselves_stay_finite() -> None:
    panel = panel_of([1.0, 2.0, 4.0, 8.0], [-1.0, -3.0, -9.0, -27.0])
    rows, choices = RowFeatures(lags=(1,)), ModelChoices()
    model = fit_forecaster(panel, 1, rows=rows, choices=choices, fusion_strength=0.0)
    yhat = model.point_forecasts(2_000)
    np.testing.assert_allclose(yhat[:, :3], [[16.0, 32.0, 64.0], [-81.0, -243.0, -729.0]])
    assert np.isfinite(yhat).all()
    assert abs(yhat[:, -1] / [8e6, -27e6] - 1.0).max() < 1.0
    parts = model.contributions(100).drop("unique_id", "ds", "yhat").to_numpy().sum(axis=1)
    np.testing.assert_allclose(parts, yhat[:, :100].ravel())


def test_newer_values_are_forecast_from_without_a_fit(forecaster: ForecastModel) -> None:
    later = noisy(seed=1)
    frame = forecaster.forecast(panel=later)
    assert frame["ds"][0] == date(1970, 2, 10)
    assert not np.allclose(frame["yhat"], forecaster.forecast()["yhat"])
    some = panel_of(later.values[:40].tolist(), later.values[40:80].tolist())
    assert forecaster.forecast(panel=some).equals(frame[:6])


def test_some_series_in_the_order_asked_for(forecaster: ForecastModel) -> None:
    frame = forecaster.forecast(unique_ids=["s4", "s1"])
    assert frame["unique_id"].to_list() == ["s4"] * 3 + ["s1"] * 3
    whole = forecaster.forecast()
    assert frame["yhat"].to_list() == [*whole["yhat"][12:15], *whole["yhat"][3:6]]
    assert forecaster.forecast(panel=noisy(), unique_ids=["s4", "s1"]).equals(frame)


def test_series_that_it_was_not_fitted_to_are_named(forecaster: ForecastModel) -> None:
    with pytest.raises(UnknownTaskError, match="unknown task 's9'"):
        forecaster.forecast(unique_ids=["s9"])
    with pytest.raises(UnknownTaskError, match="unknown task 's6'"):
        forecaster.forecast(panel=noisy(7))
    with pytest.raises(DataError, match="the panel does not hold the series 's5'"):
        forecaster.forecast(panel=noisy(5), unique_ids=["s5"])


def test_a_panel_of_another_frequency_is_refused(forecaster: ForecastModel) -> None:
    with pytest.raises(DataError, match="the panel's frequency is 'W', the model's 'D'"):
        forecaster.forecast(panel=panel_of([1.0, 2.0], frequency="W"))


def test_contributions_add_up_to_the_forecast(forecaster: ForecastModel) -> None:
    frame = forecaster.contributions(5)
    assert frame.columns == ["unique_id", "ds", "yhat", *ROWS.names, "intercept", "adjustment"]
    parts = frame.drop("unique_id", "ds", "yhat").to_numpy().sum(axis=1)
    np.testing.assert_allclose(parts, frame["yhat"], rtol=1e-12)
    assert frame.select("unique_id", "ds", "yhat").equals(forecaster.forecast(5))
    assert (frame["adjustment"] == 0.0).all()
    still = fit_forecaster(panel_of([5.0] * 8, [1.0, 2.0] * 4), 1, rows=RowFeatures(windows=(1,)))
    assert still.contributions(unique_ids=["s0"]).row(0)[2:] == (5.0, 0.0, 0.0, 5.0)


def test_a_file_brings_the_same_forecasts_back(forecaster: ForecastModel, tmp_path: Path) -> None:
    forecaster.save(tmp_path / "f.npz")
    again = ForecastModel.load(tmp_path / "f.npz")
    for other in (again, pickle.loads(pickle.dumps(forecaster))):
        assert other.forecast(7).equals(forecaster.forecast(7))
        assert other.report == forecaster.report
        assert other.forecast(level=[80]).equals(forecaster.forecast(level=[80]))
        assert not other.tail.flags.writeable
    assert repr(again) == (
        "ForecastModel(6 series, 3 features [level_1, level_3, season_4_1], 3 periods ahead, frequency D)"
    )


def test_another_file_is_refused(forecaster: ForecastModel, tmp_path: Path) -> None:
    forecaster.model.save(tmp_path / "m.npz")
    with pytest.raises(ModelFileError, match="damaged or not a model file"):
        ForecastModel.load(tmp_path / "m.npz")
    forecaster.save(tmp_path / "f.npz")
    content = bytearray((tmp_path / "f.npz").read_bytes())
    content[content.index(b"s4")] = ord("t")
    (tmp_path / "f.npz").write_bytes(content)
    with pytest.raises(ModelFileError):
        ForecastModel.load(tmp_path / "f.npz")


def test_a_constant_series_has_its_constant_for_forecast() -> None:
    panel = panel_of([0.1] * 40, *noisy(3).values.reshape(3, 40).tolist(), [-7.0] * 3)
    model = fit_forecaster(panel, 3, rows=ROWS)
    assert model.point_forecasts(9)[[0, 4]].tolist() == [[0.1] * 9, [-7.0] * 9]
    changed = panel_of([0.1] * 39 + [0.4])
    assert model.point_forecasts(panel=changed)[0].tolist() != [0.1] * 3
    assert fit_forecaster(panel_of([5.0] * 4, [2.0] * 4), 2, rows=ROWS).point_forecasts().tolist() == [
        [5.0, 5.0],
        [2.0, 2.0],
    ]


@pytest.mark.parametrize("value", [0.0, 5.0])
def test_series_that_all_are_constant_need_no_choice_of_rows(value: float) -> None:
    model = fit_forecaster(panel_of([value] * 30, [value] * 9), 7)
    assert model.point_forecasts(9).tolist() == [[value] * 9] * 2


def test_an_all_zero_series_has_a_forecast_of_zero() -> None:
    panel = panel_of([0.0] * 40, *noisy(3).values.reshape(3, 40).tolist())
    frame = fit_forecaster(panel, 3, rows=ROWS).forecast(7)
    assert frame.filter(unique_id="s0")["yhat"].to_list() == [0.0] * 7


def test_forecasts_end_at_zero_unless_values_were_negative() -> None:
    falling = [float(v) for v in range(20, 0, -1)]
    panel = panel_of(falling, [v - 10.0 for v in falling])
    rows = RowFeatures(lags=(1, 2))
    forecasts = fit_forecaster(
        panel, 9, rows=rows, choices=ModelChoices(), fusion_strength=0.0
    ).point_forecasts(30)
    assert forecasts[0].min() == 0.0
    assert forecasts[1].min() < -10.0


def test_negative_sales_among_newer_values_let_forecasts_fall_below_zero() -> None:
    falling = [float(v) for v in range(20, 0, -1)]
    rows = RowFeatures(lags=(1, 2))
    model = fit_forecaster(panel_of(falling), 1, rows=rows, choices=ModelChoices(), fusion_strength=0.0)
    np.testing.assert_allclose(model.point_forecasts(3), 0.0, atol=1e-9)
    newer = panel_of([*falling, 0.0, -1.0, -2.0])
    np.testing.assert_allclose(model.point_forecasts(3, panel=newer), [[-3.0, -4.0, -5.0]])


def test_six_points_of_history() -> None:
    panel = panel_of([3.0, 1.0, 4.0, 1.0, 5.0, 9.0], [2.0, 7.0, 1.0, 8.0, 2.0, 8.0], frequency="MS")
    for rows in (RowFeatures.widest("MS", 2, 6), RowFeatures(windows=(1, 2))):
        yhat = fit_forecaster(panel, 2, rows=rows).point_forecasts()
        assert yhat.shape == (2, 2)
        assert np.isfinite(yhat).all()


def test_two_values_of_one_series_are_the_least_history() -> None:
    model = fit_forecaster(panel_of([1.0, 2.0]), 3, rows=RowFeatures(windows=(1,)))
    assert np.isfinite(model.point_forecasts()).all()
    assert model.report["tried"] == []
    with pytest.raises(DataError, match="values in 1 period"):
        fit_forecaster(panel_of([1.0]), 3, rows=RowFeatures(windows=(1,)))
    with pytest.raises(DataError, match="values in 0 periods"):
        fit_forecaster(panel_of([], []), 3)


def test_a_short_series_among_long_ones_has_a_forecast() -> None:
    panel = panel_of(*noisy(4).values.reshape(4, 40).tolist(), [2.0, 9.0])
    model = fit_forecaster(panel, 3, rows=RowFeatures.for_lags(8))
    assert np.isfinite(model.point_forecasts()).all()


def test_a_series_without_values_has_no_rows() -> None:
    panel = panel_of(*noisy(3).values.reshape(3, 40).tolist(), [])
    model = fit_forecaster(panel, 3, rows=ROWS)
    assert "s3" not in model.forecast()["unique_id"].to_list()
    assert np.isnan(model.point_forecasts()[3]).all()
    assert len(model.contributions()) == 9


@pytest.mark.parametrize("rows", [RowFeatures(windows=(7,), seasons=((7, 1),)), None])
def test_closed_days_are_gaps(rows: RowFeatures | None) -> None:
    days = [d for d in range(60) if (d + 3) % 7 != 6]  # no Sundays
    rng = np.random.default_rng(0)
    values = [10.0 + 5.0 * ((d + 3) % 7) + rng.normal() for d in days]
    panel = SeriesPanel(("shop",), [0, len(days)], days, values, "D")  # type: ignore[arg-type]
    frame = fit_forecaster(panel, 7, rows=rows).forecast()
    assert np.isfinite(frame["yhat"].to_numpy()).all()
    weekday = frame["ds"].dt.weekday().to_numpy()
    expected = 10.0 + 5.0 * (weekday - 1)
    assert abs(frame["yhat"].to_numpy() - expected)[weekday < 7].max() < 4.0


def test_integers_and_ids_of_any_kind() -> None:
    frame = pl.DataFrame(
        {
            "unique_id": ["a/b"] * 8 + ["0471"] * 8,
            "ds": [date(2024, 1, 1 + i) for i in range(8)] * 2,
            "y": [1, 2, 3, 4] * 4,
        }
    )
    model = fit_forecaster(SeriesPanel.from_frame(frame, "D"), 2, rows=RowFeatures(windows=(1, 2)))
    assert model.forecast(unique_ids=["a/b"])["unique_id"].to_list() == ["a/b"] * 2


def test_a_slash_in_an_id(tmp_path: Path) -> None:
    shape = noisy(2, 12)
    ids = ("shop/7", "../ü 日本")
    panel = SeriesPanel(ids, shape.offsets, shape.period, shape.values, "D")  # type: ignore[arg-type]
    fit_forecaster(panel, 2, rows=RowFeatures(windows=(1, 2))).save(tmp_path / "f.npz")
    again = ForecastModel.load(tmp_path / "f.npz")
    for name in ids:
        assert again.forecast(unique_ids=[name])["unique_id"].to_list() == [name] * 2


def test_tens_of_thousands_of_ids_in_one_request() -> None:
    panel = noisy(20_000, 8)
    model = fit_forecaster(
        panel, 2, rows=RowFeatures(windows=(1,)), choices=ModelChoices(), fusion_strength=0.0
    )
    frame = model.forecast(28)
    assert len(frame) == 560_000
    assert np.isfinite(frame["yhat"].to_numpy()).all()


def with_promotions(n: int = 40, ahead: int = 3) -> tuple[SeriesPanel, SeriesColumns]:
    """Three series that a promotion, at the target, lifts by twice their size."""
    rng = np.random.default_rng(0)
    promotion = (rng.random((3, n + ahead)) < 0.3).astype(np.float64)
    size = np.array([1.0, 10.0, 100.0])[:, None]
    values = size * (5.0 + 2.0 * promotion[:, :n] + 0.1 * rng.normal(size=(3, n)))
    series, period = np.repeat(np.arange(3), n + ahead), np.tile(np.arange(n + ahead), 3)
    ids = ("s0", "s1", "s2")
    columns = SeriesColumns(("promotion",), ids, series, period, promotion.reshape(-1, 1), "D")  # type: ignore[arg-type]
    return panel_of(*values.tolist()), columns


def test_a_column_that_is_known_ahead_moves_the_forecast() -> None:
    panel, columns = with_promotions()
    rows = RowFeatures(windows=(8,), future=("promotion",))
    model = fit_forecaster(panel, 3, rows=rows, columns=columns)
    yhat = model.point_forecasts(columns=columns) / np.array([[1.0], [10.0], [100.0]])
    promotion = columns.values.reshape(3, -1)[:, 40:]
    assert 0.0 < promotion.mean() < 1.0
    np.testing.assert_allclose(yhat, 5.0 + 2.0 * promotion, atol=0.4)
    frame = model.contributions(columns=columns)
    assert ((frame["future_promotion"] == 0.0).to_numpy() == (promotion.ravel() == 0.0)).all()


def test_missing_future_rows_are_listed_and_refused() -> None:
    panel, columns = with_promotions(ahead=2)
    rows = RowFeatures(windows=(8,), past=("promotion",), future=("promotion",))
    model = fit_forecaster(panel, 3, rows=rows, columns=columns)
    missing = model.missing_columns(columns=columns)
    assert missing.rows() == [(f"s{t}", date(1970, 2, 12), "promotion") for t in range(3)]
    with pytest.raises(DataError, match=r"3 faults .*\n- series 's0', 1970-02-12: 'promotion' is not known"):
        model.forecast(columns=columns)
    assert len(model.forecast(2, columns=columns)) == 6
    assert model.missing_columns(2, columns=columns).is_empty()
    assert len(model.missing_columns(2, unique_ids=["s1"])) == 3  # today's and those of two days
    with pytest.raises(ParameterError, match="the features name the columns promotion, promotion: give them"):
        model.forecast()


def test_a_holiday_is_one_for_all_series() -> None:
    panel, _ = with_promotions()
    days = [date(1970, 1, 1) + timedelta(days=d) for d in range(50)]
    frame = pl.DataFrame({"ds": days, "holiday": [d % 11 == 0 for d in range(50)]})
    holiday = SeriesColumns.from_frame(frame, "D")
    model = fit_forecaster(panel, 3, rows=RowFeatures(windows=(2,), future=("holiday",)), columns=holiday)
    assert np.isfinite(model.point_forecasts(columns=holiday)).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rows": "lags"}, "rows must be RowFeatures, not str"),
        ({"horizon": 0}, "horizon must be at least 1, not 0"),
        ({"n_blocks": 1}, "n_blocks must be at least 2, not 1"),
        ({"fusion_strength": "best"}, "fusion_strength must be a number or"),
        ({"choices": "mahalanobis"}, "choices must be ModelChoices, not str"),
        ({"panel": 5}, "panel must be SeriesPanel, not int"),
        ({"on_progress": 5}, "on_progress must be a function"),
    ],
)
def test_arguments_out_of_their_range_are_refused(arguments: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"panel": noisy(2, 8), "horizon": 1, "rows": ROWS, **arguments}
    with pytest.raises(ParameterError, match=message):
        fit_forecaster(**given)


@pytest.mark.parametrize("choices", [[], [ModelChoices(), 3]])
def test_choices_of_another_kind_are_refused(choices: Any) -> None:
    with pytest.raises(ParameterError, match="choices must"):
        fit_forecaster(noisy(), 1, choices=choices)


def test_steps_out_of_range_are_refused(forecaster: ForecastModel) -> None:
    with pytest.raises(ParameterError, match="h must be at least 1, not 0"):
        forecaster.forecast(0)
    with pytest.raises(ParameterError, match="h must be at most"):
        forecaster.contributions(10**9)


def test_one_mistyped_value_does_not_rule_the_forecasts() -> None:
    values = noisy(n=40).values.reshape(6, 40) + 50.0
    rows = RowFeatures(windows=(4, 16))
    right = fit_forecaster(panel_of(*values), 3, rows=rows, fusion_strength=1.0)
    values[2, -1] *= 1e6
    model = fit_forecaster(panel_of(*values), 3, rows=rows, fusion_strength=1.0)
    assert (right.report["n_cut"], model.report["n_cut"]) == (0, 1)
    assert np.abs(model.point_forecasts()[2]).max() < 15.0 * np.abs(values[2, :-1]).max()
    others = np.delete(model.point_forecasts(), 2, axis=0)
    assert others == pytest.approx(np.delete(right.point_forecasts(), 2, axis=0), rel=0.2)


def test_values_are_cut_if_one_alone_is_ten_times_as_large_as_all_others() -> None:
    def newest(*values: float) -> Any:
        return without_lone_values(np.array([values]))[0].tolist()

    usual = [1.0, -2.0, 1.0, 2.0, 1.0, 2.0]
    assert newest(*usual, 1.0, 500.0) == [*usual, 1.0, 20.0]
    assert newest(*usual, -500.0, np.nan, 1.0) == pytest.approx([*usual, -20.0, np.nan, 1.0], nan_ok=True)
    assert newest(*usual, 500.0, 400.0) == [*usual, 500.0, 400.0]  # two are no mistake
    assert newest(*usual, 1.0, 19.0) == [*usual, 1.0, 19.0]
    assert newest(*[0.0] * 7, 500.0) == [*[0.0] * 7, 500.0]
    assert newest(*usual, 500.0) == [*usual, 500.0]  # too few to tell
