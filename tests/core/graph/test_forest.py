"""Forests reach every task, and carry any residual to their roots."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccmtl_core.graph.forest import spanning_forest
from ccmtl_core.kernels.solver.edge_kernels import send_to_roots
from ccmtl_core.solver.objective import FusionProblem
from tests.core.fusion_problems import GRAPHS, random_graph, regular


@pytest.mark.parametrize("kind", GRAPHS)
def test_every_component_has_a_root_and_every_other_task_a_parent_next_to_it(kind: str) -> None:
    graph = GRAPHS[kind](30)
    forest = spanning_forest(graph)
    assert sorted(forest.order) == list(range(30))
    child = np.flatnonzero(forest.parent >= 0)
    assert 30 - len(child) == graph.n_components
    pairs = np.sort(np.stack([child, forest.parent[child]], axis=1), axis=1)
    assert np.array_equal(graph.edges[forest.edge[child]], pairs)
    place = np.argsort(forest.order)
    assert (place[forest.parent[child]] < place[child]).all()


def test_preferred_tasks_are_roots() -> None:
    preferred = np.zeros(10, dtype=bool)
    preferred[[3, 7]] = True
    forest = spanning_forest(GRAPHS["chain"](10), preferred)
    assert np.flatnonzero(forest.parent < 0).tolist() == [3, 7]


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.integers(0, 2**32), st.sampled_from([0.05, 0.2, 0.6]))
def test_flows_carry_the_residual_to_the_roots(seed: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, 12, share)
    residual, U = rng.standard_normal((12, 2)), np.zeros((len(graph.edges), 2))
    left = residual.copy()
    forest = spanning_forest(graph)
    send_to_roots(*forest, left, U)
    problem = FusionProblem(regular(rng, graph, 2).statistics, graph, 0.0)
    np.testing.assert_allclose(problem.divergence(U) + left, residual, atol=1e-13)
    assert not left[forest.parent >= 0].any()
