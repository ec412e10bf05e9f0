"""Series of a panel with hardly any values: finite, sensible forecasts and ranges; others stay."""

from __future__ import annotations

import numpy as np
import pytest

from ccmtl_core import ModelChoices
from ccmtl_core.base.types import FloatArray
from ccmtl_core.forecasting import ForecastModel, RowFeatures, SeriesPanel, fit_forecaster
from ccmtl_core.forecasting.new import short_series

ROWS = RowFeatures(lags=(1,))
CHOICES = ModelChoices(fit_intercept=True)
H = 3


def panel_of(short: list[float], *, level: float = 100.0, n: int = 60) -> SeriesPanel:
    """Twelve walks around a level, and a short series that ends with them."""
    rng = np.random.default_rng(0)
    series = [level + 2.0 * np.cumsum(rng.normal(size=n)) * 0.5 + rng.normal(size=n) for _ in range(12)]
    series.append(np.array(short))
    offsets = np.concatenate([[0], np.cumsum([len(own) for own in series])])
    period = np.concatenate([np.arange(n - len(own), n) for own in series])
    ids = tuple(f"s{t}" for t in range(len(series)))
    return SeriesPanel(ids, offsets, period, np.concatenate(series), "D")  # type: ignore[arg-type]


def fitted(short: list[float], strength: float = 0.0) -> ForecastModel:
    return fit_forecaster(panel_of(short), H, rows=ROWS, choices=CHOICES, fusion_strength=strength)


@pytest.mark.parametrize("strength", [0.0, 1e6])
@pytest.mark.parametrize(
    "short", [[1.0, 10.0], [1.0, 10.0, 100.0], [1.0, 10.0, 100.0, 1000.0], [0.0, 0.0, 5.0], [4.0, 0.0, 0.0]]
)
def test_a_short_series_that_grows_does_not_explode(short: list[float], strength: float) -> None:
    """By weights of its own it grows tenfold each period; by an intercept of the others, to their level."""
    yhat = fitted(short, strength).point_forecasts(100)[-1]
    assert np.abs(yhat).max() <= 3.0 * max(short)


def test_other_series_stay_bit_for_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    found = fitted([1.0, 10.0, 100.0])
    assert found.report["n_short"] == 1
    others = found.unique_ids[:-1]
    quantiles = found.quantile_forecasts([0.1, 0.9], unique_ids=others)
    module = "ccmtl_core.forecasting.forecaster.with_short_series"
    monkeypatch.setattr(module, lambda forecaster, *_: forecaster)
    plain = fitted([1.0, 10.0, 100.0])
    assert np.abs(plain.point_forecasts(100)[-1]).max() > 1e3
    assert (found.point_forecasts(unique_ids=others) == plain.point_forecasts(unique_ids=others)).all()
    assert (quantiles == plain.quantile_forecasts([0.1, 0.9], unique_ids=others)).all()


@pytest.mark.parametrize("short", [[50.0], [0.0], [0.0, 0.0], [7.0, 7.0, 7.0, 7.0]])
def test_a_short_series_that_has_not_changed_has_ranges_with_a_width(short: list[float]) -> None:
    found = fitted(short, 10.0)
    low, high = np.moveaxis(found.quantile_forecasts([0.1, 0.9])[-1], 1, 0)
    yhat = found.point_forecasts(30)[-1]
    assert np.isfinite(yhat).all()
    assert (low <= yhat[:H]).all()
    assert (high > low).all()
    if not any(short):
        assert (yhat == 0.0).all()


def test_ranges_of_short_series_hold_their_share() -> None:
    """Of 150 series half have one to six values before what is forecast."""
    rng = np.random.default_rng(3)
    T, n = 150, 50
    y = rng.gamma(4.0, rng.lognormal(2.0, 1.0, T)[:, None] / 4.0, (T, n + H))
    known = np.where(np.arange(T) % 2 == 0, n, 1 + np.arange(T) // 2 % 6)
    offsets = np.concatenate([[0], np.cumsum(known)])
    period = np.concatenate([np.arange(n - k, n) for k in known])
    values = np.concatenate([own[n - k : n] for own, k in zip(y, known, strict=True)])
    panel = SeriesPanel(tuple(map(str, range(T))), offsets, period, values, "D")  # type: ignore[arg-type]
    rows = RowFeatures(windows=(1, 4, 12))
    found = fit_forecaster(panel, H, rows=rows, choices=CHOICES, fusion_strength=100.0)
    short = known < n
    assert found.report["n_short"] == short.sum()
    assert _inside(found, y[:, n:], short, 0.8) >= 0.77
    assert _inside(found, y[:, n:], short, 0.95) >= 0.92


def _inside(found: ForecastModel, y: FloatArray, of: np.ndarray, level: float) -> float:
    ends = found.quantile_forecasts([0.5 - level / 2, 0.5 + level / 2])
    return float(((y >= ends[:, :, 0]) & (y <= ends[:, :, 1]))[of].mean())


def test_where_all_series_are_short_none_is_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    values = rng.random((5, 6))
    panel = SeriesPanel(tuple("abcde"), 6 * np.arange(6), [*range(6)] * 5, values.ravel(), "D")  # type: ignore[arg-type]
    assert fit_forecaster(panel, 2, rows=ROWS).report["n_short"] == 0
    assert short_series.ENOUGH > 6
