"""Solve well-determined tasks by accelerated projected gradient ascent on the dual.

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
from functools import partial

import numpy as np

from ccmtl_core.base.arrays import read_only
from ccmtl_core.base.threads import WORTH_SHARING, sharing, slices
from ccmtl_core.base.types import FloatArray
from ccmtl_core.kernels.solver import block_kernels, dual_kernels, edge_kernels
from ccmtl_core.solver.certificate import Certificate, rounding_of
from ccmtl_core.solver.clusters import Clusters, MergedProblem, Neighbourhood
from ccmtl_core.solver.fusing import Candidate, fuse
from ccmtl_core.solver.objective import FusionProblem, row_norms
from ccmtl_core.solver.outcome import TIGHT, Recorder
from ccmtl_core.solver.report import SolveStatus

_CHECK = 5  # steps from one certificate to the next, at first
_PATIENCE = 40  # steps, after which those still to come are foretold
_MOST_STEPS, _MOST_TIGHT_STEPS = 500, 1500  # the more digits, the dearer the other solvers
_FORESEEN = 2  # times the most: momentum tends to do better than foretold
_WIDEST = 64  # features; beyond, inverting the blocks takes longer than it saves
_INSIDE = (1.0 - 1e-9, 0.5)  # of its radius: a shorter flow is taken for one that its ball does not hold
_GROUP_SHARE = 0.05  # of the tolerance, to which the problem of the groups is solved
_GROUP_CHECKS = 6  # at most
_FEW_GROUPS = 10  # tasks to a group
_FEW_FUSE = 4  # times as many tasks: those that fuse are then looked at alone, with their neighbours if few
_NEARBY_STEPS = 10
_SMOOTHING = 1e-2  # of the typical length of an edge, where the Newton steps of a tight tolerance begin


@dataclass(frozen=True, eq=False)
class Inverse:
    """G_t⁻¹ (T, P, P) and bounds on their largest eigenvalues (T,)."""

    blocks: FloatArray
    norm: FloatArray

    @classmethod
    def of(cls, problem: FusionProblem) -> Inverse | None:
        """Invert all blocks; None where one of them is not safely definite, or too wide."""
        if problem.quadratic.n_features > _WIDEST or problem.quadratic.least_squares.hides.any():
            return None
        gram = np.ascontiguousarray(problem.quadratic.gram)
        blocks, norm = np.empty_like(gram), np.empty(len(gram))
        definite = block_kernels.invert_definite(read_only(gram), blocks, norm, problem.lanes)
        return cls(blocks, norm) if definite and np.isfinite(norm).all() else None


class DualAscent:
    """Flows U (E, P), inside their balls, that climb, and their weights; takes over the flows it is given."""

    def __init__(self, problem: FusionProblem, inverse: Inverse, flows: FloatArray | None = None) -> None:
        self.problem, self.inverse = problem, inverse
        load = problem.graph.degree * inverse.norm
        self._step = 1.0 / (load[problem.head] + load[problem.tail])
        self._center = problem.quadratic.least_squares.weights
        self._least_loss = 0.5 * float(problem.quadratic.least_squares.residual.sum())
        P = self._center.shape[1]
        self.flows = np.zeros((len(problem.head), P)) if flows is None else flows
        edge_kernels.project(problem.radius, self.flows, problem.lanes)
        self._n_parts = 2 if self.flows.size >= WORTH_SHARING else 1
        self.rest()

    def rest(self) -> None:
        """Forget the momentum, and let go of the memory that it takes; the next climb begins anew."""
        self._ahead = self._outflow = self._ahead_weights = np.empty((0, 0))
        self._age = 1.0

    def _set_out(self) -> None:
        p = self.problem
        self._ahead = self.flows.copy()
        self._outflow = np.zeros((self._n_parts, *self._center.shape))
        edge_kernels.add_divergence(p.head, p.tail, self._ahead, self._outflow[0], p.lanes)
        self._ahead_weights = np.empty_like(self._center)

    def climb(self, steps: int) -> None:
        """Take so many steps."""
        if not self._ahead_weights.size:
            self._set_out()
        edges = list(enumerate(slices(len(self.flows), self._n_parts)))
        tasks = slices(len(self._center), self._n_parts)
        with sharing(self._n_parts) as share:
            for _ in range(steps):
                share(self._weigh, tasks)
                older, self._age = self._age, 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * self._age**2))
                momentum = (older - 1.0) / self._age
                if sum(share(partial(self._ascend, momentum), edges)) < 0.0:
                    self._age = 1.0

    def _weigh(self, tasks: slice) -> None:
        """The weights of the flows ahead, of some tasks."""
        dual_kernels.weights_of_flow(
            self.inverse.blocks, self._center, self._outflow, tasks.start, tasks.stop, self._ahead_weights,
            self.problem.lanes,
        )  # fmt: skip

    def _ascend(self, momentum: float, part: tuple[int, slice]) -> float:
        """One step of the flows of some edges."""
        p, (number, edges) = self.problem, part
        along: float = dual_kernels.ascend(
            p.head[edges], p.tail[edges], p.radius[edges], self._step[edges], self._ahead_weights,
            self.flows[edges], self._ahead[edges], self._outflow[number], momentum, p.lanes,
        )  # fmt: skip
        return along

    def certified(self) -> tuple[FloatArray, Certificate]:
        """The weights of the flows, and their proof, whose flows change with the next step."""
        p, W = self.problem, np.empty_like(self._center)
        outflow = p.divergence(self.flows)
        dual_kernels.weights_of_flow(self.inverse.blocks, self._center, outflow[None], 0, len(W), W, p.lanes)
        slack, penalty = edge_kernels.slack_and_penalty(p.head, p.tail, W, self.flows, p.radius, p.lanes)
        quadratic, unexplained, terms = dual_kernels.loss_of_flow(
            p.quadratic.gram, self.inverse.norm, self._center, outflow, W, p.lanes
        )
        rounding = rounding_of(terms + penalty)
        objective = self._least_loss + quadratic + penalty
        gap = max(slack, 0.0) + unexplained + rounding
        return W, Certificate(objective, gap, rounding, self.flows)


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
        if recorder.status is None and steps >= _PATIENCE:
            _fuse_most(state, recorder)
        if recorder.status is SolveStatus.CONVERGED:
            state.rest()
            _fuse(state, W, recorder)
        recorder.end_round(certificate.objective, 0.0, 0)
        gaps[steps] = min(certificate.relative_gap, recorder.relative_gap)
        if recorder.finished or _is_hopeless(gaps, recorder.tolerance):
            return
        state.climb(pace)
        steps += pace
        pace = max(_CHECK, steps // 3)


def _is_hopeless(gaps: dict[int, float], tolerance: float) -> bool:
    """Whether, at the rate of the later half of the steps, more than the most allowed would be needed."""
    steps = max(gaps)
    if steps < _PATIENCE:
        return False
    before = max(k for k in gaps if 2 * k <= steps)
    if not 0.0 < gaps[steps] < gaps[before]:
        return True
    rate = np.log(gaps[before] / gaps[steps]) / (steps - before)
    most = _MOST_STEPS if tolerance >= TIGHT else _MOST_TIGHT_STEPS
    return steps >= most or not 0.0 < np.log(gaps[steps] / tolerance) / rate <= _FORESEEN * most - steps


def _fuse(state: DualAscent, W: FloatArray, recorder: Recorder) -> None:
    """Prefer weights that are equal over edges whose flow is inside its ball, if they are as good."""
    problem, tolerance = state.problem, recorder.tolerance
    lengths = problem.lengths(W)
    if not (lengths.any() and problem.radius.any()):
        return
    share_of_radius, objective = row_norms(state.flows) / problem.radius, np.inf
    for inside in _INSIDE:
        if not (share_of_radius < inside).any():
            return
        clusters = Clusters.along(problem.graph, share_of_radius < inside)
        if tolerance >= TIGHT:
            fused = _climb_nearby(state, W, clusters)
            if fused is None:
                fused = _climb_groups(state, clusters, recorder)
        else:
            smoothing = _SMOOTHING * float(np.median(lengths[lengths > 0.0]))
            plain = Candidate(W, state.flows, problem.radius / np.hypot(lengths, smoothing))
            fused = fuse(problem, plain, clusters, smoothing, tolerance).weights
        if fused is not None:
            objective = problem.objective(fused)
            if recorder.prefer(fused, objective):
                return
    for _ in range(_GROUP_CHECKS if tolerance >= TIGHT else 0):
        state.climb(_CHECK)  # a few tasks may fuse at no cost once all have come nearer
        fused, before = _climb_nearby(state, state.certified()[0], clusters), objective
        if fused is None:
            return
        objective = problem.objective(fused)
        if recorder.prefer(fused, objective) or 2.0 * objective - before > recorder.good_enough:
            return  # or another gain like the last would not be enough


def _fuse_most(state: DualAscent, recorder: Recorder) -> None:
    """If few groups remain, solve for them: their weights are near the optimum long before the flows are."""
    problem = state.problem
    clusters = Clusters.along(problem.graph, row_norms(state.flows) < _INSIDE[-1] * problem.radius)
    if _FEW_GROUPS * clusters.n_clusters <= problem.graph.n_tasks:
        fused = _climb_groups(state, clusters, recorder)
        if fused is not None:
            recorder.consider(fused, problem.objective(fused))


def _climb_nearby(state: DualAscent, W: FloatArray, clusters: Clusters) -> FloatArray | None:
    """If few tasks fuse, step with these and their neighbours alone; return all weights, or None."""
    problem = state.problem
    nearby = Neighbourhood(problem, clusters, with_neighbours=True)
    if _FEW_FUSE * len(nearby.tasks) > len(W):
        nearby = Neighbourhood(problem, clusters, with_neighbours=False)
        if _FEW_FUSE * len(nearby.tasks) > len(W):
            return None
    merged = MergedProblem(nearby.with_flows(state.flows), nearby.clusters)
    groups = _of_groups(merged, state.flows[nearby.edges])
    groups.climb(_NEARBY_STEPS)
    fused = W.copy()
    fused[nearby.tasks] = groups.certified()[0][nearby.clusters.label]
    return fused


def _of_groups(merged: MergedProblem, flows: FloatArray) -> DualAscent:
    """The ascent of the groups, from the flows of the edges between their tasks."""
    inverse = Inverse.of(merged.problem)
    if inverse is None:
        raise AssertionError("sums of safely definite blocks are safely definite")
    between = np.zeros((len(merged.problem.head), flows.shape[1]))
    dual_kernels.sum_flows(merged.edge, merged.sign, flows, between)
    return DualAscent(merged.problem, inverse, between)


def _climb_groups(state: DualAscent, clusters: Clusters, recorder: Recorder) -> FloatArray | None:
    """Weights of the groups after a few steps of their own; None once it is proved that they are worse."""
    problem = state.problem
    groups = _of_groups(MergedProblem(problem, clusters), state.flows)
    share = _GROUP_SHARE * recorder.tolerance if 2 * clusters.n_clusters < problem.graph.n_tasks else np.inf
    for _ in range(_GROUP_CHECKS):
        W, certificate = groups.certified()
        if certificate.lower_bound > recorder.good_enough:
            return None
        if certificate.objective <= recorder.good_enough and certificate.relative_gap <= share:
            break
        groups.climb(_CHECK)
    return W[clusters.label]
