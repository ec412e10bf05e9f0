"""Recursive forecasts against a plain loop, and bit for bit against predictions one step ahead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccmtl_core import CCMTLModel, DataError, ParameterError
from ccmtl_core.forecasting import recursive_forecast


@given(m=st.integers(0, 5), n_lags=st.integers(1, 6), h=st.integers(1, 8), seed=st.integers(0, 99))
def test_each_forecast_becomes_the_next_ones_first_lag(m: int, n_lags: int, h: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    W, lags = rng.standard_normal((m, n_lags)), rng.standard_normal((m, n_lags))
    forecast = recursive_forecast(W, lags, h)
    assert forecast.shape == (m, h)
    for i in range(m):
        window = lags[i].tolist()
        for step in range(h):
            expected = float(W[i] @ window)
            assert forecast[i, step] == pytest.approx(expected, rel=1e-10, abs=1e-10)
            window = [forecast[i, step], *window[:-1]]


def test_the_first_step_is_the_models_prediction_bit_for_bit() -> None:
    rng = np.random.default_rng(0)
    W, lags = rng.standard_normal((50, 5)), rng.standard_normal((50, 5))
    model = CCMTLModel(W, tuple(map(str, range(50))), ("lag_1", "lag_2", "lag_3", "lag_4", "lag_5"))
    assert recursive_forecast(W, lags, 3)[:, 0].tobytes() == model.predict(lags, model.task_ids).tobytes()


def test_an_intercept_enters_at_every_step() -> None:
    assert recursive_forecast([[0.5], [2.0]], [[4.0], [1.0]], 3, [1.0, 0.0]).tolist() == [
        [3.0, 2.5, 2.25],
        [2.0, 4.0, 8.0],
    ]
    rng = np.random.default_rng(0)
    W, lags, b = rng.standard_normal((50, 5)), rng.standard_normal((50, 5)), rng.standard_normal(50)
    model = CCMTLModel(W, tuple(map(str, range(50))), tuple(map(str, range(5))), intercept=b)
    assert recursive_forecast(W, lags, 3, b)[:, 0].tobytes() == model.predict(lags, model.task_ids).tobytes()
    with pytest.raises(DataError, match=r"intercept must be \(50,\)"):
        recursive_forecast(W, lags, 3, b[:5])


def test_a_row_does_not_depend_on_the_others_or_on_the_horizon() -> None:
    rng = np.random.default_rng(0)
    W, lags = rng.standard_normal((20, 3)), rng.standard_normal((20, 3))
    together = recursive_forecast(W, lags, 10)
    alone = np.concatenate([recursive_forecast(W[i : i + 1], lags[i : i + 1], 10) for i in range(20)])
    assert together.tobytes() == alone.tobytes()
    assert together[:, :4].tobytes() == recursive_forecast(W, lags, 4).tobytes()


def test_missing_lags_give_nan_and_explosions_infinity_in_silence() -> None:
    forecast = recursive_forecast([[2.0], [1e200]], [[np.nan], [1e200]], 3)
    assert np.isnan(forecast[0]).all()
    assert np.isinf(forecast[1]).all()


def test_the_callers_lags_are_left_alone() -> None:
    lags = np.array([[1.0, 2.0]])
    recursive_forecast([[0.5, 0.5]], lags, 5)
    assert lags.tolist() == [[1.0, 2.0]]


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(DataError, match=r"must both be \(m, L\)"):
        recursive_forecast([[1.0, 2.0]], [[1.0]], 1)
    with pytest.raises(DataError, match=r"must both be \(m, L\)"):
        recursive_forecast([1.0], [1.0], 1)
    with pytest.raises(DataError, match="at least one lag"):
        recursive_forecast(np.empty((2, 0)), np.empty((2, 0)), 1)
    with pytest.raises(ParameterError, match="h must be at least 1"):
        recursive_forecast([[1.0]], [[1.0]], 0)


@pytest.mark.parametrize("h", [1.5, 1.0, "3", True, None])
def test_the_horizon_is_an_integer(h: Any) -> None:
    with pytest.raises(ParameterError, match="h must be an integer, not"):
        recursive_forecast([[1.0]], [[1.0]], h)


@pytest.mark.parametrize("m", [0, 1])
def test_a_horizon_beyond_a_century_of_hours_is_refused(m: int) -> None:
    with pytest.raises(ParameterError, match="h must be at most 1048576"):
        recursive_forecast(np.ones((m, 1)), np.ones((m, 1)), 10**15)
