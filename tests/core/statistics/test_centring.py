"""Sums of the statistics, centred rows, and squared errors with an intercept, in both forms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccmtl_core import (
    DataError,
    ParameterError,
    SufficientStatistics,
    TaskDataset,
    TriangularStatistics,
    fit,
)
from tests.core.forms import Form, Statistics, every_form
from tests.core.problems import datasets, exact_residual


def assert_sums(statistics: Statistics, X: np.ndarray, y: np.ndarray, task: np.ndarray) -> None:
    T, P = statistics.n_tasks, statistics.n_features
    weight = np.bincount(task, minlength=T)
    x_sum, x_size = (
        np.array([np.bincount(task, column, minlength=T) for column in a.T]).T.reshape(T, P)
        for a in (X, abs(X))
    )
    y_sum, y_size = (np.bincount(task, column, minlength=T) for column in (y, abs(y)))
    assert statistics.weight is not None
    assert statistics.x_sum is not None
    assert statistics.y_sum is not None
    np.testing.assert_allclose(statistics.weight, weight, rtol=1e-12)
    assert (abs(statistics.x_sum - x_sum) <= 1e-12 * (x_size + 1e-300) * np.sqrt(weight + 1)[:, None]).all()
    assert (abs(statistics.y_sum - y_sum) <= 1e-12 * (y_size + 1e-300) * np.sqrt(weight + 1)).all()


@every_form
@given(data=datasets(), seed=st.integers(0, 2**32), n_folds=st.integers(1, 4))
def test_sums_are_those_of_the_rows_whole_in_folds_and_in_blocks(
    form: Form, data: TaskDataset, seed: int, n_folds: int
) -> None:
    rng = np.random.default_rng(seed)
    assert_sums(form.from_dataset(data), data.X, data.y, data.task_index)
    fold = rng.integers(0, n_folds, len(data.y))
    parts = form.by_fold(data, fold, n_folds)
    for f, part in enumerate(parts):
        own = fold == f
        assert_sums(part, data.X[own], data.y[own], data.task_index[own])
    total = parts[0]
    for part in parts[1:]:
        total = total + part  # type: ignore[operator]
    assert_sums(total, data.X, data.y, data.task_index)
    order = rng.permutation(len(data.y))
    blocks = [(data.X[i], data.y[i], data.task_index[i]) for i in np.array_split(order, 3)]
    streamed = form.from_blocks(blocks, data.n_tasks, data.n_features)
    assert_sums(streamed, data.X, data.y, data.task_index)
    assert_sums(total.pooled(), data.X, data.y, np.zeros(len(data.y), dtype=np.int64))
    new = rng.permutation(data.n_tasks)
    assert_sums(total.reordered(new), data.X, data.y, np.argsort(new)[data.task_index])


@every_form
@given(data=datasets(), seed=st.integers(0, 2**32))
def test_scaling_by_task_scales_sums_and_centred_products(form: Form, data: TaskDataset, seed: int) -> None:
    factor = np.random.default_rng(seed).uniform(0.0, 3.0, data.n_tasks)
    whole, scaled = form.from_dataset(data), form.from_dataset(data).scaled(factor)
    for name in ("weight", "x_sum", "y_sum", "yty", "xty"):
        was, now = getattr(whole, name), getattr(scaled, name)
        np.testing.assert_allclose(now.T, was.T * factor, rtol=1e-10, atol=1e-10 * abs(was).max(initial=0.0))
    some = data.n_samples > 0
    np.testing.assert_allclose(scaled.means.x[some], whole.means.x[some], rtol=1e-10, atol=1e-9)
    assert scaled.n_samples.tolist() == whole.n_samples.tolist()


@every_form
@given(data=datasets(), seed=st.integers(0, 2**32), shift=st.sampled_from([0.0, 1.0, 1e3]))
def test_squared_error_with_an_intercept_is_that_of_the_rows(
    form: Form, data: TaskDataset, seed: int, shift: float
) -> None:
    data = replace(data, y=data.y + shift)
    statistics = form.from_dataset(data)
    rng = np.random.default_rng(seed)
    b = 10.0 * rng.standard_normal(data.n_tasks)
    for W in (rng.standard_normal((data.n_tasks, data.n_features)), rng.standard_normal(data.n_features)):
        W_of_row = np.broadcast_to(W, statistics.xty.shape)[data.task_index]
        rest = np.einsum("ip,ip->i", data.X, W_of_row) + b[data.task_index] - data.y
        expected = np.bincount(data.task_index, rest**2, minlength=data.n_tasks)
        plain = statistics.squared_error(W)
        size = statistics.yty + expected + plain + b**2 * data.n_samples
        assert (abs(statistics.squared_error(W, b) - expected) <= 1e-10 * size).all()
        zero = np.zeros(data.n_tasks)
        assert (abs(statistics.squared_error(W, zero) - plain) <= 1e-10 * (size + plain)).all()


@every_form
@given(data=datasets())
def test_centred_statistics_are_those_of_centred_rows(form: Form, data: TaskDataset) -> None:
    statistics = form.from_dataset(data)
    means = statistics.means
    rows = TaskDataset.from_codes(
        data.X - means.x[data.task_index], data.y - means.y[data.task_index], data.task_index, data.task_ids
    )
    expected, centred = form.from_dataset(rows), statistics.centred
    lengths = np.sqrt(np.diagonal(statistics.gram, axis1=1, axis2=2))
    target = np.sqrt(statistics.yty)
    assert (abs(centred.gram - expected.gram) <= 1e-11 * lengths[:, :, None] * lengths[:, None, :]).all()
    assert (abs(centred.xty - expected.xty) <= 1e-11 * lengths * target[:, None]).all()
    assert (abs(centred.yty - expected.yty) <= 1e-11 * target**2).all()
    assert centred.weight is not None
    assert centred.x_sum is not None
    np.testing.assert_allclose(centred.weight, statistics.weight, rtol=1e-12)
    assert not centred.x_sum.any()


@every_form
def test_the_least_squares_of_centred_rows_is_that_with_a_column_of_ones(form: Form) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3)) + np.array([5.0, 0.0, -2.0])
    X[:, 2] = 7.0  # constant: the intercept's own
    y = X @ [1.0, 2.0, 0.0] + 3.0 + rng.standard_normal(40)
    statistics = form.from_dataset(TaskDataset.from_arrays([X], [y]))
    weights = statistics.centred.least_squares.weights
    with_ones = np.column_stack([X[:, :2], np.ones(40)])
    expected, (residual,), *_ = np.linalg.lstsq(with_ones, y)
    np.testing.assert_allclose(weights[0], [*expected[:2], 0.0], rtol=1e-10, atol=1e-12)
    assert statistics.centred.least_squares.rank.tolist() == [2]
    b = statistics.means.intercept(weights)
    np.testing.assert_allclose(b, expected[2:], rtol=1e-10)
    np.testing.assert_allclose(statistics.squared_error(weights, b), residual, rtol=1e-10)


@every_form
@given(offset=st.floats(0, 7), seed=st.integers(0, 2**32))
def test_the_residual_of_centred_rows_is_within_its_stated_error(
    form: Form, offset: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((30, 2)) + 10.0**offset, rng.standard_normal(30) + 10.0**offset
    exact = float(exact_residual(np.column_stack([np.ones(30), X]), y))
    start = form.from_dataset(TaskDataset.from_arrays([X], [y])).centred.least_squares
    assert abs(start.residual[0] - exact) <= start.residual_error[0] + 1e-12 * exact


def test_digits_lost_by_centring_are_told_and_the_triangular_form_keeps_them() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 1)) + 1e6, rng.standard_normal(30) + 1e6
    data = TaskDataset.from_arrays([X], [y], ["far"])
    note = SufficientStatistics.from_dataset(data).centred.least_squares.precision_note(["far"])
    assert note is not None
    assert "'far'" in note
    assert TriangularStatistics.from_dataset(data).centred.least_squares.precision_note(["far"]) is None


@every_form
def test_one_row_and_no_row_leave_nothing_to_fit_beside_an_intercept(form: Form) -> None:
    data = TaskDataset.from_arrays([[[2.0, 1.0]], np.empty((0, 2))], [[3.0], []])
    centred = form.from_dataset(data).centred
    assert abs(centred.gram).max() < 1e-14
    assert centred.least_squares.weights.tolist() == [[0.0, 0.0]] * 2
    assert centred.least_squares.residual.tolist() == [0.0, 0.0]


@every_form
def test_a_task_without_rows_has_the_means_of_all(form: Form) -> None:
    data = TaskDataset.from_arrays([[[2.0], [4.0]], np.empty((0, 1)), [[6.0]]], [[1.0, 2.0], [], [6.0]])
    means = form.from_dataset(data).means
    np.testing.assert_allclose(means.x.ravel(), [3.0, 4.0, 6.0])
    np.testing.assert_allclose(means.y, [1.5, 3.0, 6.0])


def test_statistics_without_sums_say_so() -> None:
    data = TaskDataset.from_arrays([np.eye(2)], [[1.0, 2.0]])
    gram, triangular = SufficientStatistics.from_dataset(data), TriangularStatistics.from_dataset(data)
    for whole, bare in (
        (gram, replace(gram, weight=None, x_sum=None, y_sum=None)),
        (triangular, replace(triangular, ones=None)),
    ):
        assert bare.squared_error(np.zeros(2)).tolist() == whole.squared_error(np.zeros(2)).tolist()
        for part in (bare, bare.scaled(2.0), bare.pooled(), bare + bare):  # type: ignore[operator]
            with pytest.raises(DataError, match="no sums of x and y"):
                _ = part.centred
        with pytest.raises(DataError, match="no sums"):
            bare.squared_error(np.zeros(2), 1.0)
        with pytest.raises(DataError, match="only one of the statistics"):
            whole + bare  # type: ignore[operator]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weight": None}, "go together"),
        ({"x_sum": np.ones(2)}, r"x_sum must be \(1, 2\)"),
        ({"weight": np.array([-1.0])}, "task 'a': sums do not fit"),
        ({"weight": np.array([np.inf])}, "sums do not fit"),
        ({"y_sum": np.array([np.nan])}, "sums do not fit"),
        ({"y_sum": np.array([3.0])}, "sums do not fit"),
        ({"x_sum": np.array([[0.0, -3.0]])}, "sums do not fit"),
    ],
)
def test_impossible_sums_are_refused(change: dict[str, object], message: str) -> None:
    data = TaskDataset.from_arrays([np.eye(2)], [[1.0, 1.0]], ["a"])
    with pytest.raises(DataError, match=message):
        replace(SufficientStatistics.from_dataset(data), **change)  # type: ignore[arg-type]


@every_form
def test_intercepts_and_factors_of_another_shape_are_refused(form: Form) -> None:
    statistics = form.from_dataset(TaskDataset.from_arrays([np.eye(2)] * 3, [np.ones(2)] * 3))
    assert statistics.squared_error(np.zeros(2), 1.0).tolist() == [0.0] * 3
    with pytest.raises(DataError, match=r"intercept must be \(3,\)"):
        statistics.squared_error(np.zeros(2), np.zeros(2))
    with pytest.raises(ParameterError, match="one number or one per task"):
        statistics.scaled(np.ones(2))
    with pytest.raises(ParameterError, match="not negative"):
        statistics.scaled(np.array([1.0, -1.0, 1.0]))


@every_form
def test_a_constant_feature_of_very_many_rows_is_the_intercepts_own(form: Form) -> None:
    n = 300_000
    for seed in range(6):
        rng = np.random.default_rng(seed)
        constant, x = rng.uniform(0.01, 100), rng.standard_normal(n)
        data = TaskDataset(
            np.column_stack([np.full(n, constant), x]),
            5 + 3 * x + rng.standard_normal(n),
            [0, n],
            ("a",),
            ("constant", "x"),
        )
        model = fit(form.from_dataset(data), fusion_strength=0.0, fit_intercept=True).model
        assert model.weights[0, 0] == 0.0
        assert model.intercept[0] == pytest.approx(5.0, abs=0.02)
