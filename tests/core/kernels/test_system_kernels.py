"""Every kernel against its formula in numpy: rows of one vector, of several, of two that share numbers."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from ccmtl_core.kernels.solver import edge_kernels
from ccmtl_core.kernels.solver import system_kernels as kernels
from tests.core.fusion_problems import GRAPHS, random_graph

close = pytest.approx


@pytest.fixture(
    params=[(1, 1), (5, 1), (5, 5), (8, 8), (11, 8), (35, 8)], ids="P = {0[0]}, lanes = {0[1]}".format
)
def case(request: pytest.FixtureRequest) -> SimpleNamespace:
    """A random graph on 30 tasks, with everything that the kernels take."""
    P, n_lanes = request.param
    rng = np.random.default_rng(0)
    T = 30
    graph = random_graph(rng, T, 0.2)
    head, tail = (np.ascontiguousarray(column, dtype=np.int32) for column in graph.edges.T)
    E = len(head)
    ptr, split, nbr, eid = kernels.adjacency(T, head, tail)
    w = rng.uniform(0.1, 10.0, E)
    data, diagonal = np.empty(len(nbr)), np.empty(T)
    kernels.spread_edge_weights(ptr, eid, w, data, diagonal)
    A = rng.standard_normal((T, 5, P))
    G = np.einsum("tni,tnj->tij", A, A)
    G[::4] = 0.0
    shift = np.where(diagonal > 0, rng.uniform(-0.4, 0.6, T) * diagonal, 1.0)
    B = np.linalg.inv(G + (diagonal + shift)[:, None, None] * np.eye(P))
    D = np.zeros((E, T))
    D[np.arange(E), head], D[np.arange(E), tail] = 1.0, -1.0
    aggregate = rng.integers(0, 7, T).astype(np.int32)
    aggregate[:7] = np.arange(7)
    return SimpleNamespace(
        rng=rng, T=T, E=E, P=P, lanes=(0,) * n_lanes,
        head=head, tail=tail, ptr=ptr, split=split, nbr=nbr, eid=eid, w=w, data=data,
        diagonal=diagonal, shift=shift, G=G, B=B, D=D, L=D.T @ (w[:, None] * D),
        x=rng.standard_normal((T, P)), r=rng.uniform(0.5, 2.0, E), W=rng.standard_normal((T, P)),
        u=rng.uniform(-0.5, 0.5, (E, P)),
        aggregate=aggregate,
    )  # fmt: skip


def smoothed(case: SimpleNamespace, smoothing: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    d = case.D @ case.W
    s = np.sqrt((d**2).sum(axis=1) + smoothing**2)
    return s, d / s[:, None], case.r / s


def sweep(case: SimpleNamespace, order: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Block Gauss-Seidel on A x = r, task by task, for the right-hand side case.W."""
    x = x.copy()
    for i in order:
        x[i] = case.B[i] @ (case.W[i] - case.L[i] @ x + (case.L[i, i] + case.shift[i]) * x[i])
    return x


@pytest.mark.parametrize("name", GRAPHS)
def test_adjacency_lists_each_edge_at_both_ends(name: str) -> None:
    graph = GRAPHS[name](60)
    head, tail = (np.ascontiguousarray(column, dtype=np.int32) for column in graph.edges.T)
    ptr, split, nbr, eid = kernels.adjacency(60, head, tail)
    for i in range(60):
        mine = slice(ptr[i], ptr[i + 1])
        at_i = np.flatnonzero((head == i) | (tail == i))
        assert sorted(eid[mine]) == at_i.tolist()
        assert (nbr[mine] == head[eid[mine]] + tail[eid[mine]] - i).all()
        assert (nbr[ptr[i] : split[i]] < i).all()
        assert (nbr[split[i] : ptr[i + 1]] > i).all()


def test_edge_weights_are_spread_over_both_ends(case: SimpleNamespace) -> None:
    assert case.data.tolist() == case.w[case.eid].tolist()
    assert case.diagonal == close(np.diag(case.L))


def test_system_is_laplacian_plus_blocks(case: SimpleNamespace) -> None:
    out = np.empty_like(case.x)
    kernels.apply_system(case.ptr, case.nbr, case.data, case.diagonal, case.G, case.x, out, case.lanes)
    assert out == close(case.L @ case.x + np.einsum("tij,tj->ti", case.G, case.x), rel=1e-12, abs=1e-12)


def test_forward_sweep_and_the_residual_it_leaves(case: SimpleNamespace) -> None:
    x, residual = np.empty_like(case.x), np.empty_like(case.x)
    kernels.smooth_forward(
        case.ptr, case.split, case.nbr, case.data, case.B, case.shift, case.W, x, residual, case.lanes
    )  # fmt: skip
    assert x == close(sweep(case, np.arange(case.T), np.zeros_like(x)), rel=1e-11, abs=1e-12)
    left = case.W - case.L @ x - np.einsum("tij,tj->ti", case.G, x)
    assert residual == close(left, rel=1e-10, abs=1e-10)


def test_backward_sweep(case: SimpleNamespace) -> None:
    x = case.x.copy()
    kernels.smooth_backward(case.ptr, case.nbr, case.data, case.B, case.shift, case.W, x, case.lanes)
    assert x == close(sweep(case, np.arange(case.T)[::-1], case.x), rel=1e-11, abs=1e-12)


@pytest.mark.parametrize("of_both", [False, True])
@pytest.mark.parametrize("threshold", [0.0, 0.25, 0.9])
def test_strong_neighbours(case: SimpleNamespace, threshold: float, of_both: bool) -> None:
    rows, strong = kernels.strong_neighbours(case.ptr, case.nbr, case.data, threshold, of_both)
    weights = -case.L + np.diag(case.diagonal)
    largest = weights.max(axis=1)
    for i in range(case.T):
        limit = threshold * (np.maximum if of_both else np.minimum)(largest[i], largest)
        expected = {i} | set(np.flatnonzero((weights[i] > 0) & (weights[i] >= limit)))
        assert set(strong[rows[i] : rows[i + 1]]) == expected


def test_coarse_edges_join_what_fine_edges_join(case: SimpleNamespace) -> None:
    head, tail, edge_map = kernels.coarse_edges(case.ptr, case.nbr, case.eid, case.aggregate, 7)
    assert (head < tail).all()
    assert len(set(zip(head, tail, strict=True))) == len(head), "none twice"
    a, b = np.sort([case.aggregate[case.head], case.aggregate[case.tail]], axis=0)
    inside = edge_map < 0
    assert (inside == (a == b)).all()
    assert (head[edge_map[~inside]] == a[~inside]).all()
    assert (tail[edge_map[~inside]] == b[~inside]).all()
    coarse = np.empty(len(head))
    kernels.sum_edge_weights(edge_map, case.w, coarse)
    Q = np.eye(7)[case.aggregate]
    D = np.eye(7)[head] - np.eye(7)[tail]
    assert D.T @ (coarse[:, None] * D) == close(Q.T @ case.L @ Q, abs=1e-12)


def test_restriction_and_prolongation_are_adjoint(case: SimpleNamespace) -> None:
    Q = np.eye(7)[case.aggregate]
    coarse, fine = np.full((7, case.P), np.nan), case.x.copy()
    kernels.restrict(case.aggregate, case.x, coarse, case.lanes)
    assert coarse == close(Q.T @ case.x)
    kernels.prolong_add(case.aggregate, coarse, fine, case.lanes)
    assert fine == close(case.x + Q @ coarse)
    blocks = np.full((7, case.P, case.P), np.nan)
    kernels.sum_blocks(case.aggregate, case.G, blocks)
    assert blocks == close(np.einsum("ta,tij->aij", Q, case.G))


def test_differences_and_divergence(case: SimpleNamespace) -> None:
    d = np.empty((case.E, case.P))
    edge_kernels.edge_differences(case.head, case.tail, case.W, d, case.lanes)
    assert d == close(case.D @ case.W)
    out = case.x.copy()
    edge_kernels.add_divergence(case.head, case.tail, case.u, out, case.lanes)
    assert out == close(case.x + case.D.T @ case.u)
    out = case.x.copy()
    edge_kernels.subtract_scaled_divergence(case.head, case.tail, case.r, case.u, out, case.lanes)
    assert out == close(case.x - case.D.T @ (case.r[:, None] * case.u))


@pytest.mark.parametrize("smoothing", [1e-8, 0.3])
def test_smoothed_edges(case: SimpleNamespace, smoothing: float) -> None:
    v, w = np.empty((case.E, case.P)), np.empty(case.E)
    case.W[case.tail[0]] = case.W[case.head[0]]  # an edge of length zero
    total = edge_kernels.smooth_edges(case.head, case.tail, case.W, case.r, smoothing, v, w, case.lanes)
    s, expected_v, expected_w = smoothed(case, smoothing)
    assert total == close(case.r @ s)
    assert v == close(expected_v, abs=1e-15)
    assert w == close(expected_w)


def test_curvature_makes_the_newton_matrix(case: SimpleNamespace) -> None:
    _, v, w = smoothed(case, 0.3)
    out = case.x.copy()
    edge_kernels.subtract_curvature(case.head, case.tail, w, case.u, v, case.W, out, case.lanes)
    d = case.D @ case.W
    outer = case.u[:, :, None] * v[:, None, :]
    along = 0.5 * w[:, None] * np.einsum("eij,ej->ei", outer + np.swapaxes(outer, 1, 2), d)
    assert out == close(case.x - case.D.T @ along, rel=1e-12, abs=1e-12)


def test_dual_step_follows_the_formula_and_stays_in_the_balls(case: SimpleNamespace) -> None:
    smoothing = 0.3
    s, v, w = smoothed(case, smoothing)
    dW = 0.3 * case.x
    new = v + (case.D @ dW - (v * (case.D @ dW)).sum(axis=1)[:, None] * case.u) / s[:, None]
    size = np.linalg.norm(new, axis=1)
    assert (size > 1).any(), "some steps leave the ball"
    assert (size < 1).any(), "some stay inside"
    new /= np.maximum(size, 1.0)[:, None]
    u, W = case.u.copy(), case.W + dW
    d = case.D @ W
    length = np.linalg.norm(d, axis=1)
    fused = float(np.median(length))
    open_slack, slack, mismatch = edge_kernels.dual_step(
        case.head, case.tail, case.r, w, v, dW, W, smoothing, fused, u, case.lanes
    )
    assert u == close(new, rel=1e-12, abs=1e-14)
    each = case.r * (length - (new * d).sum(axis=1))
    assert slack == close(each.sum(), rel=1e-12)
    assert open_slack == close(each[length > fused].sum(), rel=1e-12)
    s = np.sqrt(length**2 + smoothing**2)
    assert mismatch == close(case.r @ np.linalg.norm(s[:, None] * new - d, axis=1), rel=1e-12)


def test_what_a_task_cannot_absorb_goes_to_its_root() -> None:
    # 2 → 1 → 0, and 3 alone. Task 2 knows the first feature only, task 1 none.
    order, parent = np.array([0, 3, 1, 2]), np.array([-1, 0, 1, -1])
    edge, sign = np.array([0, 0, 1, 0]), np.array([0.0, -1.0, -1.0, 0.0])
    values, vectors = np.zeros((4, 3)), np.tile(np.eye(3), (4, 1, 1))
    values[2, 0] = values[0] = 1e9
    scale = np.array([1.0, 2.0, 4.0, 8.0])[:, None] * np.ones(3)
    residual, U = np.arange(1.0, 13.0).reshape(4, 3), np.zeros((2, 3))
    before = residual.copy()
    edge_kernels.push_to_roots(
        order, parent, edge, sign, values, vectors, scale, scale, np.ones(4), 1e-3, residual, U, (0, 0, 0)
    )
    assert residual[2].tolist() == [before[2, 0], 0.0, 0.0]
    assert residual[1].tolist() == [0.0, 0.0, 0.0]
    assert residual[0].tolist() == (before[0] + before[1] + [0.0, *before[2, 1:]]).tolist()
    assert residual[3].tolist() == before[3].tolist()
    head, tail = np.array([0, 1]), np.array([1, 2])
    divergence = np.zeros((4, 3))
    np.add.at(divergence, head, U)
    np.subtract.at(divergence, tail, U)
    assert residual + divergence == close(before), "U carries what the residual lost"


def test_what_moves_to_a_root_is_along_eigenvectors_that_cannot_absorb_it() -> None:
    rng = np.random.default_rng(0)
    V, S = np.linalg.qr(rng.standard_normal((5, 5)))[0], rng.uniform(0.5, 2.0, (2, 5))
    values = np.array([np.zeros(5), [0.0, 1e9, 1e9, 0.0, 1e9]])  # task 1 is sure of three of five directions
    residual, U = rng.standard_normal((2, 5)), np.zeros((1, 5))
    before = residual.copy()
    order, parent, edge, sign = np.array([0, 1]), np.array([-1, 0]), np.array([0, 0]), np.array([0.0, -1.0])
    edge_kernels.push_to_roots(
        order, parent, edge, sign, values, np.stack([V, V]), S, np.ones((2, 5)), np.ones(2), 1e-6,
        residual, U, (0,) * 5,
    )  # fmt: skip
    along = V.T @ (before[1] / S[1])
    along[values[1] == 0.0] = 0.0
    assert residual[1] == close(S[1] * (V @ along))
    assert residual.sum(axis=0) == close(before.sum(axis=0))
    assert U[0] == close(residual[1] - before[1])


def test_edge_sums_follow_their_formulas(case: SimpleNamespace) -> None:
    d = case.D @ case.W
    lengths = np.empty(case.E)
    edge_kernels.edge_lengths(case.head, case.tail, case.W, lengths, case.lanes)
    assert lengths == close(np.linalg.norm(d, axis=1))
    slack, penalty = edge_kernels.slack_and_penalty(case.head, case.tail, case.W, case.u, case.r, case.lanes)
    assert penalty == close(case.r @ lengths)
    assert slack == close(case.r @ lengths - np.vdot(case.u, d))
    smoothed_sum = edge_kernels.smoothed_penalty(case.head, case.tail, case.W, case.r, 0.3, case.lanes)
    assert smoothed_sum == close(case.r @ np.hypot(lengths, 0.3))


def test_flows_are_conducted_and_projected_in_place(case: SimpleNamespace) -> None:
    U = case.u.copy()
    edge_kernels.add_conducted(case.head, case.tail, 0.1 * case.w, case.x, U, case.lanes)
    conducted = case.u + 0.1 * case.w[:, None] * (case.D @ case.x)
    assert close(conducted) == U
    edge_kernels.project(case.r, U, case.lanes)
    size = np.linalg.norm(conducted, axis=1)
    assert (size > case.r).any()
    assert (size <= case.r).any()
    assert close(conducted * np.minimum(1.0, case.r / size)[:, None]) == U


def test_flows_of_a_cell_are_scaled_together(case: SimpleNamespace) -> None:
    U, cell = 4.0 * case.u, np.arange(case.E) % 5
    case.r[cell == 4] = 10.0  # a cell whose flows all fit
    worst = np.ones(5)
    edge_kernels.scale_into_balls(case.r, cell, U, worst, case.lanes)
    excess = 4.0 * np.linalg.norm(case.u, axis=1) / case.r
    expected = np.array([max(excess[cell == c].max(), 1.0) for c in range(5)])
    assert expected[4] == 1.0 < expected[0]
    assert worst == close(expected)
    assert close(4.0 * case.u / expected[cell][:, None]) == U
