"""Errors of forecasts, quantiles and ranges, against numbers that utilsforecast 0.2.17 gave for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ccmtl_core import DataError, ParameterError
from ccmtl_core.forecasting import SeriesPanel
from ccmtl_core.forecasting.metrics import (
    bias,
    changes,
    coverage,
    mase,
    pinball,
    randomised_pit,
    rmsse,
    wape,
    winkler,
)

Y = np.array([[2.0, 4.0, 0.0], [0.0, 2.0, 5.0]])
YHAT = np.array([[3.0, 4.0, 1.0], [0.0, 1.0, 7.5]])
LOWER = np.array([[1.0, 4.5, 0.0], [0.0, 0.0, 2.0]])
UPPER = np.array([[4.0, 6.0, 0.5], [1.0, 3.0, 4.0]])
HISTORY = SeriesPanel(
    ("a", "b"), [0, 5, 10], [*range(5)] * 2, [1.0, 3.0, 2.0, 6.0, 5.0, 4.0, 4.0, 9.0, 0.0, 1.0], "D"
)  # type: ignore[arg-type]
NAN = float("nan")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (wape(Y, YHAT, "series"), [0.3333333333333333, 0.5]),
        (bias(Y, YHAT, "series"), [0.3333333333333333, 0.21428571428571427]),
        (mase(Y, YHAT, changes(HISTORY)[0], "series"), [0.3333333333333333, 0.3111111111111111]),
        (mase(Y, YHAT, changes(HISTORY, 2)[0], "series"), [0.2857142857142857, 0.20588235294117646]),
        (rmsse(Y, YHAT, changes(HISTORY)[1], "series"), [0.34815531191139565, 0.3005705892593716]),
        (rmsse(Y, YHAT, changes(HISTORY, 2)[1], "series"), [0.3244428422615251, 0.26276913640612176]),
        (pinball(Y, YHAT, 0.9, "series"), [0.06666666666666665, 0.3833333333333333]),
        (coverage(Y, LOWER, UPPER, "series"), [0.6666666666666666, 0.6666666666666666]),
        (winkler(Y, LOWER, UPPER, 80, "series"), [3.3333333333333335, 5.333333333333333]),
    ],
)
def test_numbers_of_series_are_those_of_utilsforecast(found: Any, expected: list[float]) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_by_step_and_over_all() -> None:
    assert wape(Y, YHAT, "step").tolist() == [0.5, 1 / 6, 0.7]
    assert wape(Y, YHAT).item() == pytest.approx(5.5 / 13.0)
    assert bias(Y, YHAT, "step").tolist() == [0.5, -1 / 6, 0.7]
    assert mase(Y, YHAT, [1.0, 2.0], "step").tolist() == [0.5, 0.25, 1.125]
    assert mase(Y, YHAT, [1.0, 2.0]).item() == pytest.approx((2 / 3 + 1.75 / 3) / 2)
    assert rmsse(Y, YHAT, [1.0, 2.0], "step")[1] == pytest.approx(np.sqrt(0.25 / 2))
    assert rmsse(Y, YHAT, [1.0, 2.0]).item() == pytest.approx(
        rmsse(Y, YHAT, [1.0, 2.0], "series").mean().item()
    )
    assert coverage(Y, LOWER, UPPER).item() == pytest.approx(4 / 6)
    assert pinball(Y, YHAT, 0.5).item() == pytest.approx(5.5 / 12)


def test_what_is_not_known_does_not_count() -> None:
    y = [[1.0, NAN], [NAN, NAN]]
    for measure in (wape, bias, lambda *a: mase(*a[:2], [1.0, 1.0], a[2])):
        found: Callable[..., Any] = measure
        assert found(y, [[2.0, 9.0], [5.0, 5.0]], "series").tolist() == [1.0, pytest.approx(NAN, nan_ok=True)]
        assert found(y, [[2.0, 9.0], [5.0, 5.0]], "all").item() == 1.0
    assert coverage(y, [[0.0, NAN]] * 2, [[2.0, 2.0]] * 2).item() == 1.0
    assert np.isnan(wape([[0.0]], [[1.0]]).item())  # a share of nothing


def test_a_series_that_did_not_change_has_no_scaled_error() -> None:
    still = SeriesPanel(("a", "b"), [0, 3, 4], [0, 1, 2, 0], [2.0, 2.0, 2.0, 1.0], "D")  # type: ignore[arg-type]
    absolute, root = changes(still)
    assert absolute[0] == root[0] == 0.0
    assert np.isnan([absolute[1], root[1]]).all()
    assert np.isnan(rmsse([[1.0], [1.0]], [[2.0], [2.0]], root, "series")).all()


def test_the_pit_is_uniform_where_quantiles_are_right() -> None:
    rng = np.random.default_rng(0)
    p = np.arange(1, 100) / 100
    y = rng.exponential(size=(200, 50))
    quantiles = np.broadcast_to(-np.log(1 - p), (200, 50, 99))
    pit = randomised_pit(y, quantiles, p)
    assert np.histogram(pit, 10, (0.0, 1.0))[0] / y.size == pytest.approx(0.1, abs=0.01)


def test_the_pit_of_zeros_is_drawn_from_what_is_possible() -> None:
    p = np.array([0.1, 0.5, 0.9])
    pit = randomised_pit(np.zeros((1000, 1)), np.tile([0.0, 0.0, 2.0], (1000, 1, 1)), p)
    assert pit.min() < 0.02
    assert 0.48 < pit.max() <= 0.5
    outside = randomised_pit(np.full((1000, 1), 3.0), np.tile([0.0, 0.0, 2.0], (1000, 1, 1)), p)
    assert outside.min() >= 0.9
    assert outside.max() <= 1.0
    everything = randomised_pit(np.zeros((1000, 1)), np.zeros((1000, 1, 3)), p)
    assert everything.min() < 0.02
    assert everything.max() > 0.98
    assert randomised_pit([[1.0]], [[[0.0, 1.0, 2.0]]], p).item() == 0.5
    assert np.isnan(randomised_pit([[NAN, 1.0]], [[[0.0, 1.0, 2.0], [0.0, NAN, NAN]]], p)).all()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: wape([1.0], [1.0]), DataError, r"must both be \(T, h\)"),
        (
            lambda: wape(Y, YHAT, "day"),
            ParameterError,
            "by must be one of 'series', 'step', 'all', not 'day'",
        ),  # type: ignore[arg-type]
        (lambda: pinball(Y, YHAT, 1.0), ParameterError, "probability must lie in"),
        (lambda: winkler(Y, LOWER, UPPER, 100), ParameterError, "level must lie in"),
        (lambda: mase(Y, YHAT, [1.0]), DataError, "unit must be"),
        (lambda: randomised_pit(Y, Y, [0.5]), DataError, "one for each probability"),
        (lambda: changes(HISTORY, 0), ParameterError, "season must be at least 1"),
    ],
)
def test_what_cannot_be_measured_is_refused(call: Callable[[], Any], error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()
