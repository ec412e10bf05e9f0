"""The neighbour graph: true neighbours by brute force, and the tie rule where rows are equal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccmtl_core import DataError, ParameterError, TaskGraph, nearest_neighbour_graph
from ccmtl_core.graph.knn_graph import TIE_RULE

property_test = settings(derandomize=True, max_examples=60)


def distances(W: np.ndarray) -> np.ndarray:
    D = np.linalg.norm(W[:, None, :].astype(np.longdouble) - W[None, :, :], axis=2).astype(float)
    np.fill_diagonal(D, np.inf)
    return D


def lengths(graph: TaskGraph, W: np.ndarray) -> np.ndarray:
    i, j = graph.edges.T
    return np.linalg.norm(W[i] - W[j], axis=1)


@pytest.mark.parametrize("P", [1, 2, 5, 16, 17, 30, 200])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_each_task_takes_its_k_nearest(P: int, scale: float) -> None:
    rng = np.random.default_rng(P)
    T, k = 150, 7
    W = scale * rng.standard_normal((T, P))
    source = np.repeat(np.arange(T), k)
    target = np.argsort(distances(W), axis=1)[:, :k].ravel()
    expected = TaskGraph.from_directed(source, target, T)
    graph = nearest_neighbour_graph(W, k)
    assert np.array_equal(graph.edges, expected.edges)
    assert np.array_equal(graph.multiplicity, expected.multiplicity)
    assert graph.multiplicity.sum() == k * T


@pytest.mark.parametrize("P", [3, 30])
def test_weights_far_from_zero_keep_their_neighbours(P: int) -> None:
    rng = np.random.default_rng(P)
    W = rng.standard_normal((120, P))
    near = nearest_neighbour_graph(np.round(W, 6), 5)
    far = nearest_neighbour_graph(np.round(W, 6) + 2.0**27, 5)
    assert np.array_equal(near.edges, far.edges)


@pytest.mark.parametrize("P", [3, 30])
def test_features_of_very_different_scale_count_by_their_distance(P: int) -> None:
    rng = np.random.default_rng(P)
    W = rng.standard_normal((100, P)) * 10.0 ** rng.uniform(-6, 6, P)
    D = distances(W)
    graph = nearest_neighbour_graph(W, 3)
    taken = np.sort(D, axis=1)[:, :3].sum()
    assert (graph.multiplicity * lengths(graph, W)).sum() == pytest.approx(taken, rel=1e-12)


@property_test
@given(
    seed=st.integers(0, 2**32),
    sizes=st.lists(st.integers(1, 12), min_size=1, max_size=10),
    k=st.integers(1, 6),
    P=st.sampled_from([1, 2, 30]),
    on_grid=st.booleans(),
)
def test_ties(seed: int, sizes: list[int], k: int, P: int, on_grid: bool) -> None:
    rng = np.random.default_rng(seed)
    points = np.zeros((0, P))
    while len(points) < len(sizes):  # distinct by rejection
        new = rng.integers(-3, 4, P).astype(float) if on_grid else rng.standard_normal(P)
        points = np.unique(np.vstack([points, new]), axis=0)
        on_grid = on_grid and len(points) < 5
    group = np.repeat(rng.permutation(len(sizes)), sizes)
    rng.shuffle(group)
    W = points[group]
    T, k_true = len(W), min(k, len(W) - 1)
    graph = nearest_neighbour_graph(W, k)

    assert graph.multiplicity.sum() == k_true * T, "k directed pairs for each task"
    assert set(graph.multiplicity) <= {1, 2}
    assert (graph.degree >= k_true).all()
    assert graph.tie_rule == TIE_RULE
    again = nearest_neighbour_graph(W.copy(), k)
    assert np.array_equal(graph.edges, again.edges)
    assert np.array_equal(graph.multiplicity, again.multiplicity)

    own_size = np.bincount(group)[group]
    i, j = graph.edges.T
    same = group[i] == group[j]
    for t in range(T):
        mine = np.where(i == t, j, i)[(i == t) | (j == t)]
        inside = (group[mine] == group[t]).sum()
        if own_size[t] <= k_true:
            assert inside == own_size[t] - 1, "a small group is complete"
        else:
            assert inside <= 2 * k_true, "a large group is no hub"
    for g in np.unique(group):
        if len(np.unique(group)) > 1:
            assert (~same & ((group[i] == g) | (group[j] == g))).any(), "each group is tied to the rest"

    # What a task takes outside its group is as near as anything there can be.
    D = distances(W)
    D[group[:, None] == group[None, :]] = np.inf
    first = np.zeros(T, dtype=bool)
    first[np.unique(group, return_index=True)[1]] = True
    outward = np.where(own_size <= k_true, k_true - own_size + 1, np.where(first, k_true, 0))
    wanted = sum(
        np.sort(row)[:n][np.isfinite(np.sort(row)[:n])].sum() for row, n in zip(D, outward, strict=True)
    )
    assert (graph.multiplicity * lengths(graph, W)).sum() == pytest.approx(wanted, rel=1e-12, abs=1e-300)


@pytest.mark.parametrize("P", [1, 5, 30])
@pytest.mark.parametrize("T", [2, 3, 10, 11, 12, 500])
def test_all_rows_equal(T: int, P: int) -> None:
    graph = nearest_neighbour_graph(np.full((T, P), 2.5), 10)
    k = min(10, T - 1)
    assert graph.multiplicity.sum() == k * T
    assert graph.n_components == 1
    assert graph.degree.max() <= 20


def test_a_large_group_without_signal_makes_no_hub() -> None:
    rng = np.random.default_rng(0)
    W = rng.standard_normal((3000, 5))
    W[rng.random(3000) < 0.4] = 0.0
    graph = nearest_neighbour_graph(W, 10)
    silent = ~W.any(axis=1)
    i, j = graph.edges.T
    assert graph.degree.max() <= 100
    assert (silent[i] != silent[j]).any()
    assert graph.degree[silent].mean() <= 21


def test_equal_rows_share_their_takers() -> None:
    W = np.r_[np.zeros(8), 1.0 + 1e-3 * np.arange(40)][:, None]
    graph = nearest_neighbour_graph(W, 45)  # each of the 40 takes its 39 fellows and 6 of the 8 zeros
    i, j = graph.edges.T
    takers = np.array([graph.multiplicity[((i == t) & (j >= 8))].sum() for t in range(8)])
    assert takers.max() - takers.min() <= 1


@pytest.mark.parametrize("P", [1, 30])
def test_minus_zero_is_zero(P: int) -> None:
    W = np.zeros((40, P))
    W[::2] = -0.0
    plus = nearest_neighbour_graph(np.zeros((40, P)), 4)
    assert np.array_equal(nearest_neighbour_graph(W, 4).edges, plus.edges)


@pytest.mark.parametrize(("T", "n_edges"), [(1, 0), (2, 1), (3, 3), (5, 10)])
@pytest.mark.parametrize("k", [5, 1000])
def test_k_at_least_the_number_of_tasks_joins_all(T: int, n_edges: int, k: int) -> None:
    graph = nearest_neighbour_graph(np.random.default_rng(T).standard_normal((T, 2)), k)
    assert len(graph.edges) == n_edges
    assert (graph.multiplicity == 2).all()


def test_rows_too_near_for_their_squared_distance() -> None:
    """Beside numbers of another size these are all at distance zero; alone they are not."""
    W = 1e-200 * np.arange(8.0)[:, None]
    for rows in (W, np.vstack([W, [[1.0]]])):
        graph = nearest_neighbour_graph(rows, 2)
        assert graph.multiplicity.sum() == 2 * len(rows)
        assert (graph.degree >= 2).all()


@pytest.mark.parametrize(("T", "P"), [(60, 3), (60, 30), (10_500, 2)])
@pytest.mark.parametrize("exponent", [-1000, -600, 515, 1020])
def test_weights_whose_squares_leave_the_range_keep_their_neighbours(T: int, P: int, exponent: int) -> None:
    W = np.random.default_rng(T).standard_normal((T, P))
    expected = nearest_neighbour_graph(W, 4)
    graph = nearest_neighbour_graph(np.ldexp(W, exponent), 4)
    assert np.array_equal(graph.edges, expected.edges)
    assert np.array_equal(graph.multiplicity, expected.multiplicity)


def test_float32_and_integers_are_taken_as_they_are() -> None:
    W = np.random.default_rng(0).integers(-50, 50, (60, 3))
    as_float = nearest_neighbour_graph(W.astype(float), 4)
    for kind in (np.float32, np.int8):
        assert np.array_equal(nearest_neighbour_graph(W.astype(kind), 4).edges, as_float.edges)


@pytest.mark.parametrize("W", [[[np.nan]], [[np.inf]], [1.0, 2.0], [[[1.0]]]])
def test_refuses_unusable_weights(W: list[object]) -> None:
    with pytest.raises(DataError, match="finite"):
        nearest_neighbour_graph(W)


def test_refuses_no_neighbours() -> None:
    with pytest.raises(ParameterError, match="n_neighbors must be 1 or more, not 0"):
        nearest_neighbour_graph([[1.0], [2.0]], 0)


@pytest.mark.parametrize(
    ("edges", "multiplicity", "match"),
    [
        ([[0, 1]], [0], "multiplicity"),
        ([[0, 1]], [1, 1], "multiplicity"),
        ([[1, 0]], [1], "pair i < j"),
        ([[1, 1]], [1], "pair i < j"),
        ([[0, 3]], [1], "pair i < j"),
        ([[-1, 1]], [1], "pair i < j"),
        ([[0, 1], [0, 1]], [1, 1], "lexicographic"),
        ([[1, 2], [0, 1]], [1, 1], "lexicographic"),
    ],
)
def test_a_graph_refuses_faulty_edges(edges: list[list[int]], multiplicity: list[int], match: str) -> None:
    with pytest.raises(DataError, match=match):
        TaskGraph(edges, multiplicity, n_tasks=3)


@pytest.mark.parametrize(
    ("edges", "multiplicity", "n_tasks", "match"),
    [
        ([[0.9, 1.9]], [1], 3, "edges must hold integers, not 0.9"),
        ([[0, 1]], [1.7], 3, "multiplicity must hold integers, not 1.7"),
        ([[0, 1]], [np.nan], 3, "multiplicity must hold integers, not nan"),
        ([["0", "1"]], [1], 3, "edges must hold integers, not <U1"),
        (
            np.array([[0, 2**64 - 1]], dtype=np.uint64),
            [1],
            3,
            "edges holds 18446744073709551615, which is beyond 64 bits",
        ),
        ([[0, 1], [2]], [1, 1], 3, "edges is not a rectangular array"),
        ([0, 1, 1, 2], [1, 1], 3, r"edges must be \(E, 2\), a pair of tasks for each; got \(4,\)"),
        ([[0, 1, 2]], [1], 3, r"edges must be \(E, 2\)"),
        (None, [1], 3, "edges must hold integers, not object"),
        ([[0, 1]], [1], "3", "n_tasks must be an integer from 0 to 2147483647, not '3'"),
        ([[0, 1]], [1], 3.0, "n_tasks must be an integer"),
        ([[0, 1]], [1], 10**12, "n_tasks must be an integer from 0 to 2147483647"),
    ],
)
def test_a_graph_repairs_nothing(edges: Any, multiplicity: Any, n_tasks: Any, match: str) -> None:
    with pytest.raises(DataError, match=match):
        TaskGraph(edges, multiplicity, n_tasks)


def test_whole_numbers_make_a_graph_and_so_does_no_edge() -> None:
    assert TaskGraph(np.array([[0.0, 1.0]]), np.ones(1), np.int64(2)).edges.dtype == np.int64
    assert TaskGraph([], [], 2).n_components == 2


@pytest.mark.parametrize(
    ("source", "target", "n_tasks", "match"),
    [
        ([0.5], [1], 2, "source must hold integers"),
        ([0], ["1"], 2, "target must hold integers"),
        ([0, 1], [1], 2, "two lists of one length"),
        ([0], [1], "2", "n_tasks must be an integer"),
    ],
)
def test_directed_pairs_are_integers(source: Any, target: Any, n_tasks: Any, match: str) -> None:
    with pytest.raises(DataError, match=match):
        TaskGraph.from_directed(source, target, n_tasks)


@pytest.mark.parametrize("weights", ["x", None, [["1"], ["2"]], [[1.0], [1.0, 2.0]]])
def test_weights_of_a_graph_are_numbers(weights: Any) -> None:
    with pytest.raises(DataError, match="weights"):
        nearest_neighbour_graph(weights)


@pytest.mark.parametrize("pair", [(0, 0), (0, 3), (-1, 2)])
def test_directed_pairs_must_join_two_tasks(pair: tuple[int, int]) -> None:
    with pytest.raises(DataError, match="two different tasks"):
        TaskGraph.from_directed([pair[0]], [pair[1]], n_tasks=3)


def test_directed_pairs_fold_into_counted_edges() -> None:
    graph = TaskGraph.from_directed([2, 0, 1, 1], [1, 1, 0, 3], n_tasks=5)
    assert graph.edges.tolist() == [[0, 1], [1, 2], [1, 3]]
    assert graph.multiplicity.tolist() == [2, 1, 1]
    assert graph.component.tolist() == [0, 0, 0, 0, 1]
    assert (graph.n_components, graph.degree.tolist()) == (2, [1, 3, 1, 1, 0])


def test_a_graph_cannot_be_changed_and_does_not_share_its_input() -> None:
    edges = np.array([[0, 1]])
    graph = TaskGraph(edges, [1], n_tasks=2)
    edges[:] = 7
    assert graph.edges.tolist() == [[0, 1]]
    with pytest.raises(ValueError, match="read-only"):
        graph.edges[0, 0] = 1


@property_test
@given(seed=st.integers(0, 2**32), T=st.integers(1, 30), k=st.integers(1, 6))
def test_renumbered_tasks_keep_their_edges(seed: int, T: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    graph = nearest_neighbour_graph(rng.integers(0, 4, (T, 2)), k)
    order = rng.permutation(T)
    new = graph.reordered(order)
    pairs = {frozenset(pair): m for pair, m in zip(graph.edges.tolist(), graph.multiplicity, strict=True)}
    back = {
        frozenset(order[list(pair)].tolist()): m
        for pair, m in zip(new.edges.tolist(), new.multiplicity, strict=True)
    }
    assert back == pairs
    assert (new.n_components, new.tie_rule) == (graph.n_components, graph.tie_rule)
    assert new.degree.tolist() == graph.degree[order].tolist()


def test_the_locality_order_brings_neighbours_together() -> None:
    rng = np.random.default_rng(0)
    shuffled = rng.permutation(400)
    chain = TaskGraph.from_directed(shuffled[:-1], shuffled[1:], 400)
    order = chain.locality_order()
    assert sorted(order.tolist()) == list(range(400))
    assert np.ptp(chain.reordered(order).edges, axis=1).max() == 1
