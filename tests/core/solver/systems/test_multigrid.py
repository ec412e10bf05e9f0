"""The multigrid cycle: the matrix it stands for, its symmetry, and few iterations on every shape of graph."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose

from ccmtl_core import TaskGraph, nearest_neighbour_graph
from ccmtl_core.solver.systems.cg import flexible_cg
from ccmtl_core.solver.systems.multigrid import Multigrid
from ccmtl_core.solver.systems.pooled_spectrum import PooledSpectrum
from tests.core.fusion_problems import GRAPHS

every_graph = pytest.mark.parametrize("graph_name", [*GRAPHS, "neighbours"])
every_gram = pytest.mark.parametrize("gram_name", ["definite", "few rows", "mostly empty", "wild"])


def make_graph(name: str, T: int) -> TaskGraph:
    if name != "neighbours":
        return GRAPHS[name](T)
    W = np.random.default_rng(T).standard_normal((T, 3))
    W[: T // 3] = 0.0
    return nearest_neighbour_graph(W, 6)


def make_gram(rng: np.random.Generator, name: str, T: int, P: int) -> np.ndarray:
    n = {"definite": 2 * P, "few rows": 1, "mostly empty": 2, "wild": 2 * P}[name]
    A = rng.standard_normal((T, n, P))
    if name == "mostly empty":
        A[rng.random(T) < 0.8] = 0.0
        A[:, :, 0] = 0.0  # no task knows the first feature
    if name == "wild":
        A *= 10.0 ** rng.uniform(-2, 2, (T, 1, 1))
    return np.einsum("tni,tnj->tij", A, A)


def make(graph: TaskGraph, gram: np.ndarray, w: np.ndarray) -> Multigrid:
    spectrum = PooledSpectrum.of(gram, graph.component, graph.n_components)
    multigrid = Multigrid(graph.edges, gram, spectrum)
    multigrid.update(w)
    return multigrid


def dense(graph: TaskGraph, gram: np.ndarray, w: np.ndarray) -> np.ndarray:
    T, P = gram.shape[:2]
    D = np.eye(T)[graph.edges[:, 0]] - np.eye(T)[graph.edges[:, 1]]
    A = np.kron(D.T @ (w[:, None] * D), np.eye(P))
    for t in range(T):
        A[t * P : (t + 1) * P, t * P : (t + 1) * P] += gram[t]
    return A


def weights(rng: np.random.Generator, graph: TaskGraph, decades: float) -> np.ndarray:
    return 10.0 ** rng.uniform(-decades / 2, decades / 2, len(graph.edges))


@every_graph
@pytest.mark.parametrize(("T", "P"), [(2, 1), (40, 3), (120, 3), (30, 20)])
def test_operator_equals_the_matrix(graph_name: str, T: int, P: int) -> None:
    rng = np.random.default_rng(T)
    graph = make_graph(graph_name, T)
    gram = make_gram(rng, "few rows", T, P)
    w = weights(rng, graph, 4)
    multigrid, A = make(graph, gram, w), dense(graph, gram, w)
    x = rng.standard_normal((T, P))
    assert_allclose(multigrid.apply(x).ravel(), A @ x.ravel(), rtol=1e-10, atol=1e-9)
    assert_allclose(multigrid.levels[0].dense(), A, rtol=1e-12, atol=1e-12)


@every_graph
def test_coarse_levels_are_the_pooled_problem(graph_name: str) -> None:
    rng = np.random.default_rng(3)
    T, P = 300, 2
    graph = make_graph(graph_name, T)
    gram = make_gram(rng, "definite", T, P)
    w = weights(rng, graph, 4)
    multigrid = make(graph, gram, w)
    assert len(multigrid.levels) > 1
    A = dense(graph, gram, w)
    for fine, coarse in pairwise(multigrid.levels):
        assert fine.aggregate is not None
        Q = np.kron(np.eye(coarse.n)[fine.aggregate], np.eye(P))
        A = Q.T @ A @ Q
        assert_allclose(coarse.dense(), A, rtol=1e-10, atol=1e-10)
    assert multigrid.levels[-1].is_small


@every_graph
@every_gram
def test_preconditioner_is_symmetric_and_positive_on_the_range(graph_name: str, gram_name: str) -> None:
    rng = np.random.default_rng(4)
    T, P = 110, 3
    graph = make_graph(graph_name, T)
    gram = make_gram(rng, gram_name, T, P)
    w = weights(rng, graph, 3)
    multigrid, A = make(graph, gram, w), dense(graph, gram, w)
    values, vectors = np.linalg.eigh(A)
    basis = vectors[:, values > 1e-11 * values[-1]]
    M = np.stack([multigrid.precondition(b.reshape(T, P)).flatten() for b in basis.T.copy()], axis=1)
    on_range = basis.T @ M
    size = np.abs(on_range).max()
    # The second step of the K-cycle depends on the residual: the cycle is only nearly linear.
    assert np.abs(on_range - on_range.T).max() <= 0.3 * size
    assert np.linalg.eigvalsh(on_range + on_range.T).min() > 0


@every_graph
@every_gram
@pytest.mark.parametrize(("T", "P"), [(700, 3), (60, 1), (50, 20)])
@pytest.mark.parametrize(("decades", "most"), [(0, 25), (8, 80)])
def test_few_iterations(graph_name: str, gram_name: str, T: int, P: int, decades: int, most: int) -> None:
    rng = np.random.default_rng(5)
    graph = make_graph(graph_name, min(T, 200) if graph_name == "complete" else T)
    gram = make_gram(rng, gram_name, graph.n_tasks, P)
    multigrid = make(graph, gram, weights(rng, graph, decades))
    x = rng.standard_normal((graph.n_tasks, P))
    b = multigrid.apply(x)
    solved = flexible_cg(multigrid.apply, multigrid.precondition, b, rtol=1e-8)
    assert solved.converged
    assert solved.iterations <= most
    error = solved.x - x
    assert np.vdot(error, multigrid.apply(error)) <= 1e-13 * np.vdot(x, b), "as exact as it says"


@pytest.mark.parametrize(("gram_name", "precision"), [("definite", np.float32), ("few rows", np.float64)])
def test_wide_blocks_are_inverted_in_single_precision_where_it_will_do(
    gram_name: str, precision: type[np.floating]
) -> None:
    rng = np.random.default_rng(8)
    graph = make_graph("neighbours", 50)
    multigrid = make(graph, make_gram(rng, gram_name, 50, 20), np.full(len(graph.edges), 1e-6))
    assert multigrid.levels[0].inverse.dtype == precision


@every_graph
def test_levels_shrink_down_to_a_small_one(graph_name: str) -> None:
    rng = np.random.default_rng(6)
    T = 3000 if graph_name != "complete" else 400
    graph = make_graph(graph_name, T)
    multigrid = make(graph, make_gram(rng, "few rows", T, 2), weights(rng, graph, 6))
    sizes = [level.n for level in multigrid.levels]
    assert multigrid.levels[-1].is_small
    assert len(sizes) <= 12
    assert all(fine > coarse for fine, coarse in pairwise(sizes))
    edges = sum(len(level.head) for level in multigrid.levels)
    assert edges <= 3 * len(graph.edges), "all levels together cost little more than the first"


def test_new_edge_weights_replace_the_old() -> None:
    rng = np.random.default_rng(7)
    graph = make_graph("neighbours", 200)
    gram = make_gram(rng, "definite", 200, 2)
    first, second = weights(rng, graph, 2), weights(rng, graph, 2)
    r = rng.standard_normal((200, 2))
    multigrid = make(graph, gram, first)
    multigrid.update(second)
    assert_allclose(multigrid.precondition(r), make(graph, gram, second).precondition(r), rtol=1e-12)


def test_without_edges_each_block_is_inverted_on_its_range() -> None:
    rng = np.random.default_rng(8)
    graph = TaskGraph(np.empty((0, 2)), np.empty(0), 100)
    gram = make_gram(rng, "few rows", 100, 3)
    gram[:, 0, :] *= 1e6
    gram[:, :, 0] *= 1e6
    gram[0] = 0.0
    x = rng.standard_normal((100, 3))
    multigrid = make(graph, gram, np.empty(0))
    b = multigrid.apply(x)
    assert_allclose(multigrid.apply(multigrid.precondition(b)), b, rtol=1e-6)


def test_shifts_along_directions_without_data_are_left_out() -> None:
    rng = np.random.default_rng(9)
    graph = make_graph("disconnected", 90)
    gram = make_gram(rng, "mostly empty", 90, 3)
    multigrid = make(graph, gram, np.ones(len(graph.edges)))
    z = multigrid.precondition(rng.standard_normal((90, 3)))
    assert np.isfinite(z).all()
    means = np.array([z[graph.component == c].mean(axis=0) for c in range(graph.n_components)])
    assert np.abs(means[:, 0]).max() <= 1e-12 * np.abs(z).max()


@every_graph
@pytest.mark.parametrize("growth", [0.7, 1.4, 30.0])
def test_wide_blocks_take_few_iterations_after_weights_have_changed(graph_name: str, growth: float) -> None:
    """Inverses of blocks and aggregates are kept as long as they serve."""
    rng = np.random.default_rng(6)
    graph = make_graph(graph_name, 60)
    gram = make_gram(rng, "few rows", graph.n_tasks, 20)
    w = weights(rng, graph, 1)
    multigrid, x = make(graph, gram, w), rng.standard_normal((graph.n_tasks, 20))
    for _ in range(4):
        solved = flexible_cg(multigrid.apply, multigrid.precondition, multigrid.apply(x), rtol=1e-8)
        assert solved.converged
        assert solved.iterations <= 40
        w = w * growth * rng.uniform(0.8, 1.25, len(w))
        multigrid.update(w)
