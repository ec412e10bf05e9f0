"""The whole fit under symmetries of the problem, and from the same rows in other forms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccmtl_core import (
    SufficientStatistics,
    TaskDataset,
    TaskGraph,
    TriangularStatistics,
    fit,
    single_task_weights,
)
from ccmtl_core.solver.objective import FusionProblem
from tests.core.fits import run
from tests.core.fusion_problems import Instance, chain, complete, instances, random_graph, regular
from tests.core.problems import datasets

property_test = settings(derandomize=True, max_examples=25)


@property_test
@given(seed=st.integers(0, 2**32), P=st.integers(1, 4), strength=st.sampled_from([0.1, 1.0, 5.0, 50.0]))
def test_permuted_tasks_and_rotated_features_give_the_same_answer(seed: int, P: int, strength: float) -> None:
    rng = np.random.default_rng(seed)
    T = 8
    instance = regular(rng, random_graph(rng, T, 0.5), P, n=3 * P + 5).with_strength(strength)
    place = rng.permutation(T)  # task t becomes task place[t]
    Q, _ = np.linalg.qr(rng.standard_normal((P, P)))
    W = run(instance, 1e-14).model.weights
    turned = run(moved(instance, place, Q), 1e-14).model.weights
    assert np.linalg.norm(turned[place] - W @ Q) <= 1e-8 * np.linalg.norm(W)


@property_test
@given(instance=instances(wild=False), seed=st.integers(0, 2**32))
def test_where_several_answers_are_optimal_objective_and_predictions_stay(
    instance: Instance, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    place = rng.permutation(instance.n_tasks)
    Q, _ = np.linalg.qr(rng.standard_normal((instance.n_features, instance.n_features)))
    other = moved(instance, place, Q)
    one, two = run(instance, 1e-10), run(other, 1e-10)
    size = np.sqrt(instance.statistics.total_yty)
    assert one.report.objective == pytest.approx(two.report.objective, rel=1e-7, abs=1e-13 * size**2)
    gap = max(one.report.gap * one.report.objective, two.report.gap * two.report.objective)
    for t, X in enumerate(instance.X):
        first, second = X @ one.model.weights[t], other.X[place[t]] @ two.model.weights[place[t]]
        # The loss is 1-strongly convex in the predictions: J − J* bounds their distance.
        assert np.linalg.norm(first - second) <= 3 * np.sqrt(2 * gap) + 1e-6 * size


def moved(instance: Instance, place: np.ndarray, Q: np.ndarray) -> Instance:
    back = np.argsort(place)
    X = tuple(instance.X[t] @ Q for t in back)
    y = tuple(instance.y[t] for t in back)
    ends = np.sort(place[instance.graph.edges], axis=1)
    order = np.lexsort((ends[:, 1], ends[:, 0]))
    graph = TaskGraph(ends[order], instance.graph.multiplicity[order], instance.n_tasks)
    return Instance(X, y, graph, instance.strength)


@settings(derandomize=True, max_examples=30)
@given(data=datasets(), seed=st.integers(0, 2**32), n_parts=st.integers(2, 6))
def test_statistics_merged_in_any_order_give_the_same_objective(
    data: TaskDataset, seed: int, n_parts: int
) -> None:
    rng = np.random.default_rng(seed)
    parts = SufficientStatistics.by_fold(data, rng.integers(0, n_parts, len(data.y)), n_parts)
    graph = complete(data.n_tasks) if data.n_tasks > 1 else chain(1)
    weights = single_task_weights(SufficientStatistics.from_dataset(data))
    values = []
    for _ in range(3):
        total, *rest = (parts[f] for f in rng.permutation(n_parts))
        for part in rest:
            total = total + part
        values.append(FusionProblem(total.quadratic, graph, 1.0).objective(weights))
    noise = 4 * np.finfo(float).eps * total.total_yty
    assert np.ptp(values) <= 1e-12 * max(values) + noise


def test_a_fit_of_merged_statistics_is_the_fit_of_the_whole() -> None:
    rng = np.random.default_rng(0)
    instance = regular(rng, random_graph(rng, 12, 0.4), 4).with_strength(2.0)
    parts = SufficientStatistics.by_fold(instance.dataset, rng.integers(0, 3, len(instance.dataset.y)), 3)
    results = [
        fit(total, fusion_strength=2.0, graph=instance.graph, tolerance=1e-13).report.objective
        for total in (instance.statistics, parts[0] + parts[1] + parts[2], parts[2] + (parts[1] + parts[0]))
    ]
    assert np.ptp(results) <= 1e-12 * results[0]


@pytest.mark.parametrize("form", [SufficientStatistics, TriangularStatistics])
def test_dataset_and_statistics_of_both_forms_agree(
    form: type[SufficientStatistics] | type[TriangularStatistics],
) -> None:
    instance = regular(np.random.default_rng(1), chain(15), 3)
    expected = fit(instance.dataset, fusion_strength=1.0, n_neighbors=4, tolerance=1e-10)
    result = fit(form.from_dataset(instance.dataset), fusion_strength=1.0, n_neighbors=4, tolerance=1e-10)
    assert result.report.objective == pytest.approx(expected.report.objective, rel=1e-9)
    assert result.model.weights == pytest.approx(expected.model.weights, rel=1e-4, abs=1e-6)
    assert np.array_equal(result.graph.edges, expected.graph.edges)
