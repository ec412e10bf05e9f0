"""The leaves' search against all distances, ties and repeated points included."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import KDTree

from ccmtl_core.graph.knn_graph import nearest_neighbour_graph
from ccmtl_core.graph.leaf_search import nearest_by_leaves


def by_all_distances(points: np.ndarray, k: int) -> np.ndarray:
    squares = np.zeros((len(points), len(points)))
    for column in points.T:
        squares += (column[:, None] - column) ** 2
    return np.argsort(squares, axis=1, kind="stable")[:, :k]


@settings(derandomize=True, max_examples=60, deadline=None)
@given(
    n=st.integers(1, 400) | st.integers(1000, 1100),  # one block, and several
    P=st.integers(1, 12),
    k=st.integers(1, 12),
    is_lattice=st.booleans(),
    seed=st.integers(0, 2**16),
)
def test_it_finds_the_nearest_and_of_equals_the_first(
    n: int, P: int, k: int, is_lattice: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    points = rng.integers(-2, 3, (n, P)).astype(np.float64) if is_lattice else rng.normal(size=(n, P))
    k = min(k, n)
    np.testing.assert_array_equal(nearest_by_leaves(points, k), by_all_distances(points, k))


@pytest.mark.parametrize("scale", [1e-150, 1e-6, 1e6])
def test_neither_scale_nor_a_shared_offset_misleads_it(scale: float) -> None:
    points = scale * (np.random.default_rng(0).normal(size=(3000, 5)) + 1e3)
    np.testing.assert_array_equal(nearest_by_leaves(points, 7), KDTree(points).query(points, 7)[1])


def far_outliers(rng: np.random.Generator) -> np.ndarray:
    return np.concatenate([rng.normal(size=(2000, 5)), [[1e12] * 5, [-1e12] * 5]])


def tight_groups(rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(20, 5))[rng.integers(0, 20, 2000)] + 1e-8 * rng.normal(size=(2000, 5))


def heavy_tails(rng: np.random.Generator) -> np.ndarray:
    return rng.standard_cauchy(size=(2000, 5)) ** 3


@pytest.mark.parametrize("cloud", [far_outliers, tight_groups, heavy_tails])
def test_it_is_exact_where_single_precision_is_too_coarse(
    cloud: Callable[[np.random.Generator], np.ndarray],
) -> None:
    points = cloud(np.random.default_rng(0))
    np.testing.assert_array_equal(nearest_by_leaves(points, 7), by_all_distances(points, 7))


def test_single_precision_rules_out_no_neighbour_by_a_hair() -> None:
    """Rings around a centre far from the mean, whose radii differ by less than single precision can tell."""
    rng = np.random.default_rng(0)
    direction = rng.normal(size=(1500, 5))
    direction /= np.linalg.norm(direction, axis=1)[:, None]
    ring = direction * (1.0 + 1e-9 * rng.normal(size=1500))[:, None]
    points = np.concatenate([ring, np.zeros((1, 5)), 0.1 * rng.normal(size=(1500, 5)) + 5.0])
    np.testing.assert_array_equal(nearest_by_leaves(points, 11), by_all_distances(points, 11))


def test_the_graph_of_many_tasks_is_that_of_a_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = np.random.default_rng(0).normal(size=(4000, 6))
    weights[:50] = 0.0
    expected = nearest_neighbour_graph(weights, 8)
    monkeypatch.setattr("ccmtl_core.graph.knn_graph._MANY_POINTS", 1000)
    found = nearest_neighbour_graph(weights, 8)
    np.testing.assert_array_equal(found.edges, expected.edges)
    np.testing.assert_array_equal(found.multiplicity, expected.multiplicity)
