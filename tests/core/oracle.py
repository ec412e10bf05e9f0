"""An independent optimum: an interior-point method for cone programs, polished in extended precision."""

from __future__ import annotations

import clarabel
import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from tests.core.fusion_problems import Instance


def optimum(instance: Instance) -> tuple[float, np.ndarray]:
    """The least J known, and its weights (T, P): an upper bound on the optimum that nearly meets it."""
    W = interior_point(instance)
    candidates = [W] + [polished(instance, W, 10.0**-digits) for digits in range(2, 9)]
    values = [instance.objective(V) for V in candidates]
    best = int(np.argmin(values))
    return values[best], candidates[best].astype(np.float64)


def interior_point(instance: Instance) -> np.ndarray:
    """Minimise 1/2 ‖z‖² + Σ r_e s_e subject to z = X W − y and ‖W_i − W_j‖ ≤ s_e."""
    T, P = instance.n_tasks, instance.n_features
    X = sparse.block_diag([sparse.csr_array(x) for x in instance.X], format="csr")
    y = np.concatenate(instance.y)
    n, E = len(y), len(instance.graph.edges)
    i, j = instance.graph.edges.T
    ties = sparse.csr_array((np.r_[np.ones(E), -np.ones(E)], (np.r_[:E, :E], np.r_[i, j])), shape=(E, T))
    lengths = sparse.kron(sparse.eye_array(E), np.eye(P + 1)[:, :1])
    differences = sparse.kron(ties, np.eye(P + 1)[:, 1:])
    A = sparse.block_array(
        [[X, -sparse.eye_array(n), None], [-differences, None, -lengths]]
        if E
        else [[X, -sparse.eye_array(n)]],
        format="csc",
    )
    quadratic = sparse.diags_array(np.r_[np.zeros(T * P), np.ones(n), np.zeros(E)], format="csc")
    r = 0.5 * instance.strength * instance.graph.multiplicity
    cones = [clarabel.ZeroConeT(n)] * (n > 0) + [clarabel.SecondOrderConeT(P + 1)] * E
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-13
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix(quadratic), np.r_[np.zeros(T * P + n), r], sparse.csc_matrix(A),
        np.r_[y, np.zeros(E * (P + 1))], cones, settings,
    )  # fmt: skip
    return np.array(solver.solve().x[: T * P]).reshape(T, P)


def polished(instance: Instance, W: np.ndarray, threshold: float) -> np.ndarray:
    """Fuse the tasks whose edges are shorter than a share of the longest weights; then Newton's method.

    Where the right tasks are fused, J is smooth in what is left, and each step doubles the digits.
    """
    i, j = instance.graph.edges.T
    T, P = W.shape
    short = np.linalg.norm(W[i] - W[j], axis=1) <= threshold * np.linalg.norm(W, axis=1).max()
    pairs = sparse.coo_array((np.ones(short.sum()), (i[short], j[short])), shape=(T, T))
    C, label = connected_components(pairs, directed=False)
    V = np.array([W[label == c].mean(axis=0) for c in range(C)]).astype(np.longdouble)
    tie = label[i] != label[j]
    head, tail = label[i][tie], label[j][tie]
    r = (np.longdouble(0.5) * instance.strength * instance.graph.multiplicity)[tie]
    best, value = V, instance.objective(V[label])
    for _ in range(20):
        gradient, hessian = np.zeros((C, P), np.longdouble), np.zeros((C, P, C, P), np.longdouble)
        for x, y, c in zip(instance.X, instance.y, label, strict=True):
            x = x.astype(np.longdouble)
            gradient[c] += (x * ((x * V[c]).sum(axis=1) - y)[:, None]).sum(axis=0)
            hessian[c, :, c, :] += (x[:, :, None] * x[:, None, :]).sum(axis=0)
        for a, b, weight in zip(head, tail, r, strict=True):
            d = V[a] - V[b]
            length = np.sqrt((d**2).sum())
            if length == 0:
                return best[label]
            curvature = weight / length * (np.eye(P) - d[:, None] * d[None, :] / length**2)
            gradient[a] += weight * d / length
            gradient[b] -= weight * d / length
            for p, q, sign in ((a, a, 1), (b, b, 1), (a, b, -1), (b, a, -1)):
                hessian[p, :, q, :] += sign * curvature
        V = V - _solve(hessian.reshape(C * P, C * P), gradient.ravel()).reshape(C, P)
        after = instance.objective(V[label])
        if not after < value:
            break
        best, value = V, after
    return best[label]


def _solve(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Gauss-Jordan elimination with the largest diagonal entry as pivot, on the range of A ⪰ 0."""
    size = np.sqrt(np.diag(A))
    size[size == 0] = 1
    A, b = A / (size[:, None] * size), b / size
    left = np.ones(len(b), dtype=bool)
    while left.any():
        pivot = int(np.argmax(np.where(left, np.diag(A), -1)))
        if A[pivot, pivot] <= 1e-15:
            break
        left[pivot] = False
        row, value = A[pivot] / A[pivot, pivot], b[pivot] / A[pivot, pivot]
        b = b - A[:, pivot] * value
        A = A - A[:, pivot, None] * row[None, :]
        A[pivot], b[pivot] = row, value
    b[left] = 0
    return b / size
