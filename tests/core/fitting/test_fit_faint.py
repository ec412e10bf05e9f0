"""What features too faint for double precision might save is part of the certified gap."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ccmtl_core import (
    SolveStatus,
    SufficientStatistics,
    TaskDataset,
    TaskGraph,
    TriangularStatistics,
    fit,
)


@pytest.mark.parametrize("form", [SufficientStatistics, TriangularStatistics])
@pytest.mark.parametrize("strength", [1e-3, 1.0, 1e3])
def test_what_a_faint_mixture_of_features_might_save_is_part_of_the_gap(form: type, strength: float) -> None:
    """Together, tasks of two rows each tell a third feature from the sum of two; rounding does not."""
    rng, faint, X, y = np.random.default_rng(3), 1e-7, [], []
    for _ in range(4):
        x, rest = rng.standard_normal((2, 3)), rng.standard_normal(2)
        x[:, 2] = x[:, 0] + x[:, 1] + faint * rest
        X.append(x)
        y.append(x[:, 0] + 2 * (x[:, 2] - x[:, 0] - x[:, 1]) / faint + 0.1 * rng.standard_normal(2))
    data, graph = TaskDataset.from_arrays(X, y), TaskGraph([(0, 1), (1, 2), (2, 3)], [1, 1, 1], 4)
    result = fit(form.from_dataset(data), fusion_strength=strength, graph=graph)  # type: ignore[attr-defined]
    better = np.tile([1 - 2 / faint, -2 / faint, 2 / faint], (4, 1))
    J, J_better = (_objective(X, y, W, graph, strength) for W in (result.model.weights, better))
    assert (J - J_better) / J <= result.report.gap
    assert result.report.status is SolveStatus.PRECISION_LIMIT
    assert any("mixtures of others" in note for note in result.report.notes)


@pytest.mark.parametrize("strength", [0.0, 1e-3, 1.0])
def test_what_a_faint_feature_of_each_task_might_save_is_part_of_the_gap(strength: float) -> None:
    """A column of ones, and seconds since 1970 over ten minutes: the Gram form has no digit for the slope."""
    rng, origin, X, y = np.random.default_rng(0), 1_764_000_000.0, [], []
    for _ in range(6):
        seconds = np.sort(rng.integers(0, 600, 48)).astype(float)
        X.append(np.column_stack([np.ones(48), origin + seconds]))
        y.append(seconds / 60 + 0.1 * rng.standard_normal(48))
    result = fit(TaskDataset.from_arrays(X, y), fusion_strength=strength, n_neighbors=3)
    better = np.tile([-origin / 60, 1 / 60], (6, 1))
    J, J_better = (_objective(X, y, W, result.graph, strength) for W in (result.model.weights, better))
    assert (J - J_better) / J <= result.report.gap
    assert any("mixtures of others" in note for note in result.report.notes)


@pytest.mark.parametrize("metric", ["euclidean", "mahalanobis"])
@pytest.mark.parametrize("strength", [0.0, 1e-3, 1.0])
@pytest.mark.parametrize("span", [10, 40, 400])
def test_what_a_feature_saves_that_looks_constant_beside_an_intercept_is_part_of_the_gap(
    span: int, strength: float, metric: Any
) -> None:
    """The same with an intercept, which takes the mean of the seconds out: of a few nothing is left."""
    rng, origin, X, y = np.random.default_rng(0), 1_764_000_000.0, [], []
    for _ in range(6):
        seconds = np.sort(rng.integers(0, span, 48)).astype(float)
        X.append(np.column_stack([origin + seconds, rng.standard_normal(48)]))
        y.append(seconds / 60 + X[-1][:, 1] + 0.1 * rng.standard_normal(48))
    statistics = SufficientStatistics.from_dataset(TaskDataset.from_arrays(X, y))
    result = fit(statistics, fusion_strength=strength, n_neighbors=3, fit_intercept=True, metric=metric)
    centred = [x - x.mean(axis=0) for x in X], [t - t.mean() for t in y]
    better = np.tile([1 / 60, 1.0], (6, 1))
    J, J_better = (_objective(*centred, W, result.graph, strength) for W in (result.model.weights, better))
    assert (J - J_better) / J <= result.report.gap
    assert result.report.status is SolveStatus.PRECISION_LIMIT
    assert any("mixtures of others" in note for note in result.report.notes)


def test_constant_features_hide_nothing_beside_an_intercept() -> None:
    rng = np.random.default_rng(0)
    X = [np.column_stack([rng.standard_normal(48), np.full(48, c)]) for c in (0.1, 5.95, 1e9 / 3, 0.0)]
    y = [1e3 + x[:, 0] + rng.standard_normal(48) for x in X]
    data = TaskDataset.from_arrays(X, y)
    report = fit(data, fusion_strength=1.0, n_neighbors=2, fit_intercept=True).report
    assert report.status is SolveStatus.CONVERGED
    assert not report.notes


@pytest.mark.parametrize("form", [SufficientStatistics, TriangularStatistics])
def test_features_that_repeat_others_hide_nothing(form: type) -> None:
    rng = np.random.default_rng(0)
    X = [rng.standard_normal((30, 3)) for _ in range(12)]
    X = [np.column_stack([x, x[:, 0] + x[:, 1], 3.0 * x[:, 2], np.zeros(30)]) for x in X]
    y = [x[:, 0] + rng.standard_normal(30) for x in X]
    statistics = form.from_dataset(TaskDataset.from_arrays(X, y))  # type: ignore[attr-defined]
    for strength in (0.0, 1.0, 100.0):
        report = fit(statistics, fusion_strength=strength, n_neighbors=3).report
        assert report.status is SolveStatus.CONVERGED
        assert not report.notes


def _objective(
    X: list[np.ndarray], y: list[np.ndarray], weights: np.ndarray, graph: TaskGraph, strength: float
) -> float:
    """J from the rows, in extended precision."""
    W = weights.astype(np.longdouble)
    loss = sum((((x * w).sum(axis=1) - t) ** 2).sum() for x, t, w in zip(X, y, W, strict=True))
    i, j = graph.edges.T
    lengths = np.sqrt(((W[i] - W[j]) ** 2).sum(axis=1))
    return float(loss + strength * (graph.multiplicity * lengths).sum()) / 2
