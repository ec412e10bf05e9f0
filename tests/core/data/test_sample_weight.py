"""Weighted rows: a whole weight is that many rows, none is no row; selection scores rows as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ccmtl_core import (
    DataError,
    ParameterError,
    SufficientStatistics,
    TaskDataset,
    TriangularStatistics,
    fit,
    period_factors,
    select,
    training_statistics,
)
from ccmtl_core.fitting.scoring import mean_of_task_rmse
from tests.core.problems import datasets

every_form = pytest.mark.parametrize("form", [SufficientStatistics, TriangularStatistics])


def repeated(data: TaskDataset, times: np.ndarray) -> TaskDataset:
    """Each row so many times."""
    counts = np.bincount(data.task_index, times, data.n_tasks).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    rows = np.repeat(np.arange(len(data.y)), times)
    return TaskDataset(data.X[rows], data.y[rows], offsets, data.task_ids, data.feature_names)


def assert_close(one: Any, other: Any) -> None:
    for name in ("gram", "xty", "yty", "weight", "x_sum", "y_sum"):
        expected = getattr(other, name)
        size = max(abs(expected).max(initial=0.0), 1e-300)
        np.testing.assert_allclose(getattr(one, name), expected, rtol=1e-9, atol=1e-9 * size, err_msg=name)


@every_form
@given(data=datasets(), seed=st.integers(0, 2**32 - 1))
def test_a_whole_weight_is_that_many_rows(form: Any, data: TaskDataset, seed: int) -> None:
    times = np.random.default_rng(seed).integers(0, 4, len(data.y))
    assume(len(times) == 0 or times.any())
    weighted, expected = form.from_dataset(data, times), form.from_dataset(repeated(data, times))
    assert_close(weighted, expected)
    present = form.from_dataset(repeated(data, np.minimum(times, 1)))
    assert weighted.n_samples.tolist() == present.n_samples.tolist()


@every_form
def test_folds_of_weighted_rows_add_up(form: Any) -> None:
    rng = np.random.default_rng(0)
    data = TaskDataset.from_arrays(rng.standard_normal((5, 20, 3)), rng.standard_normal((5, 20)))
    weight, fold = rng.uniform(0, 3, 100), rng.integers(0, 3, 100)
    before = weight.copy()
    one, two, three = form.by_fold(data, fold, 3, weight)
    assert_close(one + two + three, form.from_dataset(data, weight))
    assert_close(one, form.from_dataset(data, np.where(fold == 0, weight, 0.0)))
    assert one.n_samples.sum() == (fold == 0).sum()
    assert (weight == before).all()


@every_form
def test_equal_weights_are_scaled_statistics(form: Any) -> None:
    rng = np.random.default_rng(0)
    data = TaskDataset.from_arrays(rng.standard_normal((5, 20, 3)), rng.standard_normal((5, 20)))
    weighted, scaled = form.from_dataset(data, np.full(100, 2.5)), form.from_dataset(data).scaled(2.5)
    assert_close(weighted, scaled)
    assert_close(weighted.centred, scaled.centred)
    W = rng.standard_normal((5, 3))
    np.testing.assert_allclose(weighted.squared_error(W, 1.0), scaled.squared_error(W, 1.0), rtol=1e-9)


@every_form
@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1.0], r"sample_weight must be \(3,\)"),
        ([1.0, -0.5, 1.0], "sample_weight, row 2: -0.5 is not a finite number from 0 on"),
        ([np.nan, 1.0, np.inf], "row 1: nan"),
        (["a", "b", "c"], "sample_weight must hold real numbers"),
    ],
)
def test_weights_that_make_no_sense_are_refused(form: Any, weight: list[Any], message: str) -> None:
    data = TaskDataset.from_arrays([[[1.0], [2.0], [3.0]]], [[1.0, 2.0, 3.0]])
    with pytest.raises(DataError, match=message):
        form.from_dataset(data, weight)
    with pytest.raises(DataError, match=message):
        form.by_fold(data, [0, 1, 0], 2, weight)


def noisy(seed: int = 0) -> tuple[TaskDataset, np.ndarray]:
    """300 tasks over twenty periods, the last four of which are five times as noisy."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((300, 20, 2))
    noise = np.where(np.arange(20) < 16, 1.0, 5.0)
    y = X @ [1.0, -1.0] + noise * rng.standard_normal((300, 20))
    return TaskDataset.from_arrays(X, y), np.tile(np.arange(20), 300)


def test_selection_trains_on_weighted_rows_and_scores_them_as_they_are() -> None:
    data, period = noisy()
    weight, fold = period_factors(data, period), period % 3
    chosen = select(data, [1.0, 10.0], folds=fold, sample_weight=weight, path_tolerance=1e-7)
    plain = SufficientStatistics.by_fold(data, fold, 3)
    training = training_statistics(SufficientStatistics.by_fold(data, fold, 3, weight))
    for f in range(3):
        W = fit(training[f], fusion_strength=10.0, tolerance=1e-7).model.weights
        error = mean_of_task_rmse(plain[f].squared_error(W), plain[f].n_samples)
        assert chosen.fold_errors[f, 1] == pytest.approx(error, rel=1e-3)
    unweighted = select(data, [1.0, 10.0], folds=fold, path_tolerance=1e-7)
    assert chosen.errors.min() < unweighted.errors.min()
    with pytest.raises(ParameterError, match="statistics have no rows"):
        select(plain, [1.0, 10.0], sample_weight=weight)


def test_noisy_periods_count_by_the_inverse_of_their_variance() -> None:
    data, period = noisy()
    weight = period_factors(data, period).reshape(300, 20)
    assert (weight == weight[0]).all()
    np.testing.assert_allclose(weight[0, :16], 1.0, rtol=0.4)
    assert weight[0, 16:].max() < 0.12
    scale = 10.0 ** np.random.default_rng(1).uniform(-0.5, 0.5, 300)
    of_other_size = TaskDataset.from_arrays(
        data.X.reshape(300, 20, 2), data.y.reshape(300, 20) * scale[:, None]
    )
    again = period_factors(of_other_size, period)[:20]
    assert again[16:].max() < 0.2 * again[:16].min()


def test_a_quiet_period_counts_ten_times_at_most_and_no_noise_leaves_weights_alone() -> None:
    data, period = noisy()
    quiet = data.y.copy()
    quiet[period == 0] = (data.X @ [1.0, -1.0])[period == 0]
    changed = TaskDataset(data.X, quiet, data.offsets, data.task_ids, data.feature_names)
    assert period_factors(changed, period)[0] == 10.0
    nothing = TaskDataset(data.X, np.zeros(6000), data.offsets, data.task_ids, data.feature_names)
    assert (period_factors(nothing, period) == 1.0).all()
    with pytest.raises(DataError, match=r"period must be \(6000,\)"):
        period_factors(data, period[:-1])


@every_form
def test_rows_that_all_weigh_nothing_are_refused(form: Any) -> None:
    data = TaskDataset.from_arrays([[[1.0]] * 4] * 3, [[1.0, 2.0, 3.0, 4.0]] * 3)
    nothing, fold = np.zeros(12), np.arange(12) % 2
    with pytest.raises(DataError, match="no row has a weight above 0"):
        form.from_dataset(data, nothing)
    with pytest.raises(DataError, match="no row has a weight above 0"):
        form.by_fold(data, fold, 2, nothing)
    with pytest.raises(DataError, match="no row has a weight above 0"):
        select(data, [1.0], n_folds=2, n_neighbors=1, sample_weight=nothing)
    assert form.from_dataset(data, np.eye(12)[0]).n_samples.tolist() == [1, 0, 0]
