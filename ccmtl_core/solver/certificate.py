"""Prove a lower bound on the optimum from weights and flows along the edges.

For every U with ‖U_e‖ ≤ r_e, and every W, convexity gives (Fenchel; He et al., AAAI 2019, problem 2)

    J(W) − J* ≤ Σ_e (r_e ‖d_e‖ − U_e·d_e) + Σ_t Σ_a h(b_ta; w_ta, R_t)                            (gap)

where d = D W, b_t holds the coordinates of the residual ρ_t = c_t − (DᵀU)_t − G_t W_t in the eigenvectors
of G_t, w_ta are the eigenvalues, R_t bounds the distance from W_t to some optimal weights of task t, and
h(b; w, R) = max over |ξ| ≤ R of b ξ − w ξ²/2. All terms are non-negative, so no digits cancel; an eigenvalue
of zero, or one that rounding made so, needs no decision: R bounds its term. Where the features of a task
differ wildly in scale, G_t is decomposed with its columns scaled to length one, G_t = S V diag(w) Vᵀ S, so
that all keep their digits; then b = Vᵀ S⁻¹ ρ, and R is stretched by ‖S q‖ along the eigenvector q. What
rounding can have hidden from this evaluation is added to the gap.

The rest of this file makes U good, which cannot make the bound false: residuals are spread by one solve
with the system's multigrid, what is left is pushed along a forest to tasks that can absorb it, and flows
that have outgrown their balls are scaled back cell by cell.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ccmtl_core.base.types import EPS, BoolArray, FloatArray, IntArray
from ccmtl_core.graph.forest import spanning_forest
from ccmtl_core.kernels.components import components
from ccmtl_core.kernels.solver import edge_kernels
from ccmtl_core.solver.objective import FusionProblem, row_norms
from ccmtl_core.solver.systems.cg import flexible_cg
from ccmtl_core.solver.systems.multigrid import Multigrid
from ccmtl_core.solver.systems.pooled_spectrum import PooledSpectrum
from ccmtl_core.statistics.quadratic import Quadratic, Rounding

_SHARE = 0.2  # of the tolerated gap that residuals may cost
_UNEVEN = 1e4  # ratio of a task's longest column to its shortest, from which they are scaled
_MOST_REPAIRS = 8
_REPAIR_TOLERANCE = 1e-2


@dataclass(frozen=True, eq=False)
class Certificate:
    """A proof of near optimality.

    Parameters
    ----------
    objective : float
        J(W).
    gap : float
        J(W) minus the lower bound, absolute and not negative.
    rounding : float
        The largest rounding error of J(W); it is part of the gap.
    flows : (E, P) float64
        The feasible U that proves it.
    cg_iterations : int
        Spent on the repair.
    """

    objective: float
    gap: float
    rounding: float
    flows: FloatArray
    cg_iterations: int = 0

    @property
    def lower_bound(self) -> float:
        """A lower bound on the optimal objective."""
        return self.objective - self.gap

    @property
    def relative_gap(self) -> float:
        """Gap over objective; the gap itself where the objective cannot be told from zero."""
        return relative(self.gap, self.objective, self.rounding)


def relative(gap: float, objective: float, rounding: float) -> float:
    """Gap over objective; the gap itself where the objective is zero or no more than its rounding."""
    return gap / objective if objective > rounding else gap


def rounding_of(terms: float) -> float:
    """The largest rounding error of a sum, given the sum of the absolute values of its terms."""
    return 2.0 * EPS * terms


class ScaledEigen(NamedTuple):
    """G_t = S_t V diag(values) Vᵀ S_t with S_t = diag(scale), and stretch_a = ‖S_t V_a‖."""

    values: FloatArray
    vectors: FloatArray
    scale: FloatArray
    stretch: FloatArray

    @classmethod
    def of(cls, quadratic: Quadratic) -> ScaledEigen:
        """Decompose the Gram blocks of T tasks; (T, P), (T, P, P), (T, P), (T, P).

        Eigenvalues are lowered by a bound on their rounding errors: smaller ones only weaken the bound.
        """
        length = np.sqrt(np.diagonal(quadratic.gram, axis1=1, axis2=2))
        shortest = np.where(length > 0.0, length, np.inf).min(axis=1)
        uneven = length.max(axis=1) > _UNEVEN * shortest
        scale = np.where(uneven[:, None] & (length > 0.0), length, 1.0)
        values, vectors = map(np.ascontiguousarray, quadratic.loss.spectrum(scale))
        stretch = np.sqrt(np.einsum("tp,tpa->ta", scale**2, vectors**2))
        return cls(values, vectors, scale, stretch)

    def smallest(self) -> FloatArray:
        """(T,) A lower bound on the smallest eigenvalue of each G_t."""
        bound: FloatArray = self.values[:, 0] * self.scale.min(axis=1) ** 2
        return bound

    def largest(self) -> FloatArray:
        """(T,) An upper bound on the largest eigenvalue of each G_t."""
        bound: FloatArray = self.values[:, -1] * self.scale.max(axis=1) ** 2
        return bound


class _Point(NamedTuple):
    """Weights (T, P), and what all flows that may prove them are measured by: R_t (T,) is the bound."""

    W: FloatArray
    objective: float
    gradient: FloatArray
    rounding: Rounding
    bound: FloatArray


class Certifier:
    """Certifies any number of (W, U) of one problem.

    Parameters
    ----------
    problem : FusionProblem
        What the bound is for.
    multigrid : Multigrid
        On the same graph and Gram blocks; :meth:`certify` overwrites its edge weights.
    spectrum : PooledSpectrum
        Of the same components and Gram blocks.
    """

    def __init__(self, problem: FusionProblem, multigrid: Multigrid, spectrum: PooledSpectrum) -> None:
        self.problem, self._multigrid, self._spectrum = problem, multigrid, spectrum
        self._eigen = ScaledEigen.of(problem.quadratic)
        absorbing = _absorbing(self._eigen.smallest())
        self._forest = spanning_forest(problem.graph, absorbing)
        self._n_cells, self._cell = _cells(problem, absorbing)
        self._largest = np.bincount(problem.graph.component, self._eigen.largest())
        alone = problem.quadratic.least_squares
        self._least_loss = 0.5 * float(alone.residual[~alone.hides].sum())

    @property
    def share_determined(self) -> float:
        """Share of the tasks whose Gram block is certainly not singular."""
        return float(np.mean(self._eigen.values[:, 0] > 0.0))

    def at(self, problem: FusionProblem) -> Certifier:
        """For the same blocks and graph at another strength; what does not depend on it is shared."""
        other = copy(self)
        other.problem = problem
        other.__dict__.pop("_rounding_of_flows", None)
        return other

    def certify(
        self, W: FloatArray, flows: FloatArray, tolerance: float, conductance: FloatArray | None = None
    ) -> Certificate:
        """Make flows feasible and nearly balanced, and evaluate (gap).

        Parameters
        ----------
        W : (T, P) float64
            Weights, any.
        flows : (E, P) float64
            Dual variables U, any; the better, the smaller the gap. Not changed.
        tolerance : float
            The relative gap aimed at: decides only how small residuals are left where they are.
        conductance : (E,) float64, optional
            Edge weights r_e / ‖d_e‖ near W. With them, residuals are spread over the edges by solves, as
            often as it helps, until the tolerance is met.

        Returns
        -------
        Certificate
            Objective, proved gap, and the flows that prove it.
        """
        penalty = self.problem.penalty(W)
        objective = self.problem.loss(W) + penalty
        if self.problem.is_negligible(penalty, objective, tolerance):
            alone = self._of_each_alone(W, penalty, objective)
            if alone.relative_gap <= tolerance or not self.problem.radius.any():
                return alone
        rounding = self.problem.quadratic.loss.rounding(W)
        gradient, bound = self.problem.loss_gradient(W), self._distance_bound(W, objective)
        at = _Point(W, objective, gradient, rounding, bound)
        U, iterations = flows.copy(), 0
        edge_kernels.project(self.problem.radius, U, self.problem.lanes)
        best = self._evaluate(at, U, tolerance)
        if conductance is None or best.relative_gap <= tolerance:
            return best
        self._multigrid.update(conductance)
        for left in range(_MOST_REPAIRS, 0, -1):
            iterations += self._spread(at, U, conductance)
            repaired = self._evaluate(at, U, tolerance)
            shrinkage = repaired.gap / best.gap
            best = min(best, repaired, key=lambda certificate: certificate.gap)
            if best.relative_gap <= tolerance or _hopeless(best.relative_gap, shrinkage, left, tolerance):
                break
        return replace(best, cg_iterations=iterations)

    def _of_each_alone(self, W: FloatArray, penalty: float, objective: float) -> Certificate:
        """The certificate of no flows: no weights have less loss than each task alone.

        It is exact for λ = 0 and without edges, and all that can be told where λ is so small that rounding
        outweighs it: R_t, which grows with 1/λ, would make much of a residual that is only rounding.
        """
        hidden = self.problem.hidden_loss
        excess, rounding = self.problem.quadratic.loss.excess(W)
        rounding += rounding_of(penalty)
        if penalty > 0.0 and objective <= hidden:
            rounding = hidden
        gap = max(excess, 0.0) + penalty + rounding
        return Certificate(objective, gap, rounding, np.zeros((len(self.problem.head), W.shape[1])))

    def _evaluate(self, at: _Point, U: FloatArray, tolerance: float) -> Certificate:
        """The certificate of flows inside their balls, residuals carried along the forest first."""
        problem, U = self.problem, U.copy()
        residual = self._residual(at, U)
        affordable = _SHARE * tolerance * at.objective / residual.size
        edge_kernels.push_to_roots(
            *self._forest, *self._eigen, at.bound, affordable, residual, U, problem.lanes
        )
        self._scale_back(U)
        slack, penalty = edge_kernels.slack_and_penalty(
            problem.head, problem.tail, at.W, U, problem.radius, problem.lanes
        )
        unexplained = self._unexplained(self._residual(at, U), at.bound, at.rounding)
        in_all = at.rounding.loss + rounding_of(penalty)
        gap = max(slack, 0.0) + unexplained + in_all
        return Certificate(at.objective, min(gap, at.objective + in_all), in_all, U)

    def _unexplained(self, residual: FloatArray, bound: FloatArray, rounding: Rounding) -> float:
        """Σ_t Σ_a h(b_ta; w_ta, R_t): what the residual (T, P), known up to rounding, costs the bound."""
        eigen = self._eigen
        b = np.abs(np.matmul((residual / eigen.scale)[:, None, :], eigen.vectors)[:, 0, :])
        limit = bound[:, None] * eigen.stretch
        if rounding.gradient is None:
            return float(_bounded_conjugate(b, eigen.values, limit).sum())
        off = (rounding.gradient + self._rounding_of_flows) / eigen.scale
        b = b + np.matmul(off[:, None, :], np.abs(eigen.vectors))[:, 0, :]
        cost = float(_bounded_conjugate(b, eigen.values, limit).sum())
        # What rounding hides of b beyond that costs, alone, what it moves J by; costs are squares of lengths.
        return cost + 2.0 * float(np.sqrt(cost * rounding.loss))

    @cached_property
    def _rounding_of_flows(self) -> FloatArray:
        """(T, 1) The largest rounding error of the sum of the flows at each task."""
        problem = self.problem
        ends = np.concatenate([problem.head, problem.tail])
        count, load = (
            np.bincount(ends, w, problem.graph.n_tasks) for w in (None, np.tile(problem.radius, 2))
        )
        return np.asarray(EPS * (count + 1) * load, dtype=np.float64)[:, None]

    def _residual(self, at: _Point, U: FloatArray) -> FloatArray:
        """ρ (T, P): what the flows and the loss leave unbalanced."""
        return -at.gradient - self.problem.divergence(U)

    def _spread(self, at: _Point, U: FloatArray, conductance: FloatArray) -> int:
        """Change flows, in place, by κ D φ, where (Dᵀ κ D + G) φ = ρ: the rest, G φ, is in range(G).

        Then project them again, which leaves a smaller residual of its own. Returns the CG iterations.
        """
        problem, multigrid = self.problem, self._multigrid
        solved = flexible_cg(
            multigrid.apply, multigrid.precondition, self._residual(at, U), rtol=_REPAIR_TOLERANCE
        )
        edge_kernels.add_conducted(problem.head, problem.tail, conductance, solved.x, U, problem.lanes)
        edge_kernels.project(problem.radius, U, problem.lanes)
        return solved.iterations

    def _scale_back(self, U: FloatArray) -> None:
        """Scale, in place, all flows of a cell by one factor so that the largest fits its ball.

        All flows at a task that cannot absorb a residual belong to one cell, so there c − DᵀU stays in
        range(G): c is in it. An edge between tasks that can absorb is a cell of its own.
        """
        worst = np.ones(self._n_cells)
        edge_kernels.scale_into_balls(self.problem.radius, self._cell, U, worst, self.problem.lanes)

    def _distance_bound(self, W: FloatArray, objective: float) -> FloatArray:
        """R (T,): proved bounds on ‖W_t − W*_t‖ for some optimal W*, one for each component.

        With S = J(W) − min loss, optimal weights have Σ r_e‖d_e‖ ≤ S, so two tasks of a component differ
        by at most S / min r; and both W and W* are within √(2S) of least squares in the norm of the
        pooled Gram matrix, which anchors the component except along directions where it has no data.
        Along those, all tasks of a component may shift together without changing J.
        """
        graph = self.problem.graph
        excess = max(objective - self._least_loss, 0.0)
        half = 0.5 * self.problem.fusion_strength
        spread = np.zeros(graph.n_components)
        mean = self._spectrum.mean(W)
        np.maximum.at(spread, graph.component, row_norms(W - mean[graph.component]))
        across = np.where(self._spectrum.size > 1, excess / half, 0.0) + spread
        anchored = 2.0 * np.sqrt(2.0 * excess) + np.sqrt(self._largest) * across
        anchored /= np.sqrt(self._spectrum.smallest)
        return np.asarray((across + anchored)[graph.component], dtype=np.float64)


def _hopeless(gap: float, shrinkage: float, left: int, tolerance: float) -> bool:
    """Whether the repairs left cannot reach the tolerance at the rate of the last one."""
    return shrinkage >= 1.0 or gap * shrinkage ** (left - 1) > tolerance


def _bounded_conjugate(b: FloatArray, w: FloatArray, R: FloatArray) -> FloatArray:
    """h(b; w, R) for b ≥ 0: b²/2w where the maximiser b/w is within R, else R b − w R²/2."""
    with np.errstate(over="ignore", invalid="ignore"):  # of what is not taken; a bound of infinity is none
        inside = b <= w * R
        quadratic = np.divide(b * b, 2.0 * w, out=np.zeros_like(b), where=inside & (w > 0))
        return np.where(inside, quadratic, R * (b - 0.5 * w * R))


def _absorbing(smallest: FloatArray) -> BoolArray:
    """(T,) Tasks whose Gram matrix is far enough from singular to absorb any residual cheaply."""
    positive = smallest[smallest > 0]
    absorbing: BoolArray = smallest >= (0.1 * np.median(positive) if len(positive) else np.inf)
    return absorbing


def _cells(problem: FusionProblem, absorbing: BoolArray) -> tuple[int, IntArray]:
    """Number of cells, and the cell (E,) of each edge; see :meth:`Certifier._scale_back`."""
    head, tail = problem.head, problem.tail
    inner = ~(absorbing[head] | absorbing[tail])
    count, label = components(problem.graph.edges, inner, problem.graph.n_tasks)
    free = absorbing[head] & absorbing[tail]
    cell = np.where(absorbing[head], label[tail], label[head])
    cell[free] = count + np.arange(int(free.sum()))
    return int(count + free.sum()), cell
