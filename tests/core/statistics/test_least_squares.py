"""Least squares from either form against the rows: weights, rank, residual, and honest digits."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ccmtl_core import SufficientStatistics, TaskDataset, TriangularStatistics
from ccmtl_core.statistics.least_squares import MAX_DIGITS, LeastSquares
from tests.core.problems import datasets, exact_residual
from tests.core.school_like import each_school

Form: TypeAlias = type[SufficientStatistics] | type[TriangularStatistics]
every_form = pytest.mark.parametrize("form", [SufficientStatistics, TriangularStatistics])


def solve(form: Form, X: np.ndarray, y: np.ndarray) -> LeastSquares:
    return form.from_dataset(TaskDataset.from_arrays([X], [y])).least_squares


@every_form
@given(data=datasets())
def test_weights_are_the_minimum_norm_solution(form: Form, data: TaskDataset) -> None:
    start = form.from_dataset(data).least_squares
    for t, (a, b) in enumerate(zip(data.offsets[:-1], data.offsets[1:], strict=True)):
        X, y = data.X[a:b], data.y[a:b]
        expected, _, rank, values = np.linalg.lstsq(X, y, rcond=None)
        if len(values) and rank and values[0] / values[rank - 1] > 1e3:
            continue  # the Gram form then has fewer digits than the comparison asks for
        assert start.rank[t] == rank
        assert np.allclose(start.weights[t], expected, rtol=1e-8, atol=1e-8 * abs(expected).max(initial=0))


@every_form
@given(
    n=st.integers(1, 9),
    noise=st.integers(-12, 2),
    size=st.integers(-3, 6),
    angle=st.integers(-5, 0),
    seed=st.integers(0, 2**32),
)
def test_the_residual_is_within_its_stated_error(
    form: Form, n: int, noise: int, size: int, angle: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    X[:, 1] = X[:, 0] + 10.0**angle * X[:, 1]
    y = X @ (10.0**size * rng.standard_normal(2)) + 10.0**noise * rng.standard_normal(n)
    start = solve(form, X, y)
    assume(start.rank[0] == min(n, 2))  # the error is stated for the rank that was found
    exact = exact_residual(X, y)
    error = float(abs(Fraction(float(start.residual[0])) - exact))
    assert error <= 4 * start.residual_error[0]
    if start.digits[0] > 1:
        assert error <= 10 ** (0.7 - start.digits[0]) * float(exact)


def test_the_triangular_form_keeps_about_twice_the_digits() -> None:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((30, 3))
    y = X @ np.full(3, 1e4) + 1e-3 * rng.standard_normal(30)
    gram, triangular = solve(SufficientStatistics, X, y), solve(TriangularStatistics, X, y)
    exact = float(exact_residual(X, y))
    assert gram.digits[0] < 2
    assert triangular.digits[0] > 6
    assert triangular.residual[0] == pytest.approx(exact, rel=1e-6)


@every_form
def test_features_of_wildly_different_scale_are_not_taken_for_collinear(form: Form) -> None:
    rng = np.random.default_rng(0)
    scale = np.array([1e-9, 1.0, 1e9])
    X = rng.standard_normal((50, 3)) * scale
    truth = np.array([3.0, -2.0, 1.0]) / scale
    start = solve(form, X, X @ truth)
    assert start.rank[0] == 3
    assert np.allclose(start.weights[0], truth, rtol=1e-9)


@every_form
def test_the_minimum_norm_is_taken_in_the_features_own_units(form: Form) -> None:
    rng = np.random.default_rng(0)
    column = rng.standard_normal(20)
    X = np.column_stack([column, 10 * column])
    start = solve(form, X, column)
    assert start.rank[0] == 1
    assert np.allclose(start.weights[0], np.array([1.0, 10.0]) / 101, rtol=1e-12)


@every_form
@pytest.mark.parametrize("n_copies", [2, 1000])
def test_repeated_columns_have_rank_one_however_many_rows(form: Form, n_copies: int) -> None:
    column = np.random.default_rng(5).standard_normal(20 * n_copies)
    start = solve(form, np.column_stack([column] * 4), 2 * column)
    assert start.rank[0] == 1
    assert np.allclose(start.weights[0], 0.5, rtol=1e-12)


@every_form
def test_a_fit_through_every_row_has_no_residual(form: Form) -> None:
    rng = np.random.default_rng(0)
    for n in (1, 2, 5):
        start = solve(form, rng.standard_normal((n, 5)), 1e6 * rng.standard_normal(n))
        assert start.residual[0] == 0.0
        assert start.digits[0] == MAX_DIGITS


@every_form
def test_tasks_without_signal_get_zero_weights_and_all_digits(form: Form) -> None:
    X = [np.zeros((4, 2)), np.ones((4, 2)), np.empty((0, 2)), np.zeros((4, 2))]
    y = [np.zeros(4), np.zeros(4), np.empty(0), np.ones(4)]
    start = form.from_dataset(TaskDataset.from_arrays(X, y)).least_squares
    assert not start.weights.any()
    assert start.residual.tolist() == [0, 0, 0, 4]
    assert start.rank.tolist() == [0, 1, 0, 0]
    assert (start.digits > 14).all()


@every_form
@pytest.mark.parametrize("size", [1e-140, 1e140])
def test_extreme_units_change_nothing(form: Form, size: float) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 3)), rng.standard_normal(20)
    plain, extreme = solve(form, X, y), solve(form, X * size, y * size)
    assert np.allclose(extreme.weights, plain.weights, rtol=1e-10)
    assert extreme.residual[0] == pytest.approx(plain.residual[0] * size * size, rel=1e-10)


@every_form
def test_two_hundred_features(form: Form) -> None:
    rng = np.random.default_rng(0)
    X, truth = rng.standard_normal((500, 200)), rng.standard_normal(200)
    X[:, 199] = X[:, 0]
    start = solve(form, X, X @ truth)
    assert start.rank[0] == 199
    assert np.allclose(start.weights[0], np.linalg.lstsq(X, X @ truth, rcond=None)[0], atol=1e-9)


def test_the_note_speaks_only_where_digits_are_few() -> None:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((30, 3))
    y = X @ np.full(3, 1e4) + 1e-3 * rng.standard_normal(30)
    data = TaskDataset.from_arrays([X, X], [y, rng.standard_normal(30)], ["hard", "easy"])
    gram = SufficientStatistics.from_dataset(data).least_squares
    note = gram.precision_note(data.task_ids)
    assert note is not None
    assert "1 of 2 tasks" in note
    assert "task 'hard'" in note
    assert TriangularStatistics.from_dataset(data).least_squares.precision_note(data.task_ids) is None


def test_total_digits_are_those_of_the_sum() -> None:
    lost = LeastSquares(
        np.zeros((2, 1)), np.array([1.0, 1e-9]), np.array([1e-12, 1e-9]), np.array([1, 1]), np.zeros(2, bool)
    )
    assert lost.digits == pytest.approx([12, 0])
    assert lost.total_digits == pytest.approx(9, abs=0.01)


@every_form
@each_school
def test_rank_and_weights_of_school_equal_those_of_its_rows(
    form: Form, pupils: Callable[[], TaskDataset]
) -> None:
    data = pupils()
    start = form.from_dataset(data).least_squares
    X, y = np.split(data.X, data.offsets[1:-1]), np.split(data.y, data.offsets[1:-1])
    assert start.rank.tolist() == [np.linalg.matrix_rank(block) for block in X]
    assert start.rank.max() < 28
    expected = np.array([np.linalg.pinv(a) @ b for a, b in zip(X, y, strict=True)])
    assert abs(start.weights - expected).max() < 1e-10
    assert start.total_digits > 12
