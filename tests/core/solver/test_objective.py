"""The objective and its parts, against the rows in extended precision and against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccmtl_core import DataError, ParameterError, SufficientStatistics, TaskGraph, TriangularStatistics
from ccmtl_core.solver.objective import FusionProblem, row_norms
from tests.core.fusion_problems import Instance, complete, instances, regular

property_test = settings(derandomize=True, max_examples=60)


@property_test
@given(instance=instances(), seed=st.integers(0, 2**32))
def test_equals_the_rows(instance: Instance, seed: int) -> None:
    scale = np.sqrt(np.diagonal(instance.statistics.gram, axis1=1, axis2=2).max(axis=0))
    W = np.random.default_rng(seed).standard_normal((instance.n_tasks, instance.n_features))
    W /= np.where(scale > 0, scale, 1.0)
    problem = instance.problem
    expected = instance.objective(W)
    assert problem.objective(W) == pytest.approx(
        expected, rel=1e-12, abs=1e-14 * instance.statistics.total_yty
    )
    assert problem.objective(W) == pytest.approx(problem.loss(W) + problem.penalty(W), rel=1e-15)


def test_small_losses_keep_their_digits() -> None:
    rng = np.random.default_rng(0)
    weights = 1e6 * rng.standard_normal(4)
    X = tuple(rng.standard_normal((50, 4)) for _ in range(3))
    y = tuple(x @ weights + 1e-4 * rng.standard_normal(50) for x in X)
    instance = Instance(X, y, complete(3), 1e-6)
    exact = FusionProblem(TriangularStatistics.from_dataset(instance.dataset).quadratic, instance.graph, 1e-6)
    W = np.tile(weights, (3, 1))
    assert exact.objective(W) == pytest.approx(instance.objective(W), rel=1e-5)


def test_penalty_counts_directed_pairs() -> None:
    statistics = SufficientStatistics(
        np.zeros((3, 2, 2)), np.zeros((3, 2)), np.zeros(3), np.zeros(3, int), ("a", "b", "c"), ("p", "q")
    )
    problem = FusionProblem(statistics.quadratic, TaskGraph([[0, 1], [1, 2]], [2, 1], n_tasks=3), 10.0)
    W = [[0.0, 0.0], [3.0, 4.0], [3.0, 4.0 + 2.0]]
    assert problem.penalty(W) == pytest.approx(5.0 * (2 * 5.0 + 2.0), rel=1e-15)
    assert problem.loss(W) == 0.0
    assert problem.radius.tolist() == [10.0, 5.0]


@property_test
@given(instance=instances(), seed=st.integers(0, 2**32))
def test_loss_and_gradient_of_one_pass_are_those_of_two(instance: Instance, seed: int) -> None:
    problem = instance.problem
    W = np.random.default_rng(seed).standard_normal((instance.graph.n_tasks, problem.n_features))
    loss, gradient = problem.loss_around(W)
    assert loss == pytest.approx(problem.loss(W), rel=1e-12)
    terms = np.abs(problem.quadratic.gram) @ np.abs(W)[:, :, None]
    size = terms[:, :, 0] + np.abs(problem.quadratic.xty)
    assert (np.abs(gradient - problem.loss_gradient(W)) <= 1e-12 * size.max()).all()


def test_gradient_is_that_of_the_loss() -> None:
    rng = np.random.default_rng(1)
    instance = regular(rng, complete(4), P=3)
    W, direction = rng.standard_normal((2, 4, 3))
    h = 1e-4
    slope = (instance.problem.loss(W + h * direction) - instance.problem.loss(W - h * direction)) / (2 * h)
    assert np.vdot(instance.problem.loss_gradient(W), direction) == pytest.approx(slope, rel=1e-8)


@property_test
@given(instance=instances(), seed=st.integers(0, 2**32))
def test_divergence_is_the_adjoint_of_differences(instance: Instance, seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = instance.problem
    W = rng.standard_normal((instance.n_tasks, instance.n_features))
    U = rng.standard_normal((len(instance.graph.edges), instance.n_features))
    i, j = instance.graph.edges.T
    assert np.array_equal(problem.differences(W), W[i] - W[j])
    assert np.vdot(problem.differences(W), U) == pytest.approx(np.vdot(W, problem.divergence(U)), abs=1e-12)


def test_row_norms() -> None:
    assert row_norms(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist() == [5.0, 0.0]


def test_refuses_a_graph_of_other_tasks() -> None:
    instance = regular(np.random.default_rng(0), complete(3), P=1)
    with pytest.raises(DataError, match="the graph has 4 tasks, the data 3"):
        FusionProblem(instance.statistics.quadratic, complete(4), 1.0)


@pytest.mark.parametrize("strength", [5e-324, 9.9e-101])
def test_refuses_a_strength_below_what_can_be_computed(strength: float) -> None:
    instance = regular(np.random.default_rng(0), complete(3), P=1)
    with pytest.raises(ParameterError, match="0, or from 1e-100 to 1e100"):
        FusionProblem(instance.statistics.quadratic, instance.graph, strength)


@pytest.mark.parametrize("strength", [-1.0, np.nan, np.inf, 1e101])
def test_refuses_an_unusable_strength(strength: float) -> None:
    instance = regular(np.random.default_rng(0), complete(3), P=1)
    with pytest.raises(ParameterError, match="0, or from 1e-100 to 1e100"):
        FusionProblem(instance.statistics.quadratic, instance.graph, strength)


@property_test
@given(instance=instances(), seed=st.integers(0, 2**32))
def test_renumbered_tasks_keep_their_objective(instance: Instance, seed: int) -> None:
    rng = np.random.default_rng(seed)
    order = rng.permutation(instance.n_tasks)
    W = instance.statistics.least_squares.weights * rng.uniform(0.5, 1.5, (instance.n_tasks, 1))
    new = instance.problem.reordered(order)
    noise = instance.rounding(W)
    assert new.objective(W[order]) == pytest.approx(instance.problem.objective(W), rel=1e-12, abs=noise)
    gradient = instance.problem.loss_gradient(W)[order]
    size = np.abs(instance.statistics.xty).max(axis=0) + np.abs(gradient).max(axis=0)
    assert (np.abs(new.loss_gradient(W[order]) - gradient) <= 1e-12 * size).all()
