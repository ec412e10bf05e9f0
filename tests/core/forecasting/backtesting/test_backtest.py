"""Backtests: windows that no fit saw, errors beside those of rivals, and verdicts that say who wins."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

from ccmtl_core import DataError, ModelChoices, ParameterError
from ccmtl_core.forecasting import Backtest, RowFeatures, SeriesPanel, backtest, fit_forecaster
from ccmtl_core.forecasting.backtesting import windows
from ccmtl_core.forecasting.backtesting.scores import verdict_on
from ccmtl_core.forecasting.metrics import changes, coverage, pinball, rmsse, wape
from tests.core.forecasting.calibration.test_ranges import panel_of

ROWS = RowFeatures(windows=(1, 4), seasons=((7, 1), (7, 2)))
FIXED: dict[str, Any] = {
    "rows": ROWS,
    "choices": ModelChoices(metric="mahalanobis"),
    "fusion_strength": 1.0,
}


def weekly(n_series: int = 30, n: int = 60) -> Any:
    rng = np.random.default_rng(0)
    volume = rng.lognormal(1.0, 1.0, n_series)[:, None]
    wave = 3.0 * np.sin(2.0 * np.pi * np.arange(n) / 7.0 + rng.uniform(0.0, 6.0, (n_series, 1)))
    return volume * (6.0 + wave + rng.normal(size=(n_series, n)))


@pytest.fixture(scope="module")
def result() -> Backtest:
    return backtest(panel_of(weekly()), 5, n_origins=2, **FIXED)


def of(frame: pl.DataFrame, method: str = "ccmtl", **where: int) -> dict[str, Any]:
    return frame.filter(method=method, **where).row(0, named=True)


def test_each_window_is_forecast_by_a_fit_to_what_lay_before(result: Backtest) -> None:
    values, forecasts, ends = weekly(), [], []
    for origin in (50, 55):
        model = fit_forecaster(panel_of(values[:, :origin]), 5, **FIXED)
        forecasts.append(model.point_forecasts())
        ends.append(model.quantile_forecasts([0.1, 0.9]))
    yhat, y = np.concatenate(forecasts, axis=1), values[:, 50:]
    found = of(result.overall)
    assert found["wape"] == pytest.approx(wape(y, yhat).item())
    low, high = np.moveaxis(np.concatenate(ends, axis=1), 2, 0)
    assert found["coverage-80"] == pytest.approx(coverage(y, low, high).item())
    units = [np.repeat(changes(panel_of(values[:, :origin]))[1][:, None], 5, 1) for origin in (50, 55)]
    assert found["rmsse"] == pytest.approx(rmsse(y, yhat, np.concatenate(units, axis=1)).item())
    totals = wape(y.sum(axis=0)[None], yhat.sum(axis=0)[None]).item()
    assert found["wape_of_totals"] == pytest.approx(totals)
    assert result.report["origins"] == ["1970-02-19T00:00:00", "1970-02-24T00:00:00"]


def test_quantiles_are_scored_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    values, wanted = weekly(6, 40), [0.05, 0.5, 0.9]
    values[0, -1] = np.nan
    values[1] = np.arange(40) < 38  # it has not changed before the last window, and no unit there
    options = {**FIXED, "n_origins": 2, "rivals": ["seasonal_naive"]}
    found = backtest(panel_of(values), 3, level=[], quantiles=wanted, **options)
    table = found.by_quantile.filter(method="ccmtl")
    in_units, quantiles = [], []
    for origin in (34, 37):
        before = panel_of(values[:, :origin])
        quantiles.append(fit_forecaster(before, 3, **FIXED).quantile_forecasts(wanted))
        unit = changes(before)[1][:, None, None]
        in_units.append(np.where(unit > 0.0, unit, np.nan) + np.zeros((6, 3, 1)))
    y, unit, told = (
        values[:, 34:],
        np.concatenate(in_units, axis=1)[:, :, 0],
        np.concatenate(quantiles, axis=1),
    )
    losses = [pinball(y / unit, told[:, :, q] / unit, p).item() for q, p in enumerate(wanted)]
    assert table["pinball"].to_list() == pytest.approx(losses)
    assert of(found.overall)["pinball"] == pytest.approx(np.mean(losses))
    assert table["coverage"].to_list() == pytest.approx((told >= y[:, :, None]).sum((0, 1)) / 35)
    assert table["quantile"].to_list() == wanted
    assert table["pit"].is_between(0.0, 1.0).all()
    assert found.by_quantile["method"].unique().sort().to_list() == ["ccmtl", "seasonal_naive"]
    monkeypatch.setattr(windows, "_NUMBERS", 1)  # a series at a time
    again = backtest(panel_of(values), 3, level=[], quantiles=wanted, **options).by_quantile
    assert again["coverage"].equals(found.by_quantile["coverage"])
    assert again["pinball"].to_list() == pytest.approx(found.by_quantile["pinball"].to_list())


def test_naive_rivals_are_what_their_names_say(result: Backtest) -> None:
    values = weekly()
    seasonal = np.concatenate([values[:, o - 7 : o - 2] for o in (50, 55)], axis=1)
    average = np.concatenate([np.repeat(values[:, o - 8 : o].mean(1)[:, None], 5, 1) for o in (50, 55)], 1)
    y = values[:, 50:]
    assert of(result.overall, "seasonal_naive")["wape"] == pytest.approx(wape(y, seasonal).item())
    assert of(result.overall, "window_average")["wape"] == pytest.approx(wape(y, average).item())
    assert of(result.overall, "zero")["wape"] == 1.0
    assert of(result.overall, "zero")["bias"] == pytest.approx(-1.0, abs=0.01)  # some values are negative


def test_the_ranges_beat_those_of_the_seasonal_naive_forecast(result: Backtest) -> None:
    ours, naive = of(result.overall), of(result.overall, "seasonal_naive")
    assert ours["winkler-80"] < naive["winkler-80"]
    assert ours["pinball"] < naive["pinball"]
    assert abs(naive["coverage-80"] - 0.8) < 0.08
    assert abs(ours["pit-80"] - 0.8) < 0.08
    assert of(result.overall, "pooled")["winkler-80"] is None


def test_tables_are_by_series_by_step_and_by_decile_of_volume(result: Backtest) -> None:
    assert len(result.per_series) == 30 * 7
    assert result.by_step["step"].unique().sort().to_list() == [1, 2, 3, 4, 5]
    assert result.by_decile.filter(method="ccmtl")["n_series"].to_list() == [3] * 10
    volume = weekly()[:, :55].mean(axis=1)
    least = [f"s{t}" for t in np.argsort(volume)[:3]]
    own = result.per_series.filter(pl.col("unique_id").is_in(least), method="ccmtl")
    assert of(result.by_decile, decile=1)["rmsse"] == pytest.approx(own["rmsse"].mean())
    assert of(result.overall)["rmsse"] == pytest.approx(
        result.per_series.filter(method="ccmtl")["rmsse"].mean()
    )


def test_the_verdict_names_the_winner(result: Backtest) -> None:
    assert result.verdict.startswith("ccmtl wins over the naive forecasts: mean RMSSE")
    assert "the best of them is seasonal_naive" in result.verdict
    assert "On the same rows" in result.verdict
    assert repr(result) == f"Backtest(30 series, 2 windows of 5, {result.verdict})"


def test_the_verdict_says_whose_sums_are_far_off_and_who_is_not_scored() -> None:
    names, rmsse = ["ccmtl", "zero", "window_average"], [0.8, 1.1, 0.9]
    series = pl.DataFrame({"method": names, "rmsse": rmsse})

    def verdict(of_totals: list[float], bias: float, n_without: int = 0) -> str:
        overall = series.with_columns(
            pl.Series("wape_of_totals", of_totals), bias=pl.Series([bias, -1.0, 0.0])
        )
        return verdict_on(overall, series, n_without)

    low = verdict([0.33, 1.0, 0.02], -0.33, n_without=7)
    assert low.startswith("ccmtl wins over the naive forecasts: mean RMSSE 0.8")
    assert (
        "But the forecasts of ccmtl are in sum 33% too low: WAPE of totals 0.33, that of window_average"
        in low
    )
    assert low.endswith("Not scored, without a value before any window: 7 series.")
    assert "are far off in sum: WAPE" in verdict([0.33, 1.0, 0.02], 0.01)
    for near in ([0.05, 1.0, 0.02], [0.33, 1.0, 0.2]):
        assert "WAPE of totals" not in verdict(near, -0.33)
        assert "Not scored" not in verdict(near, -0.33)


def test_the_verdict_says_plainly_when_a_naive_forecast_wins() -> None:
    walk = np.cumsum(np.random.default_rng(3).normal(size=(20, 50)), axis=1) + 100.0
    found = backtest(panel_of(walk), 2, n_origins=1, **{**FIXED, "rows": RowFeatures(seasons=((14, 1),))})
    assert found.verdict.startswith("A naive forecast wins: window_average, mean RMSSE")
    rare = (np.random.default_rng(0).random((40, 60)) < 0.05) * 1.0
    rare[:, 55:] = 0.0
    sparse = backtest(panel_of(rare), 5, n_origins=1, **FIXED)
    assert sparse.verdict.startswith("A naive forecast wins: zero")
    assert "plans for no sales at all" in sparse.verdict


def test_json_holds_all_of_it_without_nan(result: Backtest) -> None:
    values = weekly(6, 40)
    values[0], values[1, :-3], values[2, 30:] = 4.0, np.nan, np.nan
    for found in (result, backtest(panel_of(values), 3, n_origins=2, **FIXED)):
        text = json.dumps(found.to_dict(), allow_nan=False)
        assert set(json.loads(text)) >= {"verdict", "overall", "by_decile", "by_step", "per_series", "rows"}


def test_series_that_begin_late_or_end_early() -> None:
    values = weekly(8, 40)
    values[0, :38], values[1, 30:], values[2, :36] = np.nan, np.nan, np.nan
    found = backtest(panel_of(values), 3, n_origins=1, **FIXED)
    assert found.report["n_without"] == 1  # the first of them begins in the window
    assert found.per_series["unique_id"].n_unique() == 7
    assert found.per_series.filter(unique_id="s1", method="ccmtl")["wape"].to_list() == [None]
    assert found.per_series.filter(unique_id="s2", method="ccmtl")["wape"][0] is not None


def test_series_that_stop_before_the_origin_are_forecast_from_the_origin() -> None:
    values = weekly(8, 60)
    values[0, 40:55] = np.nan
    found = backtest(panel_of(values), 5, n_origins=1, **FIXED)
    error = found.per_series.filter(unique_id="s0", method="ccmtl")["wape"][0]
    assert error < 0.6


def test_constant_series_are_forecast_exactly_and_their_ranges_hold_them() -> None:
    found = backtest(panel_of(np.full((3, 20), 5.0)), 2, n_origins=2, rows=ROWS)
    assert of(found.overall)["wape"] == 0.0
    assert of(found.overall)["coverage-80"] == 1.0
    assert of(found.overall)["rmsse"] is None
    assert found.verdict.startswith("No better than a naive forecast")


def test_rows_are_chosen_once() -> None:
    phases: list[str] = []
    found = backtest(
        panel_of(weekly(6, 40)), 2, n_origins=2, fusion_strength=1.0, on_phase=phases.append, rivals=["zero"]
    )
    assert phases.count("window 1 of 2: rows") == 1
    assert "window 2 of 2: rows" not in phases
    assert "window 2 of 2: selection" in phases
    assert found.overall["method"].to_list() == ["ccmtl", "zero"]
    assert len(found.report["windows"]) == 2


def test_without_levels_no_range_is_scored() -> None:
    found = backtest(panel_of(weekly(6, 40)), 2, n_origins=1, level=[], **FIXED)
    assert found.overall.columns == ["method", "wape", "mase", "rmsse", "bias", "wape_of_totals"]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda p: backtest(p, 5, n_origins=8), DataError, "8 windows of 5 periods leave fewer than two"),
        (
            lambda p: backtest(p, 5, rivals=["best"]),
            ParameterError,
            "there is no rival 'best'; there",
        ),
        (lambda p: backtest(p, 5, level=[0]), ParameterError, "level must hold numbers from 1 to 99"),
        (lambda p: backtest(p, 0), ParameterError, "horizon must be at least 1"),
        (lambda p: backtest(5, 5), ParameterError, "panel must be SeriesPanel"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_tested_back_is_refused(
    call: Callable[[SeriesPanel], Any], error: Any, message: str
) -> None:
    with pytest.raises(error, match=message):
        call(panel_of(weekly(3, 40)))
