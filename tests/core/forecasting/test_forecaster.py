"""How a forecaster is fitted: its rows, what validation chooses, its report, and histories of every kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ccmtl_core import DataError, ModelChoices, ParameterError, fit
from ccmtl_core.forecasting import (
    ForecastModel,
    RowFeatures,
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
from tests.core.forecasting.panels import ROWS, noisy, panel_of


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
    residuals, size, _, n_newest = seen[-1]
    assert n_newest == 18, "all, where they are few"
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
    first = int(panel.frequency.to_period([report["first"]])[0])
    assert (first, report["n_series"]) == (22, 6)
    values = panel.values.reshape(6, 40) / series_scale(panel.until(first - 1))[:, None]
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


def test_no_held_out_value_is_in_the_unit_that_its_error_is_told_in() -> None:
    values = noisy().values.reshape(6, 40).copy()
    values[1, :22] = 3.0  # has no unit before the values that are held out
    told = []
    for size in (1.0, 10.0):
        values[0, 22:] = size * (1.0 + np.arange(18) % 2)
        panel = SeriesPanel(tuple("abcdef"), np.arange(7) * 40, [*range(40)] * 6, values.ravel(), "D")
        held_out = fit_forecaster(panel, 2, rows=ROWS, fusion_strength=1.0).report["held_out"]
        assert held_out["n_series"] == 5
        told.append(5.0 * held_out["errors"]["zero"])
    unit = series_scale(panel.until(21))[0]
    both = np.concatenate([values[0, 22:], values[0, 23:]]) / 10.0
    grown = (10.0 - 1.0) * np.sqrt((both**2).mean()) / unit
    assert told[1] - told[0] == pytest.approx(grown)


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
