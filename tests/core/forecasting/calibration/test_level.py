"""Forecasts that are too low in sum where most values are zero, and the factor that makes their sum right."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import numpy as np
import polars as pl
import pytest

from ccmtl_core import ModelChoices, ParameterError
from ccmtl_core.forecasting import ForecastModel, RowFeatures, SeriesColumns, fit_forecaster
from ccmtl_core.forecasting.calibration.level import MOST, level_of
from ccmtl_core.forecasting.metrics import bias
from tests.core.forecasting.calibration.test_ranges import panel_of

ROWS = RowFeatures(windows=(2, 4))
FIXED: dict[str, Any] = {"choices": ModelChoices(metric="mahalanobis"), "fusion_strength": 1.0}


def rarely_sold(n_series: int = 150, n: int = 70) -> Any:
    rng = np.random.default_rng(5)
    return rng.poisson(np.clip(rng.lognormal(-2.2, 1.0, n_series), 0.02, 2.0)[:, None], (n_series, n)) * 1.0


def fitted(aim: str) -> ForecastModel:
    return fit_forecaster(panel_of(rarely_sold()[:, :-6]), 6, rows=ROWS, **FIXED, aim=aim)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def both() -> tuple[ForecastModel, ForecastModel]:
    return fitted("products"), fitted("totals")


def test_forecasts_for_totals_add_up_to_those_of_the_rival(both: tuple[ForecastModel, ForecastModel]) -> None:
    plain, corrected = (one.point_forecasts() for one in both)
    factor = both[1].report["level"]["factor"]
    assert factor > 1.1
    assert corrected == pytest.approx(plain * factor)
    assert corrected.sum() == pytest.approx(6 * rarely_sold()[:, -14:-6].mean(axis=1).sum())
    y = rarely_sold()[:, -6:]
    assert abs(bias(y, corrected)) < abs(bias(y, plain))


def test_the_report_has_errors_for_both_aims_whatever_the_aim(
    both: tuple[ForecastModel, ForecastModel],
) -> None:
    plain, corrected = (dict(one.report["level"]) for one in both)
    assert (plain.pop("aim"), corrected.pop("aim")) == ("products", "totals")
    assert plain == corrected
    assert plain["anchor"] == "window_average"
    assert plain["bias"]["products"] < -0.1 < plain["bias"]["totals"]
    assert plain["errors"]["products"] < plain["errors"]["totals"]
    assert plain["errors"]["products"] == pytest.approx(
        both[0].report["held_out"]["errors"]["ccmtl"], rel=1e-3
    )


def test_ranges_for_totals_are_of_errors_of_corrected_forecasts(
    both: tuple[ForecastModel, ForecastModel],
) -> None:
    y = rarely_sold()[:, -6:]
    for model in both:
        upper = model.quantile_forecasts([0.9])[:, :, 0]
        assert 0.88 < (y <= upper).mean() < 0.99
    plain, corrected = (model.ranges.quantiles.mean() for model in both)
    assert corrected < plain  # errors are less often above zero


def test_forecasts_that_are_right_in_sum_stay() -> None:
    values = np.random.default_rng(0).normal(100.0, 10.0, (40, 60))
    model = fit_forecaster(panel_of(values), 3, rows=ROWS, **FIXED, aim="totals")
    assert (model.report["level"]["anchor"], model.report["level"]["factor"]) == (None, 1.0)
    errors = model.report["level"]["errors"]
    assert errors["products"] == errors["totals"]


def test_sums_that_are_as_often_too_high_as_too_low_stay() -> None:
    y = np.array([4.0, 4.0, 4.0, 4.0])
    assert level_of({"ccmtl": np.array([5.0, 3.0, 5.0, 3.0]), "window_average": y, "y": y}).anchor is None
    assert level_of({"ccmtl": y - 1.0, "window_average": y + 3.0, "seasonal_naive": y, "y": y}).anchor == (
        "seasonal_naive"
    )
    assert level_of({"ccmtl": y - 1.0, "window_average": y - 0.8, "y": y}).anchor is None


def test_factors_are_bounded_and_one_where_nothing_is_forecast() -> None:
    y = np.array([4.0, 4.0, 4.0])
    found = level_of({"ccmtl": np.array([0.1, 0.0, 2.0]), "window_average": y, "y": y}).by_origin
    assert found.tolist() == [MOST, 1.0, 2.0]


def test_forecasts_with_columns_take_the_newest_factor_of_past_origins() -> None:
    values = rarely_sold()[:60, :60]
    days = [date(1970, 1, 1) + timedelta(days=d) for d in range(60)]
    table = pl.DataFrame({"ds": days, "open": [d % 9 > 0 for d in range(60)]})
    rows = RowFeatures(windows=(2, 4), past=("open",))
    model = fit_forecaster(
        panel_of(values), 3, rows=rows, columns=SeriesColumns.from_frame(table, "D"), **FIXED, aim="totals"
    )
    assert model.report["level"]["anchor"] == "window_average"
    assert 1.0 < model.report["level"]["factor"] <= MOST


def test_an_unknown_aim_is_refused() -> None:
    with pytest.raises(ParameterError, match="aim must be one of 'products', 'totals', not 'both'"):
        fitted("both")
