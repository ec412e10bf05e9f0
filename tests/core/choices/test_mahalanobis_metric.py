"""Fusing in the metric of the tasks' own covariance: what it promises, on both forms of the statistics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from ccmtl_core import (
    FitResult,
    SolveStatus,
    SufficientStatistics,
    TaskDataset,
    TriangularStatistics,
    fit,
    fit_path,
    pooled_weights,
    single_task_weights,
)
from ccmtl_core.choices.feature_basis import from_basis, in_basis, to_basis
from tests.core.problems import datasets

every_form = pytest.mark.parametrize("form", [SufficientStatistics, TriangularStatistics])
L = np.array([[2.0, -1.0, 0.5], [0.0, 1e-3, 3.0], [0.0, 0.0, 40.0]])


def grouped(seed: int = 0, n_tasks: int = 40, change: np.ndarray | None = None) -> TaskDataset:
    """Four groups of tasks, with features seen through ``change``."""
    rng = np.random.default_rng(seed)
    groups = rng.standard_normal((4, 3))
    X = rng.standard_normal((n_tasks, 12, 3))
    y = np.einsum("tnp,tp->tn", X, groups[np.arange(n_tasks) % 4]) + 0.5 * rng.standard_normal((n_tasks, 12))
    return TaskDataset.from_arrays(X if change is None else X @ change, y)


def fused(data: Any, **options: Any) -> FitResult:
    return fit(data, fusion_strength=8.0, n_neighbors=4, tolerance=1e-9, metric="mahalanobis", **options)


@pytest.mark.parametrize(
    "change",
    [
        np.diag([1e3, 1.0, 1e-3]),
        np.linalg.qr(np.random.default_rng(1).standard_normal((3, 3)))[0],
        np.array([[1.0, 5.0, 0.0], [0.0, 1.0, 2.0], [3.0, 0.0, 1.0]]),
    ],
    ids=["scaled", "rotated", "mixed"],
)
def test_predictions_do_not_depend_on_the_features_scale_or_mixture(change: np.ndarray) -> None:
    plain, changed = grouped(), grouped(change=change)
    one, other = fused(plain), fused(changed)
    np.testing.assert_array_equal(one.graph.edges, other.graph.edges)
    assert other.report.objective == pytest.approx(one.report.objective, rel=1e-4)
    np.testing.assert_allclose(other.model.weights @ change.T, one.model.weights, rtol=1e-2, atol=1e-2)
    assert one.clusters == other.clusters


def test_euclidean_predictions_do() -> None:
    change = np.diag([1e3, 1.0, 1e-3])
    one, other = (
        fit(grouped(change=c), fusion_strength=8.0, n_neighbors=4).model.weights for c in (np.eye(3), change)
    )
    assert abs(other @ change - one).max() > 0.1


def test_both_forms_of_the_statistics_agree() -> None:
    one, other = (fused(f.from_dataset(grouped())) for f in (SufficientStatistics, TriangularStatistics))
    assert one.report.objective == pytest.approx(other.report.objective, rel=1e-8)
    np.testing.assert_allclose(one.model.weights, other.model.weights, atol=1e-4)


def test_fused_tasks_have_bitwise_equal_weights() -> None:
    result = fused(grouped())
    members = [group for group in result.clusters if len(group) > 1]
    assert members
    rows = {
        name: row.tobytes() for name, row in zip(result.model.task_ids, result.model.weights, strict=True)
    }
    for group in members:
        assert len({rows[name] for name in group}) == 1


def test_the_ends_are_each_task_alone_and_all_as_one() -> None:
    statistics = SufficientStatistics.from_dataset(grouped())
    path = fit_path(statistics, [0.0, 1e9], n_neighbors=15, tolerance=1e-9, metric="mahalanobis")
    np.testing.assert_allclose(path.model(0).weights, single_task_weights(statistics), atol=1e-6)
    pooled = np.tile(pooled_weights(statistics), (statistics.n_tasks, 1))
    np.testing.assert_allclose(path.model(1).weights, pooled, atol=1e-6)
    assert path.n_groups == (40, 1)


def test_a_fit_can_begin_where_an_earlier_one_ended() -> None:
    statistics = SufficientStatistics.from_dataset(grouped())
    first = fused(statistics)
    again = fused(statistics, initial_weights=first.model.weights)
    np.testing.assert_allclose(again.model.weights, first.model.weights, atol=1e-5)
    assert again.report.rounds <= first.report.rounds


def test_intercepts_and_scaled_losses_go_with_it() -> None:
    data = grouped()
    shifted = TaskDataset(data.X, data.y + 7.0, data.offsets, data.task_ids, data.feature_names)
    one, other = (fused(d, fit_intercept=True, loss_scaling="spread").model for d in (data, shifted))
    np.testing.assert_allclose(other.weights, one.weights, atol=1e-4)
    np.testing.assert_allclose(other.intercept, one.intercept + 7.0, atol=1e-4)


@every_form
def test_a_basis_is_that_of_the_rows(form: Any) -> None:
    data = grouped()
    rows = TaskDataset(data.X @ L, data.y, data.offsets, data.task_ids, data.feature_names)
    changed, expected = in_basis(form.from_dataset(data), L), form.from_dataset(rows)
    np.testing.assert_allclose(changed.gram, expected.gram, rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(changed.xty, expected.xty, rtol=1e-10, atol=1e-9)
    np.testing.assert_array_equal(changed.gram, np.swapaxes(changed.gram, 1, 2))
    W = np.random.default_rng(0).standard_normal((40, 3))
    np.testing.assert_allclose(
        changed.squared_error(W), expected.squared_error(from_basis(W, L) @ np.linalg.inv(L).T), rtol=1e-8
    )


def seconds_of_ten_minutes(*others: np.ndarray) -> TaskDataset:
    """Six tasks that change by the second, which the Gram form has next to no digit for."""
    rng, X, y = np.random.default_rng(0), [], []
    for _ in range(6):
        seconds = np.sort(rng.integers(0, 600, 48)).astype(float)
        X.append(np.column_stack([1_764_000_000.0 + seconds, rng.standard_normal(48), *others]))
        y.append(seconds / 60 + X[-1][:, 1] + 0.1 * rng.standard_normal(48))
    return TaskDataset.from_arrays(X, y)


@pytest.mark.parametrize("scaling", ["none", "spread"])
def test_what_rounding_hides_is_hidden_in_every_basis(scaling: Any) -> None:
    report = fused(seconds_of_ten_minutes(np.ones(48)), loss_scaling=scaling).report
    assert report.status is SolveStatus.PRECISION_LIMIT
    assert report.gap >= 0.9
    assert any("mixtures of others" in note for note in report.notes)


@pytest.mark.parametrize("scaling", ["none", "spread"])
def test_no_basis_brings_digits_back(scaling: Any) -> None:
    report = fused(seconds_of_ten_minutes(), loss_scaling=scaling, fit_intercept=True).report
    assert any("Fewer than six digits are left" in note for note in report.notes)


@every_form
def test_mixtures_of_other_features_change_no_prediction(form: Any) -> None:
    data = grouped()
    mixed = data.X @ np.array([[0.5, 1.0], [0.5, -2.0], [0.0, 30.0]])
    X = np.column_stack([mixed[:, :1], data.X, mixed[:, 1:], np.ones(len(data.y))])
    names = tuple("abcdef")
    more = TaskDataset(X, data.y, data.offsets, data.task_ids, names)
    one, other = (fused(form.from_dataset(d), fit_intercept=True) for d in (data, more))
    assert other.report.status is SolveStatus.CONVERGED
    assert other.report.objective == pytest.approx(one.report.objective, rel=1e-6)
    assert other.clusters == one.clusters
    assert other.model.feature_names == names
    predicted = (
        model.model.predict(rows, data.task_ids[:1] * 9)
        for model, rows in ((one, data.X[:9]), (other, X[:9]))
    )
    np.testing.assert_allclose(*predicted, rtol=1e-4, atol=1e-4)
    if form is SufficientStatistics:  # then weights are the smallest that predict this
        null = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][3:]
        np.testing.assert_allclose(other.model.weights @ null.T, 0.0, atol=1e-6)


def series_with_windows(n_tasks: int, n_rows: int) -> TaskDataset:
    """Levels far above their changes, as lags, means of them, and four indicators of the season."""
    rng = np.random.default_rng(9)
    level = rng.lognormal(3.0, 1.0, (n_tasks, 1))
    y = level + np.cumsum(rng.standard_normal((n_tasks, n_rows + 8)), axis=1)
    lags = np.stack([y[:, 8 - lag : -lag] for lag in range(1, 9)], axis=2)
    means = np.stack([lags[:, :, :w].mean(axis=2) for w in (1, 2, 4, 8)], axis=2)
    season = np.tile(np.eye(4)[np.arange(n_rows) % 4], (n_tasks, 1, 1))
    return TaskDataset.from_arrays(np.concatenate([means, lags, season], axis=2), y[:, 8:])


@pytest.mark.parametrize("n_rows", [9, 30], ids=["fewer rows than features", "more rows than features"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_windows_of_lags_leave_a_certificate(n_rows: int, *, fit_intercept: bool) -> None:
    data = series_with_windows(40, n_rows)
    path = fit_path(data, n_neighbors=5, tolerance=1e-3, metric="mahalanobis", fit_intercept=fit_intercept)
    assert max(point.gap for point in path.points) <= 1e-3


def test_there_and_back_is_the_same() -> None:
    W = np.random.default_rng(0).standard_normal((40, 3))
    np.testing.assert_allclose(from_basis(W, L), W @ L.T, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(from_basis(to_basis(W, L), L), W, rtol=1e-10, atol=1e-10)


@every_form
@settings(max_examples=20, deadline=None, derandomize=True)
@given(data=datasets())
def test_any_tasks_get_finite_weights_and_a_true_gap(form: Any, data: TaskDataset) -> None:
    """Empty tasks, more features than rows, features without a number other than zero."""
    result = fit(form.from_dataset(data), fusion_strength=1.0, n_neighbors=2, metric="mahalanobis")
    assert np.isfinite(result.model.weights).all()
    assert result.report.gap >= 0.0


def test_tasks_without_rows_go_with_the_others() -> None:
    data = grouped()
    rows, targets = data.X.reshape(40, 12, 3), data.y.reshape(40, 12)
    more = TaskDataset.from_arrays([*rows, *[np.empty((0, 3))] * 2], [*targets, *[np.empty(0)] * 2])
    weights = fused(more).model.weights
    assert weights[-1].tobytes() == weights[-2].tobytes()
    assert (weights[-1] >= weights[:-2].min(axis=0)).all()
    assert (weights[-1] <= weights[:-2].max(axis=0)).all()
