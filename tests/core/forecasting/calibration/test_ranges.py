"""Ranges: what share of values they hold on data of many kinds, and what thin and constant series have."""

from __future__ import annotations

import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from ccmtl_core import DataError, ModelChoices, ParameterError
from ccmtl_core.base.types import BoolArray
from ccmtl_core.forecasting import ForecastModel, RowFeatures, SeriesPanel, fit_forecaster
from ccmtl_core.forecasting.calibration.error_ranges import range_table
from ccmtl_core.forecasting.calibration.range_table import PROBABILITIES, RangeTable
from ccmtl_core.forecasting.metrics import coverage, winkler
from ccmtl_core.series.calendar import Frequency
from tests.support.real_data import DATA, needs

HORIZON = 7
CAR_PARTS = DATA / "r_demand_sets" / "expsmooth_carparts.csv"
WALMART = DATA / "walmart_store_sales" / "walmart-recruiting-store-sales-forecasting.zip"
LEVELS = {"windows": (1, 2, 4, 8)}


def panel_of(values: Any, frequency: str = "D") -> SeriesPanel:
    """Rows of values, NaN where there is none."""
    rows = np.asarray(values, dtype=np.float64)
    known = ~np.isnan(rows)
    offsets = np.concatenate([[0], np.cumsum(known.sum(axis=1))])
    ids = tuple(f"s{t}" for t in range(len(rows)))
    return SeriesPanel(ids, offsets, np.nonzero(known)[1], rows[known], Frequency(frequency))


def fitted(values: Any, horizon: int = HORIZON, frequency: str = "D", **rows: Any) -> ForecastModel:
    features = RowFeatures(**(rows or LEVELS))
    choices = ModelChoices(metric="mahalanobis")
    return fit_forecaster(
        panel_of(values, frequency), horizon, rows=features, choices=choices, fusion_strength=1.0
    )


def ends(model: ForecastModel, level: float) -> tuple[Any, Any]:
    found = model.quantile_forecasts([0.5 - level / 200, 0.5 + level / 200])
    return found[:, :, 0], found[:, :, 1]


def assert_covered(values: Any, model: ForecastModel, horizon: int = HORIZON) -> None:
    """At least the level less 3 points over all, and less 8 in each decile of volume."""
    history, y = values[:, :-horizon], values[:, -horizon:]
    volume = np.nanmean(np.abs(history), axis=1)
    decile = np.argsort(np.argsort(volume, kind="stable")) * 10 // len(y)
    for level in (80, 95):
        lower, upper = ends(model, level)
        assert coverage(y, lower, upper) >= level / 100 - 0.03
        share = coverage(y, lower, upper, "series")
        assert min(np.nanmean(share[decile == d]) for d in range(10)) >= level / 100 - 0.08


def generated(kind: str) -> Any:
    rng = np.random.default_rng(1)
    T, n = 400, 90
    volume, t = rng.lognormal(1.0, 1.5, T)[:, None], np.arange(n)
    if kind == "intermittent":
        return rng.poisson(np.clip(0.2 * volume, 0.02, 1.0), (T, n)) * np.ceil(rng.gamma(2.0, 2.0, (T, n)))
    if kind == "trending":
        drift = rng.normal(0.0, 0.2, (T, 1)) * t + np.cumsum(rng.normal(0.0, 0.5, (T, n)), axis=1)
        return volume * (20.0 + drift + rng.normal(size=(T, n)))
    if kind == "seasonal":
        wave = 3.0 * np.sin(2.0 * np.pi * t / 7.0 + rng.uniform(0.0, 6.0, (T, 1)))
        return volume * (5.0 + wave + rng.normal(size=(T, n)))
    return volume * (10.0 + rng.standard_t(2.2, (T, n)))


@pytest.mark.parametrize("kind", ["intermittent", "trending", "seasonal", "heavy tails"])
def test_ranges_hold_their_share_over_all_and_in_each_decile_of_volume(kind: str) -> None:
    values = generated(kind)
    rows = {**LEVELS, "seasons": ((7, 1), (7, 2))} if kind == "seasonal" else LEVELS
    assert_covered(values, fitted(values[:, :-HORIZON], **rows))


@pytest.mark.slow
@needs(CAR_PARTS)
def test_ranges_hold_their_share_of_car_parts() -> None:
    wide = pl.read_csv(CAR_PARTS, null_values=["NA", ""], infer_schema_length=None)
    numbers = wide.select(pl.selectors.numeric()).to_numpy().astype(np.float64)
    values = (numbers if len(numbers) > 1000 else numbers.T)[:, -51:]
    values = values[~np.isnan(values).any(axis=1)]
    assert_covered(
        values, fitted(values[:, :-6], 6, "MS", windows=(1, 3, 6, 12), smoothing=(0.1, 0.2)), horizon=6
    )


@pytest.mark.slow
@needs(WALMART)
def test_ranges_hold_their_share_of_walmart() -> None:
    with zipfile.ZipFile(WALMART) as outer:
        name = next(n for n in outer.namelist() if Path(n).name.startswith("train.csv"))
        inner = outer.open(name)
        with zipfile.ZipFile(inner) as archive:
            table = pl.read_csv(archive.read("train.csv"), infer_schema_length=None)
    wide = table.pivot("Date", index=["Store", "Dept"], values="Weekly_Sales", sort_columns=True)
    values = wide.drop("Store", "Dept").to_numpy().astype(np.float64)
    values = values[~np.isnan(values).any(axis=1)]
    rows: dict[str, Any] = {
        "windows": (1, 2, 4, 8, 13),
        "seasons": ((52, 1),),
        "season_levels": ((52, 4),),
    }
    assert_covered(values, fitted(values[:, :-8], 8, "W", **rows), horizon=8)


def test_each_sides_range_is_its_own() -> None:
    errors = np.random.default_rng(0).exponential(size=(50, 40, 1)) - 1.0
    table = range_table(errors, np.ones(50), np.zeros(50))
    lower, upper = table.errors(np.array([0]), 1, [0.05, 0.95])[0, 0] / table.spread[0]
    assert lower == pytest.approx(-0.95, abs=0.1)
    assert upper == pytest.approx(2.0, abs=0.3)


def test_a_series_own_errors_widen_its_ranges_as_far_as_there_are_many() -> None:
    errors = np.random.default_rng(0).normal(size=(300, 40, 1))
    errors[0] *= 3.0
    errors[100] *= 3.0
    errors[100, 4:] = np.nan
    errors[200] = np.nan
    spread = range_table(errors, np.ones(300), np.zeros(300)).spread
    assert spread[0] > 2.0 * np.median(spread)
    assert np.median(spread) < spread[100] < spread[0]
    assert spread[200] == pytest.approx(np.median(spread), rel=0.1)


def test_quantiles_are_of_the_newest_errors_and_spreads_of_all() -> None:
    errors = np.random.default_rng(0).normal(size=(300, 60, 1))
    errors[:, :40] *= 2.0
    wild = np.arange(300) % 10 == 0
    errors[wild] *= 3.0
    nothing = np.ones(300), np.zeros(300)
    both, all_periods = (range_table(errors, *nothing, n_newest) for n_newest in (20, None))
    newest = range_table(errors[:, 40:], *nothing)

    def width(table: RangeTable, series: BoolArray) -> float:
        return float(np.diff(table.errors(np.flatnonzero(series), 1, [0.1, 0.9])).mean())

    assert width(both, ~wild) == pytest.approx(2 * 1.28, rel=0.1)
    assert width(all_periods, ~wild) > 1.3 * width(both, ~wild)
    assert width(both, wild) / width(both, ~wild) > 1.1 * width(newest, wild) / width(newest, ~wild)


def test_sparse_series_and_steady_ones_do_not_pool() -> None:
    rng = np.random.default_rng(0)
    errors = np.concatenate([rng.exponential(size=(50, 40, 1)) - 1.0, rng.normal(size=(50, 40, 1))])
    table = range_table(errors, np.repeat([0.1, 9.0], 50), np.zeros(100))
    assert not set(table.group[:50]) & set(table.group[50:])
    alike = range_table(errors, np.ones(100), np.repeat([4, 7], 50))
    assert not set(alike.group[:50]) & set(alike.group[50:])


def test_series_of_small_clusters_pool_together() -> None:
    errors = np.random.default_rng(0).normal(size=(100, 10, 1))
    group = range_table(errors, np.ones(100), np.arange(100)).group
    assert 1 <= len(set(group)) <= 2
    few = range_table(errors[:70], np.ones(70), np.repeat([0, 1], [65, 5])).group
    assert set(few) == {0}


def test_few_errors_of_a_step_borrow_from_the_steps_beside_it() -> None:
    errors = np.random.default_rng(0).normal(size=(20, 20, 4)) * [1.0, 2.0, 3.0, 4.0]
    errors[1:, :, 3] = np.nan
    errors[:, 5:, 3] = np.nan
    lower, upper = range_table(errors, np.ones(20), np.zeros(20)).quantiles[0, 3, [4, -5]]
    assert lower < 0.0 < upper
    assert upper - lower > 2.0
    errors[:, :, 3] = np.nan
    quantiles = range_table(errors, np.ones(20), np.zeros(20)).quantiles
    assert quantiles[0, 3, -5] > quantiles[0, 1, -5]


def test_without_errors_ranges_are_those_of_a_random_walk() -> None:
    table = range_table(np.empty((2, 0, 4)), np.ones(2), np.zeros(2))
    assert table.errors(np.array([1]), 4, [0.9])[0, :, 0] == pytest.approx(
        1.2816 * np.sqrt([1, 2, 3, 4]), 1e-4
    )


def test_steps_beyond_the_horizon_have_wider_ranges() -> None:
    model = fitted(generated("seasonal")[:20])
    lower, upper = ends(model, 80)
    further = model.quantile_forecasts([0.1, 0.9], 28)
    width = further[:, :, 1] - further[:, :, 0]
    assert further.shape == (20, 28, 2)
    assert (further[:, :HORIZON, 0] == lower).all()
    errors = model.ranges.errors(np.arange(20), 28, [0.9])
    assert errors[:, 27] == pytest.approx(2.0 * errors[:, 6])
    assert (width[:, 27] >= (upper - lower)[:, 6]).mean() > 0.9


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_ranges_of_80_percent_hold_their_forecast_where_all_errors_were_to_one_side(side: float) -> None:
    quantiles = np.sort(side * np.linspace(1.0, 3.0, len(PROBABILITIES)))
    table = RangeTable(quantiles[None, None], np.array([0]), np.ones(1))
    told = table.errors(np.array([0]), 1, PROBABILITIES)[0, 0] + 10.0
    found = table.around(np.full((1, 1), 10.0), np.array([0]), np.ones(1), np.array([False]), PROBABILITIES)
    outer = np.abs(np.array(PROBABILITIES) - 0.5) >= 0.4 - 1e-9
    beyond = outer & ((np.array(PROBABILITIES) < 0.5) == (side > 0.0))
    assert beyond.sum() == 5
    assert (found[0, 0] == np.where(beyond, 10.0, told)).all()


def test_columns_are_named_by_level_and_quantile() -> None:
    values = generated("seasonal")[:5]
    frame = fitted(values).forecast(2, level=[80, 97.5], quantiles=[0.1, 0.025])
    names = ["yhat-lo-80", "yhat-hi-80", "yhat-lo-97.5", "yhat-hi-97.5", "yhat-q-10", "yhat-q-2.5"]
    assert frame.columns == ["unique_id", "ds", "yhat", *names]
    assert (frame["yhat-lo-97.5"] <= frame["yhat-lo-80"]).all()
    assert (frame["yhat-lo-80"] < frame["yhat-hi-80"]).all()
    assert frame["yhat-q-10"].to_list() == frame["yhat-lo-80"].to_list()
    assert np.isfinite(frame.select(pl.selectors.numeric()).to_numpy()).all()


def test_ranges_end_at_zero_unless_values_were_negative() -> None:
    values = generated("intermittent")[:40]
    assert ends(fitted(values), 95)[0].min() == 0.0
    assert ends(fitted(values - 5.0), 95)[0].min() < 0.0


def test_a_constant_series_has_ranges_of_no_width() -> None:
    values = generated("seasonal")[:8]
    values[0], values[1] = 5.0, 0.0
    lower, upper = ends(fitted(values), 95)
    assert (lower[:2] == upper[:2]).all()
    assert lower[:2, 0].tolist() == [5.0, 0.0]
    assert (lower[2:] < upper[2:]).all()


def test_thin_series_have_finite_ranges() -> None:
    values = generated("heavy tails")[:30]
    values[0, :-2], values[1, :-1], values[2, 5:] = np.nan, np.nan, np.nan
    assert np.isfinite(fitted(values).quantile_forecasts(PROBABILITIES, 20)).all()
    for n in (2, 3, 6):
        few = fitted(generated("heavy tails")[:3, :n], 2)
        lower, upper = ends(few, 95)
        assert np.isfinite(lower).all()
        assert (lower < upper).all()


def test_a_series_without_values_has_no_range() -> None:
    values = generated("seasonal")[:4]
    values[3] = np.nan
    model = fitted(values)
    assert "s3" not in model.forecast(level=[80])["unique_id"].to_list()


def test_newer_values_move_ranges_along() -> None:
    values = generated("seasonal")[:20]
    model, later = fitted(values[:, :60]), panel_of(values)
    frame = model.forecast(2, panel=later, level=[80])
    inside = frame.filter(pl.col("yhat").is_between(pl.col("yhat-lo-80"), pl.col("yhat-hi-80")))
    assert len(inside) > 36
    assert frame["ds"][0] > model.forecast()["ds"][0]


def test_the_table_of_very_many_series_is_small() -> None:
    errors = np.random.default_rng(0).normal(size=(40_000, 3, 4)).astype(np.float32)
    tracemalloc.start()
    table = range_table(errors, np.ones(40_000), np.arange(40_000))
    assert tracemalloc.get_traced_memory()[1] < 40 * errors.nbytes
    tracemalloc.stop()
    assert table.quantiles.nbytes + table.group.nbytes + table.spread.nbytes < 1_000_000


def test_wider_levels_cost_what_they_should() -> None:
    values = generated("seasonal")[:100]
    model = fitted(values[:, :-HORIZON], windows=(4,), seasons=((7, 1),))
    lower, upper = ends(model, 80)
    middle = (lower + upper) / 2.0
    y = values[:, -HORIZON:]
    best = winkler(y, lower, upper, 80)
    for factor in (0.6, 1.6):
        other = winkler(y, middle + factor * (lower - middle), middle + factor * (upper - middle), 80)
        assert best < other


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda m: m.forecast(level=[100]), ParameterError, "level must hold numbers from 1 to 99, not 100"),
        (lambda m: m.forecast(level=["80"]), ParameterError, "level must hold numbers"),
        (lambda m: m.forecast(level=80), DataError, "level"),
        (lambda m: m.forecast(quantiles=[0.0]), ParameterError, "quantiles must hold numbers from 0.005"),
        (lambda m: m.quantile_forecasts([0.999]), ParameterError, "quantiles must lie from 0.005 to 0.995"),
        (lambda m: range_table([1.0], [1.0], [0]), DataError, r"residuals must be \(T, N, h\)"),
        (lambda m: RangeTable(np.ones((1, 1, 3)), [0], [1.0]), DataError, "quantiles must be"),
        (lambda m: RangeTable(-np.arange(25.0)[None, None], [0], [1.0]), DataError, "must not fall"),
        (lambda m: RangeTable(np.ones((1, 1, 25)), [0], [-1.0]), DataError, "spread must be finite"),
        (lambda m: RangeTable(np.ones((1, 1, 25)), [1], [1.0]), DataError, "group"),
    ],
)
def test_what_makes_no_range_is_refused(
    call: Callable[[ForecastModel], Any], error: Any, message: str
) -> None:
    with pytest.raises(error, match=message):
        call(fitted(generated("seasonal")[:3, :20], 2))
