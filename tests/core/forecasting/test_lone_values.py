"""One value far above all others of its series, as a mistyped one, rules neither fit nor forecast."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from ccmtl_core import ParameterError
from ccmtl_core.forecasting import (
    RowFeatures,
    SeriesPanel,
    backtest,
    fit_forecaster,
    new_products,
    without_lone_values,
)
from tests.core.forecasting.calibration.test_ranges import panel_of

ROWS = RowFeatures(windows=(4, 16))
USUAL = (1.0, -2.0, 1.0, 2.0, 1.0, 2.0)


def fives(n_series: int = 6, n: int = 60) -> Any:
    return np.random.default_rng(1).poisson(5.0, (n_series, n)).astype(float)


def fitted(values: Any) -> Any:
    return fit_forecaster(panel_of(values), 3, rows=ROWS, fusion_strength=1.0)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([*USUAL, 1.0, 500.0], [*USUAL, 1.0, 2.0]),
        ([-500.0, *USUAL, np.nan, 1.0], [-2.0, *USUAL, np.nan, 1.0]),
        ([*USUAL, 500.0, 400.0], None),  # two are no mistake
        ([*USUAL, 500.0, 500.0], None),
        ([*USUAL, 1.0, 20.0], None),
        ([*USUAL, 500.0], None),  # too few to tell
        ([0.0] * 9 + [1.0, 500.0], None),
        ([0.0] * 9 + [1.0, 2.0, 50.0], [0.0] * 9 + [1.0, 2.0, 2.0]),
        ([1e300] * 8 + [1e308], [1e300] * 9),
        ([], None),
    ],
)
def test_a_value_is_cut_if_it_alone_is_far_above_all_others(
    values: list[float], expected: list[float] | None
) -> None:
    panel = panel_of(np.array([values, [np.nan] * len(values)]))
    found = without_lone_values(panel)
    expected = values if expected is None else expected
    assert found.panel.values.tolist() == [value for value in expected if not np.isnan(value)]
    assert found.cut.height == (values != expected)
    assert (found.panel is panel) == (values == expected)


def test_values_of_one_period_in_several_series_are_no_mistakes() -> None:
    values = fives(8)
    values[:2, 50] *= 1e4
    assert without_lone_values(panel_of(values)).cut["unique_id"].to_list() == ["s0", "s1"]
    values[2, 50] *= 1e4
    values[3, 20] *= 1e4  # a mistake of another period
    assert without_lone_values(panel_of(values)).cut["unique_id"].to_list() == ["s3"]


@pytest.mark.parametrize("place", [10, 57, 59])
def test_a_mistyped_value_hardly_changes_what_is_learned_and_forecast(place: int) -> None:
    values = fives()
    right, values[2, place] = fitted(values), 1e5
    model = fitted(values)
    assert model.scale == pytest.approx(right.scale, rel=0.2)
    assert model.point_forecasts() == pytest.approx(right.point_forecasts(), abs=1.0)
    expected, found = (one.quantile_forecasts([0.1, 0.9]) for one in (right, model))
    assert found == pytest.approx(expected, abs=2.5)
    assert (right.report["n_cut"], right.report["cut"], model.report["n_cut"]) == (0, [], 1)
    others = float(np.delete(values[2], place).max())
    day = str(np.datetime64(place, "D"))
    assert model.report["cut"] == [{"unique_id": "s2", "ds": day, "y": 1e5, "counted_as": others}]


def test_newer_values_are_cut_alike_until_there_is_a_second_one() -> None:
    values = fives()
    model = fitted(values)
    newer = np.concatenate([values, np.full((6, 1), 5.0)], axis=1)
    newer[2, -1] = 1e5
    once = model.point_forecasts(panel=panel_of(newer))
    assert once[2].max() < 10.0
    assert model.with_newest(panel_of(newer)).point_forecasts() == pytest.approx(once)
    newer[2, 30] = 1e5
    assert model.point_forecasts(panel=panel_of(newer))[2].min() > 100.0
    assert fitted(newer).report["n_cut"] == 0


def test_first_values_of_new_products_are_cut_alike() -> None:
    values = fives()
    kinds = pl.DataFrame({"unique_id": [*(f"s{t}" for t in range(6)), "new"], "kind": ["a"] * 7})
    first = np.array([5.0] * 7 + [1e5, 4.0, 5.0, 6.0])
    panel = SeriesPanel(("new",), [0, 11], list(range(49, 60)), first, "D")
    found = new_products(fitted(values), kinds, panel=panel)
    assert found.forecaster.point_forecasts().max() < 10.0


def test_backtests_learn_without_and_score_the_values_as_they_are() -> None:
    values = fives(20)
    options: dict[str, Any] = {"n_origins": 2, "rows": ROWS, "fusion_strength": 1.0}
    right = backtest(panel_of(values), 5, **options)
    values[3, 40], values[4, 57] = 1e5, 1e6
    found = backtest(panel_of(values), 5, **options)
    assert [window["n_cut"] for window in found.report["windows"]] == [1, 1]
    assert found.report["windows"][0]["cut"][0]["unique_id"] == "s3"

    def wape(result: Any, method: str, series: str) -> float:
        return float(result.per_series.filter(method=method, unique_id=series)["wape"].item())

    for method in ("ccmtl", "window_average", "pooled"):
        assert wape(found, method, "s3") == pytest.approx(wape(right, method, "s3"), abs=0.1)
        assert wape(found, method, "s4") > 0.99


def test_what_is_no_panel_is_refused() -> None:
    with pytest.raises(ParameterError, match="panel must be SeriesPanel, not list"):
        without_lone_values([1.0])  # type: ignore[arg-type]
