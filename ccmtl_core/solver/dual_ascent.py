"""Well-determined tasks in, certified weights out: accelerated projected gradient ascent on the dual.

Where every G_t is safely positive definite, flows U give weights in closed form, W_t = ŵ_t − G_t⁻¹ (DᵀU)_t,
and the dual is to be maximised over a product of balls ‖U_e‖ ≤ r_e with the gradient D W: a step costs one
pass over edges and tasks (Chi & Lange, J. Comput. Graph. Stat. 24, 2015, for convex clustering, there with
G_t = I). Momentum is Nesterov's, begun anew when it leads away from the maximum (O'Donoghue & Candès, Found.
Comput. Math. 15, 2015). Each edge has a step of its own, 1 / (deg_i ‖G_i⁻¹‖ + deg_j ‖G_j⁻¹‖), which bounds
the curvature. The flows leave no residual, so their slack is the gap: the proof costs nothing. Edges whose
flow stays inside its ball join tasks with equal weights at the optimum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ccmtl_core._types import FloatArray
from ccmtl_core.certificate import Certificate
from ccmtl_core.clusters import Clusters, MergedProblem
from ccmtl_core.objective import FusionProblem, row_norms
from ccmtl_core.solver import dual_kernels, edge_kernels
from ccmtl_core.solver.fusing import Candidate, fuse
from ccmtl_core.solver.outcome import Recorder
from ccmtl_core.solver.report import SolveStatus

_CHECK = 5  # steps from one certificate to the next, at first
_PATIENCE = 40  # steps, after which those still to come are foretold
_MOST_STEPS, _MOST_TIGHT_STEPS = 500, 1500  # the more digits, the dearer the other solvers
_FORESEEN = 2  # times the most: momentum tends to do better than foretold
_WIDEST = 64  # features; beyond, inverting the blocks takes longer than it saves
_INSIDE = (1.0 - 1e-9, 0.4)  # of its radius: a shorter flow is taken for one that is not held by its ball
_GROUP_SHARE = 0.05  # of the tolerance, to which the problem of the groups is solved
_GROUP_CHECKS = 6  # at most
_TIGHT = 1e-6  # tolerance, below which that takes Newton steps
_SMOOTHING = 1e-2  # of the typical length of an edge, where they begin
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Inverse:
    """G_t⁻¹ (T, P, P) and bounds on their largest eigenvalues (T,)."""

    blocks: FloatArray
    norm: FloatArray

    @classmethod
    def of(cls, problem: FusionProblem) -> Inverse | None:
        """Invert all blocks; None where one of them is not safely definite, or too wide."""
        if problem.statistics.n_features > _WIDEST:
            return None
        gram = np.ascontiguousarray(problem.statistics.gram)
        blocks, norm = np.empty_like(gram), np.empty(len(gram))
        definite = dual_kernels.invert_definite(gram, blocks, norm, problem.dims)
        return cls(blocks, norm) if definite and np.isfinite(norm).all() else None


class DualAscent:
    """Flows U (E, P), inside their balls, that climb; and the weights that belong to them."""

    def __init__(self, problem: FusionProblem, inverse: Inverse, flows: FloatArray | None = None) -> None:
        self.problem, self.inverse = problem, inverse
        load = problem.graph.degree * inverse.norm
        self._step = 1.0 / (load[problem.head] + load[problem.tail])
        self._center = problem.statistics.least_squares.weights
        self.flows = np.zeros((len(problem.head), self._center.shape[1])) if flows is None else flows.copy()
        edge_kernels.project(problem.radius, self.flows, problem.dims)
        self._ahead = self.flows.copy()
        self._outflow = problem.divergence(self._ahead)
        self._ahead_weights = np.empty_like(self._center)
        self._age = 1.0

    def climb(self, steps: int) -> None:
        """Take so many steps."""
        p = self.problem
        for _ in range(steps):
            dual_kernels.weights_of_flow(
                self.inverse.blocks, self._center, self._outflow, self._ahead_weights, p.dims
            )
            older, self._age = self._age, 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * self._age**2))
            along = dual_kernels.ascend(
                p.head, p.tail, p.radius, self._step, self._ahead_weights, self.flows, self._ahead,
                self._outflow, (older - 1.0) / self._age, p.dims,
            )  # fmt: skip
            if along < 0.0:
                self._age = 1.0

    def certified(self) -> tuple[FloatArray, Certificate]:
        """The weights of the flows, and their proof."""
        p, W = self.problem, np.empty_like(self._center)
        outflow = p.divergence(self.flows)
        dual_kernels.weights_of_flow(self.inverse.blocks, self._center, outflow, W, p.dims)
        slack, penalty = edge_kernels.slack_and_penalty(p.head, p.tail, W, self.flows, p.radius, p.dims)
        residual = p.loss_gradient(W) + outflow  # of rounding only
        unexplained = float(np.einsum("tp,tp->t", residual, residual) @ self.inverse.norm)
        D = np.abs(W - self._center)
        terms = np.matmul(np.abs(p.statistics.gram), D[:, :, None])[:, :, 0]
        rounding = 2.0 * _EPS * (float(np.vdot(D, terms)) + penalty)
        gap = max(slack, 0.0) + unexplained + rounding
        return W, Certificate(p.loss(W) + penalty, gap, rounding, self.flows.copy())


def dual_ascent(
    problem: FusionProblem, inverse: Inverse, recorder: Recorder, flows: FloatArray | None = None
) -> None:
    """Climb until the certified gap is within the recorder's tolerance, or it is seen to take too long.

    Parameters
    ----------
    problem : FusionProblem
        What to minimise.
    inverse : Inverse
        Of its Gram blocks.
    recorder : Recorder
        Keeps the best certificate and decides when to stop.
    flows : (E, P) float64, optional
        Where to start, from zero otherwise.
    """
    state = DualAscent(problem, inverse, flows)
    gaps: dict[int, float] = {}
    steps, pace = 0, _CHECK
    while True:
        W, certificate = state.certified()
        recorder.consider(W, certificate.objective, certificate)
        if recorder.status is SolveStatus.CONVERGED:
            _fuse(state, W, recorder)
        recorder.end_round(certificate.objective, 0.0, 0)
        gaps[steps] = certificate.relative_gap
        if recorder.finished or _is_hopeless(gaps, recorder.tolerance):
            return
        state.climb(pace)
        steps += pace
        pace = max(_CHECK, steps // 5)


def _is_hopeless(gaps: dict[int, float], tolerance: float) -> bool:
    """Whether, at the rate of the later half of the steps, more than the most allowed would be needed."""
    steps = max(gaps)
    if steps < _PATIENCE:
        return False
    before = max(k for k in gaps if 2 * k <= steps)
    rate = np.log(gaps[before] / gaps[steps]) / (steps - before)
    most = _MOST_STEPS if tolerance >= _TIGHT else _MOST_TIGHT_STEPS
    return steps >= most or not 0.0 < np.log(gaps[steps] / tolerance) / rate <= _FORESEEN * most - steps


def _fuse(state: DualAscent, W: FloatArray, recorder: Recorder) -> None:
    """Prefer weights that are equal over edges whose flow is inside its ball, if they are as good."""
    problem, tolerance = state.problem, recorder.tolerance
    lengths = problem.lengths(W)
    if not (lengths.any() and problem.radius.any()):
        return
    share_of_radius = row_norms(state.flows) / problem.radius
    for inside in _INSIDE:
        if not (share_of_radius < inside).any():
            return
        clusters = Clusters.along(problem.graph, share_of_radius < inside)
        if tolerance >= _TIGHT:
            fused = _climb_groups(state, clusters, tolerance)
        else:
            smoothing = _SMOOTHING * float(np.median(lengths[lengths > 0.0]))
            plain = Candidate(W, state.flows, problem.radius / np.hypot(lengths, smoothing))
            fused = fuse(problem, plain, clusters, smoothing, tolerance).weights
        if recorder.prefer(fused, problem.objective(fused)):
            return


def _climb_groups(state: DualAscent, clusters: Clusters, tolerance: float) -> FloatArray:
    """Weights of the groups, from a few steps of their own."""
    problem = state.problem
    merged = MergedProblem(problem, clusters)
    inverse = Inverse.of(merged.problem)
    if inverse is None:
        raise AssertionError("sums of safely definite blocks are safely definite")
    between = merged.edge >= 0
    flows = np.zeros((len(merged.problem.head), problem.statistics.n_features))
    np.add.at(flows, merged.edge[between], (merged.sign[:, None] * state.flows)[between])
    groups = DualAscent(merged.problem, inverse, flows)
    for _ in range(_GROUP_CHECKS):
        W, certificate = groups.certified()
        if certificate.relative_gap <= _GROUP_SHARE * tolerance:
            break
        groups.climb(_CHECK)
    return W[clusters.label]
