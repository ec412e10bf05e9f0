"""Components and equal ends of edges, against scipy and numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ccmtl_core.kernels.components import components, equal_ends
from tests.core.fusion_problems import GRAPHS, random_graph


def expected(edges: np.ndarray, joins: np.ndarray, n_tasks: int) -> tuple[int, list[int]]:
    i, j = edges[joins].T
    count, label = connected_components(
        coo_array((np.ones(len(i)), (i, j)), shape=(n_tasks, n_tasks)), directed=False
    )
    number: dict[int, int] = {}
    return count, [number.setdefault(c, len(number)) for c in label.tolist()]


@settings(derandomize=True, max_examples=200)
@given(n_tasks=st.integers(1, 40), density=st.floats(0.0, 0.3), seed=st.integers(0, 2**32))
def test_components_are_numbered_by_their_first_tasks(n_tasks: int, density: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    edges = random_graph(rng, n_tasks, density).edges
    joins = rng.random(len(edges)) < 0.7
    count, label = components(edges, joins, n_tasks)
    assert (count, label.tolist()) == expected(edges, joins, n_tasks)
    assert label.dtype == np.int64


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("backwards", [False, True])
def test_shapes_that_make_deep_trees(name: str, backwards: bool) -> None:
    edges = GRAPHS[name](500).edges
    edges = np.ascontiguousarray(edges[::-1]) if backwards else edges
    joins = np.ones(len(edges), dtype=np.bool_)
    count, label = components(edges, joins, 500)
    assert (count, label.tolist()) == expected(edges, joins, 500)


def test_ends_are_equal_in_all_features_or_not_at_all() -> None:
    W = np.array([[1.0, 2.0], [1.0, 2.0], [1.0, np.nextafter(2.0, 3.0)], [0.0, 2.0], [-0.0, 2.0]])
    edges = np.array([[0, 1], [0, 2], [0, 3], [3, 4]])
    assert equal_ends(edges, W).tolist() == [True, False, False, True], "−0 equals 0"
