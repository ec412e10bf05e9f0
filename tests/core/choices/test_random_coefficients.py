"""Random coefficients: the marginal likelihood by its definition, never falling; what was drawn is found."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from ccmtl_core import SufficientStatistics, TaskDataset, TriangularStatistics, pooled_weights, select
from ccmtl_core.base.arrays import read_only
from ccmtl_core.choices.random_coefficients import LEAST_VARIANCE, RandomCoefficients, random_coefficients
from ccmtl_core.kernels.statistics.posterior_kernel import expect, expect_wide

every_form = pytest.mark.parametrize("form", [SufficientStatistics, TriangularStatistics])


def drawn(
    seed: int, n_tasks: int = 30, n_features: int = 3, most_rows: int = 8, noise: float = 1.0
) -> tuple[TaskDataset, RandomCoefficients]:
    """Tasks of the model itself, from none to ``most_rows`` rows, and what they were drawn from."""
    rng = np.random.default_rng(seed)
    mean = rng.standard_normal(n_features)
    root = np.triu(rng.standard_normal((n_features, n_features)))
    root[np.diag_indices(n_features)] = 10.0 ** rng.uniform(-1, 0.5, n_features)
    X = [rng.standard_normal((int(n), n_features)) for n in rng.integers(0, most_rows + 1, n_tasks)]
    W = mean + rng.standard_normal((n_tasks, n_features)) @ root.T
    y = [x @ w + noise * rng.standard_normal(len(x)) for x, w in zip(X, W, strict=True)]
    return TaskDataset.from_arrays(X, y), RandomCoefficients(mean, root, noise**2, ())


def marginal_log_likelihood(data: TaskDataset, prior: RandomCoefficients) -> float:
    """Σ_t log N(y_t; X_t m, X_t S X_tᵀ + σ² I), by the dense covariance of each task's rows."""
    total = 0.0
    for first, last in zip(data.offsets[:-1], data.offsets[1:], strict=True):
        if first < last:
            X, y = data.X[first:last], data.y[first:last]
            covariance = X @ prior.covariance @ X.T + prior.noise * np.eye(len(y))
            total += multivariate_normal.logpdf(y, X @ prior.mean, covariance)
    return total + 0.5 * len(data.y) * np.log(2 * np.pi)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_tasks=st.integers(1, 12),
    n_features=st.integers(1, 4),
    most_rows=st.integers(1, 9),
)
def test_the_likelihood_is_the_marginal_one_and_never_falls(
    seed: int, n_tasks: int, n_features: int, most_rows: int
) -> None:
    data, _ = drawn(seed, n_tasks, n_features, most_rows)
    found = random_coefficients(SufficientStatistics.from_dataset(data))
    history = np.array(found.log_likelihoods)
    assert (np.diff(history) > 0).all()
    assert np.isfinite(found.covariance).all()
    assert found.noise > 0
    assert (np.diag(found.root) > 0).all()


@every_form
def test_the_last_likelihood_is_that_of_what_is_found(form: Any) -> None:
    data, truth = drawn(0)
    found = random_coefficients(form.from_dataset(data))
    assert found.log_likelihoods[-1] == pytest.approx(marginal_log_likelihood(data, found), rel=1e-4)
    assert found.log_likelihoods[-1] > marginal_log_likelihood(data, truth)


@every_form
def test_no_change_of_the_parameters_makes_the_rows_likelier(form: Any) -> None:
    data, _ = drawn(1, n_tasks=60)
    found = random_coefficients(form.from_dataset(data))
    best = marginal_log_likelihood(data, found)
    rng = np.random.default_rng(0)
    for size in (0.1, 0.01):
        for _ in range(20):
            root = found.root @ (np.eye(3) + size * np.triu(rng.standard_normal((3, 3))))
            other = RandomCoefficients(
                found.mean + size * root @ rng.standard_normal(3),
                root,
                found.noise * np.exp(size * rng.standard_normal()),
                (),
            )
            assert marginal_log_likelihood(data, other) < best + 1e-2


def test_what_many_tasks_were_drawn_from_is_found() -> None:
    data, truth = drawn(2, n_tasks=4000, most_rows=12)
    found = random_coefficients(SufficientStatistics.from_dataset(data))
    np.testing.assert_allclose(found.mean, truth.mean, atol=0.15)
    np.testing.assert_allclose(found.covariance, truth.covariance, rtol=0.1, atol=0.05)
    assert found.noise == pytest.approx(truth.noise, rel=0.05)


@every_form
def test_expected_weights_are_the_posterior_means(form: Any) -> None:
    data, truth = drawn(3)
    statistics = form.from_dataset(data)
    expected = truth.expected_weights(statistics)
    precision = np.linalg.inv(truth.covariance)
    for t, (first, last) in enumerate(zip(data.offsets[:-1], data.offsets[1:], strict=True)):
        X, y = data.X[first:last], data.y[first:last]
        rest = X.T @ (y - X @ truth.mean) / truth.noise
        mean = truth.mean + np.linalg.solve(precision + X.T @ X / truth.noise, rest)
        np.testing.assert_allclose(expected[t], mean, rtol=1e-8, atol=1e-8)


@every_form
def test_it_goes_along_with_any_change_of_the_features(form: Any) -> None:
    data, _ = drawn(4)
    A = np.array([[1e3, 2.0, 0.0], [0.0, 1.0, -1.0], [-5.0, 0.0, 1e-2]])
    mixed = TaskDataset(data.X @ A, data.y, data.offsets, data.task_ids, data.feature_names)
    one, other = (random_coefficients(form.from_dataset(d)) for d in (data, mixed))
    assert other.noise == pytest.approx(one.noise, rel=1e-4)
    np.testing.assert_allclose(A @ other.mean, one.mean, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(A @ other.covariance @ A.T, one.covariance, rtol=1e-2, atol=1e-3)


def test_tasks_without_rows_say_nothing_and_expect_the_mean() -> None:
    data, _ = drawn(5)
    empty = np.empty((0, 3))
    rows = [data.X[a:b] for a, b in zip(data.offsets[:-1], data.offsets[1:], strict=True)]
    targets = [data.y[a:b] for a, b in zip(data.offsets[:-1], data.offsets[1:], strict=True)]
    more = TaskDataset.from_arrays([*rows, *[empty] * 20], [*targets, *[np.empty(0)] * 20])
    one, other = (random_coefficients(SufficientStatistics.from_dataset(d)) for d in (data, more))
    np.testing.assert_allclose(other.covariance, one.covariance, rtol=1e-2, atol=1e-3)
    weights = other.expected_weights(SufficientStatistics.from_dataset(more))
    assert (weights[-20:] == other.mean).all()


def test_tasks_that_agree_leave_a_covariance_that_can_be_inverted() -> None:
    rng = np.random.default_rng(6)
    X = rng.standard_normal((50, 10, 3))
    y = X @ [1.0, 2.0, 3.0] + 0.1 * rng.standard_normal((50, 10))
    found = random_coefficients(SufficientStatistics.from_dataset(TaskDataset.from_arrays(X, y)))
    np.testing.assert_allclose(found.mean, [1.0, 2.0, 3.0], atol=0.02)
    values = np.linalg.eigvalsh(found.covariance)
    assert values[0] > 0.1 * LEAST_VARIANCE * values.mean()


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.zeros((4, 3, 2)), np.ones((4, 3))),
        (np.ones((4, 3, 2)), np.zeros((4, 3))),
        (np.ones((4, 3, 2)), np.ones((4, 3))),
        (np.eye(5)[None].repeat(3, axis=0)[:, :2], np.arange(6.0).reshape(3, 2)),
    ],
)
@every_form
def test_data_that_say_little_give_finite_answers(form: Any, X: np.ndarray, y: np.ndarray) -> None:
    statistics = form.from_dataset(TaskDataset.from_arrays(list(X), list(y)))
    found = random_coefficients(statistics)
    assert np.isfinite(found.expected_weights(statistics)).all()
    assert np.isfinite(np.linalg.inv(found.root)).all()
    assert 0 < found.noise < np.inf


def test_no_rows_at_all_expect_zero() -> None:
    data = TaskDataset.from_arrays([np.empty((0, 2))] * 3, [np.empty(0)] * 3)
    statistics = SufficientStatistics.from_dataset(data)
    found = random_coefficients(statistics)
    assert (found.expected_weights(statistics) == pooled_weights(statistics)).all()
    assert found.log_likelihoods == ()


def test_the_same_on_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    data, _ = drawn(7, n_tasks=40_000, n_features=4, most_rows=2)  # enough work for two parts
    statistics = SufficientStatistics.from_dataset(data)
    found = []
    for n_threads in (1, 2):
        monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", n_threads)
        found.append(random_coefficients(statistics))
    assert found[0].root.tobytes() == found[1].root.tobytes()


def test_it_arrives_in_tens_of_steps_where_features_nearly_agree() -> None:
    rng = np.random.default_rng(8)
    level = rng.lognormal(0.0, 1.0, (200, 40, 1))
    X = level + 0.1 * rng.standard_normal((200, 40, 4))
    W = 0.25 + 0.1 * rng.standard_normal((200, 4))
    y = np.einsum("tnp,tp->tn", X, W) + 0.3 * rng.standard_normal((200, 40))
    found = random_coefficients(SufficientStatistics.from_dataset(TaskDataset.from_arrays(X, y)))
    assert len(found.log_likelihoods) <= 40
    np.testing.assert_allclose(found.mean, np.full(4, 0.25), atol=0.05)
    assert found.noise == pytest.approx(0.09, rel=0.05)


def test_many_features_say_the_same_by_products_of_matrices() -> None:
    data, truth = drawn(10, n_tasks=70, n_features=20, most_rows=30)
    statistics = SufficientStatistics.from_dataset(data)
    alone = statistics.least_squares
    arrays = statistics.gram, statistics.xty, alone.weights, alone.residual, truth.mean, truth.root
    found = []
    for expectation in (expect, expect_wide):
        scores, square, sums = np.zeros((70, 20)), np.zeros((20, 20)), np.zeros(3)
        expectation(*map(read_only, arrays), truth.noise, scores, square, sums)
        found.append((scores, square, sums))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8)


def test_a_thousand_of_many_tasks_with_many_features_tell_of_all() -> None:
    data, truth = drawn(11, n_tasks=2500, n_features=17, most_rows=40)
    statistics = SufficientStatistics.from_dataset(data)
    found = random_coefficients(statistics)
    expected = truth.expected_weights(statistics)
    off = np.linalg.norm(found.expected_weights(statistics) - expected)
    assert off < 0.1 * np.linalg.norm(expected - truth.mean)
    assert found.noise == pytest.approx(truth.noise, rel=0.05)


def test_tasks_that_agree_have_strengths_of_one_unit_in_all_folds() -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((60, 40, 3))
        y = X @ [1.0, 2.0, 3.0] + 0.5 * rng.standard_normal((60, 40))
        chosen = select(TaskDataset.from_arrays(X, y), n_folds=4, metric="mahalanobis")
        assert (chosen.n_groups[:, -1] <= 4).all()
