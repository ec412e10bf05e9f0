"""Groups of fused tasks, and the problem of the groups: the same objective on fewer tasks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccmtl_core import TaskGraph
from ccmtl_core.solver.clusters import Clusters, MergedProblem
from tests.core.fusion_problems import Instance, instances

property_test = settings(derandomize=True, max_examples=80)


def test_fused_edges_connect_groups() -> None:
    graph = TaskGraph([[0, 3], [1, 2], [2, 4], [3, 4]], np.ones(4), 6)
    clusters = Clusters.along(graph, np.array([True, True, True, False]))
    assert clusters.label.tolist() == [0, 1, 1, 0, 1, 2]
    assert (clusters.n_clusters, clusters.size.tolist()) == (3, [2, 3, 1])
    assert [group.tolist() for group in clusters.members] == [[1, 2, 4], [0, 3]], "largest first"
    assert clusters.mean(np.arange(6.0)[:, None]).ravel().tolist() == [1.5, 7 / 3, 5.0]


def test_only_exactly_equal_weights_count() -> None:
    graph = TaskGraph([[0, 1], [1, 2]], np.ones(2), 4)
    W = np.array([[1.0, 2.0], [1.0, 2.0], [1.0, 2.0 + 1e-15], [1.0, 2.0]])
    assert Clusters.of_equal(graph, W).label.tolist() == [0, 0, 1, 2], "and only along edges"


@property_test
@given(instance=instances(), seed=st.integers(0, 2**32))
def test_the_merged_objective_is_the_objective_of_equal_weights(instance: Instance, seed: int) -> None:
    rng = np.random.default_rng(seed)
    clusters = Clusters.along(instance.graph, rng.random(len(instance.graph.edges)) < 0.4)
    merged = MergedProblem(instance.problem, clusters)
    scale = np.sqrt(np.diagonal(instance.statistics.gram, axis1=1, axis2=2).max(axis=0))
    V = rng.standard_normal((clusters.n_clusters, instance.n_features)) / np.where(scale > 0, scale, 1.0)
    W = V[clusters.label]
    fits = merged.problem.quadratic.least_squares
    noise = 10 * instance.rounding(W) + float(fits.residual_error.sum())
    assert merged.problem.objective(V) == pytest.approx(instance.objective(W), rel=1e-11, abs=noise)
    between = merged.edge >= 0
    d = instance.problem.differences(W)
    assert not d[~between].any()
    merged_d = merged.problem.differences(V)[merged.edge[between]]
    assert np.array_equal(d[between], merged.sign[between, None] * merged_d)
    assert merged.problem.graph.multiplicity.sum() == instance.graph.multiplicity[between].sum()


@property_test
@given(instance=instances(), seed=st.integers(0, 2**32))
def test_means_and_labels_cover_every_task_once(instance: Instance, seed: int) -> None:
    rng = np.random.default_rng(seed)
    clusters = Clusters.along(instance.graph, rng.random(len(instance.graph.edges)) < 0.5)
    assert clusters.size.sum() == instance.n_tasks
    together = sorted(t for group in clusters.members for t in group.tolist())
    alone = np.flatnonzero(clusters.size[clusters.label] == 1).tolist()
    assert sorted(together + alone) == list(range(instance.n_tasks))
    W = rng.standard_normal((instance.n_tasks, 2))
    expected = [W[clusters.label == c].mean(axis=0) for c in range(clusters.n_clusters)]
    assert clusters.mean(W) == pytest.approx(np.array(expected), abs=1e-14)
