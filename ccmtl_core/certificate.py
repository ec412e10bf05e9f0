"""Weights and edge flows in, a proved lower bound on the optimum out.

For every U with ‖U_e‖ ≤ r_e, and every W, convexity gives (Fenchel; He et al., AAAI 2019, problem 2)

    J(W) − J* ≤ Σ_e (r_e ‖d_e‖ − U_e·d_e) + Σ_t Σ_a h(b_ta; w_ta, R_t)                            (gap)

where d = D W, b_t holds the coordinates of the residual ρ_t = c_t − (DᵀU)_t − G_t W_t in the eigenvectors
of G_t, w_ta are the eigenvalues, R_t bounds the distance from W_t to some optimal weights of task t, and
h(b; w, R) = max over |ξ| ≤ R of b ξ − w ξ²/2. All terms are non-negative, so no digits cancel; an eigenvalue
of zero, or one that rounding made so, needs no decision: R bounds its term.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

from ccmtl_core._types import FloatArray, IntArray
from ccmtl_core.objective import FusionProblem, row_norms
from ccmtl_core.solver import kernels

_NULL = 1e-13  # of the largest eigenvalue of a component's pooled Gram matrix: a direction without data
_SHARE = 1e-2  # of the tolerated gap that residuals may cost before they are pushed along the forest


@dataclass(frozen=True, eq=False)
class Certificate:
    """A proof of near optimality.

    Parameters
    ----------
    objective : float
        J(W).
    gap : float
        J(W) minus the lower bound, absolute and not negative.
    flows : (E, P) float64
        The feasible U that proves it.
    """

    objective: float
    gap: float
    flows: FloatArray

    @property
    def lower_bound(self) -> float:
        """What the optimum cannot fall below."""
        return self.objective - self.gap

    @property
    def relative_gap(self) -> float:
        """Gap over objective; the gap itself where the objective is zero."""
        return relative(self.gap, self.objective)


def relative(gap: float, objective: float) -> float:
    """Gap over objective; the gap itself where the objective is zero."""
    return gap / objective if objective > 0 else gap


class Certifier:
    """Certifies any number of (W, U) of one problem; the eigenvectors and the forest are made once."""

    def __init__(self, problem: FusionProblem) -> None:
        self.problem = problem
        values, vectors = np.linalg.eigh(problem.statistics.gram)
        self._values: FloatArray = np.maximum(values, 0.0)
        self._vectors: FloatArray = np.ascontiguousarray(vectors)
        self._n_components = problem.graph.n_components
        self._component = problem.graph.component
        self._order, self._parent, self._edge, self._sign = _forest(problem, self._values[:, 0])
        self._pooled = self._pooled_eigenvalues()
        self._least_loss = 0.5 * float(problem.statistics.least_squares.residual.sum())

    def certify(self, W: FloatArray, flows: FloatArray, tolerance: float) -> Certificate:
        """Make flows feasible, repair what they leave unbalanced, and evaluate (gap).

        Parameters
        ----------
        W : (T, P) float64
            Weights, any.
        flows : (E, P) float64
            Dual variables U, any; the better, the smaller the gap. Not changed.
        tolerance : float
            The relative gap aimed at: decides only how small residuals are left where they are.
        """
        problem = self.problem
        D = problem.differences(W)
        norms = row_norms(D)
        objective = problem.loss(W) + float(problem.radius @ norms)
        bound = self._distance_bound(W, objective)
        U = self._projected(flows)
        residual = -problem.loss_gradient(W) - problem.divergence(U)
        kernels.push_to_roots(
            self._order, self._parent, self._edge, self._sign, self._values, self._vectors, bound,
            _SHARE * tolerance * objective / residual.size, residual, U, problem.dims,
        )  # fmt: skip
        U = self._scaled(U)
        residual = -problem.loss_gradient(W) - problem.divergence(U)
        b = np.matmul(residual[:, None, :], self._vectors)[:, 0, :]
        unexplained = float(_bounded_conjugate(np.abs(b), self._values, bound[:, None]).sum())
        slack = float(problem.radius @ norms) - float(np.vdot(U, D))
        return Certificate(objective, max(slack, 0.0) + unexplained, U)

    def _projected(self, flows: FloatArray) -> FloatArray:
        """Each flow projected on its ball."""
        r = self.problem.radius
        size = row_norms(flows)
        factor = np.divide(r, size, out=np.ones_like(size), where=size > r)
        return flows * factor[:, None]

    def _scaled(self, U: FloatArray) -> FloatArray:
        """Flows of a component scaled by one factor so that all fit: this keeps DᵀU in the range of G."""
        if len(U) == 0:
            return U
        r = self.problem.radius
        ratio = np.divide(row_norms(U), r, out=np.zeros_like(r), where=r > 0)
        worst = np.ones(self._n_components)
        component = self._component[self.problem.head]
        np.maximum.at(worst, component, ratio)
        return U / worst[component][:, None]

    def _distance_bound(self, W: FloatArray, objective: float) -> FloatArray:
        """R (T,): proved bounds on ‖W_t − W*_t‖ for some optimal W*, one for each component.

        With S = J(W) − min loss, optimal weights have Σ r_e‖d_e‖ ≤ S, so two tasks of a component differ
        by at most S / min r; and both W and W* are within √(2S) of least squares in the norm of the
        pooled Gram matrix, which anchors the component except along directions where it has no data.
        Along those, all tasks of a component may shift together without changing J.
        """
        excess = max(objective - self._least_loss, 0.0)
        half = 0.5 * self.problem.fusion_strength
        count = np.bincount(self._component, minlength=self._n_components)
        mean = np.zeros((self._n_components, W.shape[1]))
        np.add.at(mean, self._component, W)
        mean /= count[:, None]
        spread = np.zeros(self._n_components)
        np.maximum.at(spread, self._component, row_norms(W - mean[self._component]))
        largest, smallest = self._pooled
        across = np.where(count > 1, excess / half if half > 0 else 0.0, 0.0) + spread
        anchored = (2.0 * np.sqrt(2.0 * excess) + np.sqrt(largest) * across) / np.sqrt(smallest)
        return np.asarray((across + anchored)[self._component], dtype=np.float64)

    def _pooled_eigenvalues(self) -> tuple[FloatArray, FloatArray]:
        """Per component: Σ_t λ_max(G_t), and the smallest eigenvalue of Σ_t G_t that is not null."""
        gram = self.problem.statistics.gram
        pooled = np.zeros((self._n_components, *gram.shape[1:]))
        np.add.at(pooled, self._component, gram)
        values = np.linalg.eigvalsh(pooled)
        largest = np.bincount(self._component, self._values[:, -1], self._n_components)
        kept = np.where(values > _NULL * values[:, -1:], values, np.inf)
        return largest, np.asarray(kept.min(axis=1), dtype=np.float64)


def _bounded_conjugate(b: FloatArray, w: FloatArray, R: FloatArray) -> FloatArray:
    """h(b; w, R) for b ≥ 0: b²/2w where the maximiser b/w is within R, else R b − w R²/2."""
    inside = b <= w * R
    quadratic = np.divide(b * b, 2.0 * w, out=np.zeros_like(b), where=inside & (w > 0))
    return np.where(inside, quadratic, R * b - 0.5 * w * R * R)


def _forest(problem: FusionProblem, strength: FloatArray) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """A breadth-first forest from the tasks whose Gram matrix is farthest from singular.

    Returns the tasks in breadth-first order, and for each task its parent (−1 at a root), the edge to it
    and the sign of a flow from task to parent on that edge.
    """
    T, E = problem.graph.n_tasks, len(problem.head)
    positive = strength[strength > 0]
    strong = strength >= (np.quantile(positive, 0.75) if len(positive) else np.inf)
    best = np.lexsort((-strength, problem.graph.component))
    first = np.r_[True, np.diff(problem.graph.component[best]) > 0]
    strong[best[first]] = True  # every component has a root
    roots = np.flatnonzero(strong)
    rows = np.concatenate([problem.head, problem.tail, np.full(len(roots), T)])
    columns = np.concatenate([problem.tail, problem.head, roots])
    adjacency = csr_array((np.ones(len(rows)), (rows, columns)), shape=(T + 1, T + 1))
    order, parent = breadth_first_order(adjacency, T, directed=True)
    order = order[order != T].astype(np.int64)
    parent = np.where(parent[:T] == T, -1, parent[:T]).astype(np.int64)

    child = np.flatnonzero(parent >= 0)
    low, high = np.minimum(child, parent[child]), np.maximum(child, parent[child])
    key = problem.graph.edges[:, 0] * T + problem.graph.edges[:, 1]
    edge, sign = np.zeros(T, dtype=np.int64), np.zeros(T)
    if E:
        edge[child] = np.searchsorted(key, low * T + high)
    sign[child] = np.where(child == low, 1.0, -1.0)
    return order, parent, edge, sign
