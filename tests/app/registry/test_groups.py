"""Groups are the tasks with equal weights, largest first; the graph is read back as it was stored."""

from __future__ import annotations

import numpy as np

from app.registry.groups import Groups, graph_matrix, neighbours
from ccmtl_core import SufficientStatistics, TaskDataset, TaskGraph, fit


def test_groups_are_those_that_the_fit_fused() -> None:
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(8, 3)) for _ in range(40)]
    y = [x @ [1.0, -1.0, t % 3] + 0.1 * rng.normal(size=8) for t, x in enumerate(X)]
    result = fit(SufficientStatistics.from_dataset(TaskDataset.from_arrays(X, y)), 3.0, n_neighbors=4)
    groups = Groups.of_equal(result.model.weights)
    ids = result.model.task_ids
    found = [{ids[t] for t in groups.members(g)} for g in range(len(groups.size))]
    assert len(found) > 1
    assert sorted(map(sorted, found)) == sorted(map(sorted, result.clusters))
    assert groups.size.tolist() == sorted(map(len, result.clusters), reverse=True)


def test_rows_with_one_equal_number_are_no_group() -> None:
    weights = np.array([[1.0, 2.0], [1.0, 3.0], [0.0, 5.0], [-0.0, 5.0], [1.0, 3.0], [1.0, 3.0]])
    groups = Groups.of_equal(weights)
    assert groups.label.tolist() == [-1, 0, 1, 1, 0, 0]
    assert groups.size.tolist() == [3, 2]
    assert [groups.members(g).tolist() for g in (0, 1)] == [[1, 4, 5], [2, 3]]


def test_tasks_that_all_differ_make_no_group() -> None:
    assert Groups.of_equal(np.arange(6.0).reshape(3, 2)).size.tolist() == []


def test_every_edge_of_a_graph_is_read_back() -> None:
    n = 100
    edges = [(i, j) for i in range(n) for j in range(i + 1, n) if (i * j) % 7 == 3]
    graph = TaskGraph(edges, [1 + (i + j) % 2 for i, j in edges], n_tasks=n)
    matrix = graph_matrix(graph)
    assert matrix.shape == (-(-len(edges) // 64), 64)
    found = {(t, other, mutual) for t in range(n) for other, mutual in neighbours(matrix, n, t)}
    assert found == {e for i, j in edges for m in [(i + j) % 2 == 1] for e in [(i, j, m), (j, i, m)]}


def test_a_graph_without_edges_can_be_stored() -> None:
    assert neighbours(graph_matrix(TaskGraph(np.empty((0, 2)), [], n_tasks=2)), 2, 0) == []
