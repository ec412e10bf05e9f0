"""Ranges of series that are often zero: whole numbers, with the probability of zero kept apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ccmtl_core import DataError
from ccmtl_core.forecasting import ForecastModel, RangeTable
from ccmtl_core.forecasting.calibration.value_ranges import ranges_of, sparse_series
from ccmtl_core.forecasting.metrics import coverage, randomised_pit, winkler
from tests.core.forecasting.calibration.test_ranges import HORIZON, fitted, panel_of

FINE = np.arange(1, 200) / 200


def counts(kind: str, n_series: int = 400, n: int = 110) -> Any:
    """Values of series of unlike volume, zero in most periods."""
    rng = np.random.default_rng(2)
    mean = np.clip(rng.lognormal(-1.2, 0.9, n_series), 0.03, 1.5)[:, None]
    if kind == "pieces":
        return rng.poisson(mean, (n_series, n)) * 1.0
    if kind == "packs":
        return rng.poisson(mean, (n_series, n)) * 6.0
    if kind == "lots":
        return rng.poisson(mean / 2.0, (n_series, n)) * np.ceil(rng.gamma(2.0, 2.0, (n_series, n)))
    open_day = np.arange(n) % 7 < 5
    return np.round(200.0 * mean * (1.0 + 0.1 * rng.normal(size=(n_series, n)))) * open_day


@pytest.fixture(scope="module")
def pieces() -> ForecastModel:
    return fitted(counts("pieces")[:, :-HORIZON])


@pytest.mark.parametrize("kind", ["pieces", "packs", "lots", "closed days"])
def test_the_randomised_pit_of_sparse_counts_is_uniform_over_all_and_by_decile(kind: str) -> None:
    values = counts(kind)
    rows: dict[str, Any] = {"windows": (4, 28), "seasons": ((7, 1), (7, 2))} if kind == "closed days" else {}
    model = fitted(values[:, :-HORIZON], **rows)
    history, y = values[:, :-HORIZON], values[:, -HORIZON:]
    pit = np.abs(randomised_pit(y, model.quantile_forecasts(FINE), FINE) - 0.5)
    decile = np.argsort(np.argsort(history.mean(axis=1), kind="stable")) * 10 // len(y)
    for level in (80, 95):
        inside = pit <= level / 200
        assert inside.mean() == pytest.approx(level / 100, abs=0.03)
        assert [inside[decile == d].mean() for d in range(10)] == pytest.approx([level / 100] * 10, abs=0.08)
        lower, upper = np.moveaxis(model.quantile_forecasts([0.5 - level / 200, 0.5 + level / 200]), 2, 0)
        covered = coverage(y, lower, upper, "series")
        assert covered.mean() >= level / 100 - 0.03
        assert min(covered[decile == d].mean() for d in range(10)) >= level / 100 - 0.08


def test_ranges_of_sparse_counts_cost_less_than_ranges_of_errors() -> None:
    values = counts("lots")
    model, y = fitted(values[:, :-HORIZON]), values[:, -HORIZON:]
    own = np.moveaxis(model.quantile_forecasts([0.1, 0.9]), 2, 0)
    errors = model.ranges.errors(np.arange(len(y)), HORIZON, [0.1, 0.9]) * model.scale[:, None, None]
    of_errors = np.moveaxis(np.maximum(model.point_forecasts()[:, :, None] + errors, 0.0), 2, 0)
    assert winkler(y, *own, 80) < winkler(y, *of_errors, 80)


def test_ends_of_ranges_are_what_a_series_can_have(pieces: ForecastModel) -> None:
    ends = pieces.quantile_forecasts([0.1, 0.5, 0.9, 0.975])
    assert (ends == np.round(ends)).all()
    assert (ends[:, :, 0] == 0.0).mean() > 0.9
    packs = fitted(counts("packs")[:60, :-HORIZON]).quantile_forecasts([0.9, 0.975])
    assert (packs % 6.0 == 0.0).all()
    assert packs.max() > 6.0


def test_zero_is_as_likely_as_it_is_often(pieces: ForecastModel) -> None:
    zero = (pieces.quantile_forecasts(FINE) == 0.0).mean(axis=2)
    y = counts("pieces")[:, -HORIZON:]
    assert zero.mean() == pytest.approx((y == 0.0).mean(), abs=0.03)
    busy = pieces.point_forecasts() > 0.8
    assert zero[busy].mean() == pytest.approx((y[busy] == 0.0).mean(), abs=0.08)
    assert zero[busy].mean() < 0.6 < zero[~busy].mean()


def test_series_are_told_of_by_their_values_if_they_are_often_zero() -> None:
    found = sparse_series(panel_of([[0.0, 2.0] * 10, [1.0, 2.0] * 10, [0.0, -2.0] * 10, [0.0] * 20]))
    assert found.size.tolist() == pytest.approx([2.0, np.nan, np.nan, np.nan], nan_ok=True)
    assert sparse_series(panel_of([[0.0, 2.5] * 10])).grid.tolist() == [0.0]
    assert sparse_series(panel_of([[0.0, 1e300, 12.0, 18.0] * 5])).grid.tolist() == [0.0]
    assert sparse_series(panel_of([[0.0, 6.0, 12.0, 18.0] * 5])).grid.tolist() == [6.0]


def test_values_that_are_no_whole_numbers_have_ranges_that_are_none() -> None:
    values = counts("lots")[:80] * 1.37
    ends = fitted(values).quantile_forecasts([0.9])
    assert (ends > 0.0).any()
    assert np.abs(ends / 1.37 - np.round(ends / 1.37)).max() > 0.01


def test_a_newer_negative_value_leaves_a_range_of_errors(pieces: ForecastModel) -> None:
    newer = counts("pieces")[:, :-HORIZON].copy()
    newer[3, -1] = -4.0
    ends = pieces.quantile_forecasts([0.025], panel=panel_of(newer))
    assert ends[3].min() < 0.0
    assert (np.delete(ends, 3, axis=0) >= 0.0).all()


def test_forecasts_higher_than_any_before_have_ranges_as_much_higher(pieces: ForecastModel) -> None:
    newer = counts("pieces")[:, :-HORIZON].copy()
    newer[0, -20:] = 500.0
    lower, upper = np.moveaxis(pieces.quantile_forecasts([0.1, 0.9], panel=panel_of(newer)), 2, 0)
    yhat = pieces.point_forecasts(panel=panel_of(newer))[0]
    assert (yhat > 100.0).all()
    assert (lower[0] < yhat).all()
    assert (upper[0] > yhat).all()


def test_steps_beyond_the_horizon_have_ranges_too(pieces: ForecastModel) -> None:
    ends = pieces.quantile_forecasts([0.1, 0.9], 3 * HORIZON)
    assert np.isfinite(ends).all()
    assert (ends[:, :, 0] <= ends[:, :, 1]).all()


def test_a_file_holds_them(pieces: ForecastModel, tmp_path: Path) -> None:
    pieces.save(tmp_path / "pieces.npz")
    again = ForecastModel.load(tmp_path / "pieces.npz")
    assert (again.quantile_forecasts(FINE) == pieces.quantile_forecasts(FINE)).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"size": [2.0]}, "values must be of 28 heights"),
        ({"size": [0.0], "values": np.zeros((28, 1, 25))}, "size must be positive, or NaN"),
        (
            {"size": [1.0], "values": -np.ones((28, 1, 25)).cumsum(axis=2)},
            "values must be finite",
        ),
        ({"size": [1.0], "values": np.full((28, 1, 25), 2.0)}, "values must begin with a probability"),
        ({"grid": [-1.0]}, "grid must be finite and not negative"),
    ],
)
def test_tables_of_values_that_do_not_fit_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        RangeTable(np.zeros((1, 1, 25)), [0], [1.0], **given)  # type: ignore[arg-type]


def test_of_many_errors_the_newest_third_makes_ranges_no_wider_than_all_periods_allow() -> None:
    T, N = 1000, 33
    errors = np.random.default_rng(0).normal(size=(T, N, 4)).astype(np.float32)
    errors[:, :22] *= 5.0
    panel = panel_of(np.random.default_rng(1).normal(size=(T, N)))
    table = ranges_of(panel, np.ones(T), errors, 0, np.zeros(T, dtype=np.int64))
    lower, upper = np.moveaxis(table.errors(np.arange(T), 4, [0.025, 0.975]), 2, 0)
    assert lower.mean() == pytest.approx(-2.1, abs=0.3)
    assert upper.mean() == pytest.approx(2.1, abs=0.3)
