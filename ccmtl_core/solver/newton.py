"""Start weights in, certified weights out: primal-dual Newton on the smoothed objective.

The penalty is smoothed to r √(‖d‖² + ε²) and ε lowered from round to round. Writing u for the scaled dual
variable of an edge, optimality reads G W − c + Dᵀ(r u) = 0 and s u = d with s = √(‖d‖² + ε²). Newton's
method on this pair, instead of on W alone, is what makes large steps safe (Chan, Golub & Mulet, SIAM J.
Sci. Comput. 20, 1999, there for total variation). Eliminating du leaves

    (G + Dᵀ w [I − (u vᵀ + v uᵀ)/2] D) dW = c − G W − Dᵀ(r v),     v = d/s,  w = r/s,

whose majoriser G + Dᵀ w D is the alternation's system (He et al., AAAI 2019, equation 6): its multigrid
cycle preconditions this one.

A round is one Newton step. It leaves a mismatch Σ r ‖s u − d‖, the distance from the path of minimisers
over ε, and a slack Σ r (‖d‖ − u·d), what it costs the gap. ε falls only near the path. As soon as the slack
over the edges that ε has not fused is below what the tolerance allows, the fused weights are tried: equal on
the short edges, and a few Newton steps of the merged problem away from their mean. If they cannot be
certified, ε falls on until the slack over all edges is small enough, and then the steps are solved ever more
exactly until the flows balance.
"""

from __future__ import annotations

import numpy as np

from ccmtl_core._types import FloatArray
from ccmtl_core.certificate import Certifier
from ccmtl_core.clusters import Clusters, MergedProblem
from ccmtl_core.objective import FusionProblem, row_norms
from ccmtl_core.solver import kernels
from ccmtl_core.solver.cg import CGResult, flexible_cg
from ccmtl_core.solver.multigrid import Multigrid
from ccmtl_core.solver.outcome import Outcome, Recorder, typical_length
from ccmtl_core.solver.pooled_spectrum import PooledSpectrum

_FIRST_SMOOTHING = 0.1  # of the typical edge length of the start
_SHRINK = 0.2  # of ε, from round to round
_NEAR_PATH = 0.3  # mismatch over slack
_MOST_HALVINGS = 8  # of a step that overshoots; the dual variable takes it whole
_OVERSHOOT = 2.0  # times the smoothed objective: whole steps may raise it, and mend that in the next round
_SLACK_SHARE = 0.7  # of the tolerated gap: a slack below it needs no smaller ε
_BALANCED = 0.02  # mismatch over that share, from which a certificate is worth computing
_PATIENCE = 4  # rounds to wait for it: rounding can keep the mismatch up where the flows are good enough
_INNER_TOLERANCE = 0.1
_FUSED = 3  # times ε: the two tasks of a shorter edge are fused
_MERGED_STEPS = 3
_MERGED_SHRINK = 0.1  # of ε, from step to step of the merged problem, where nothing is short
_MERGED_TOLERANCE = 1e-4
_TIGHTEST_INNER_TOLERANCE = 1e-3
_MAX_CG = 60


class NewtonState:
    """Weights W, scaled duals u and the smoothed edges around them; :meth:`step` moves all."""

    def __init__(self, problem: FusionProblem, multigrid: Multigrid, W: FloatArray) -> None:
        self.problem, self.multigrid, self.W = problem, multigrid, W
        shape = (len(problem.head), W.shape[1])
        self.u, self.v, self.w = np.zeros(shape), np.empty(shape), np.empty(shape[0])
        self.open_slack = self.slack = self.mismatch = np.inf

    @classmethod
    def start(cls, problem: FusionProblem, W: FloatArray) -> NewtonState:
        """A state with a multigrid of its own."""
        graph, gram = problem.graph, problem.statistics.gram
        spectrum = PooledSpectrum.of(gram, graph.component, graph.n_components)
        return cls(problem, Multigrid(graph.edges, gram, spectrum), W)

    def step(self, smoothing: float, rtol: float) -> int:
        """One Newton step; returns the CG iterations spent."""
        p = self.problem
        before = p.loss(self.W) + self._smooth(self.W, smoothing)
        self.multigrid.update(self.w)
        solved = self._solve(rtol)
        self.W = self._descend(solved.x, before, smoothing)
        self.open_slack, self.slack, self.mismatch = kernels.dual_step(
            p.head, p.tail, p.radius, self.w, self.v, solved.x, self.W, smoothing, _FUSED * smoothing,
            self.u, p.dims,
        )  # fmt: skip
        return solved.iterations

    def _smooth(self, W: FloatArray, smoothing: float) -> float:
        """Evaluate v and w around W; returns the smoothed penalty."""
        p = self.problem
        penalty: float = kernels.smooth_edges(p.head, p.tail, W, p.radius, smoothing, self.v, self.w, p.dims)
        return penalty

    def _descend(self, dW: FloatArray, before: float, smoothing: float) -> FloatArray:
        """W + dW, the step halved while it overshoots."""
        p, length = self.problem, 1.0
        for _ in range(_MOST_HALVINGS):
            W = self.W + length * dW
            penalty = kernels.smoothed_penalty(p.head, p.tail, W, p.radius, smoothing, p.dims)
            if p.loss(W) + penalty <= _OVERSHOOT * before:
                break
            length *= 0.5
        return W

    def fused(self, smoothing: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Weights equal on the edges that ε has fused, with flows U and edge weights to certify them by."""
        p = self.problem
        clusters = Clusters.along(p.graph, row_norms(p.differences(self.W)) <= _FUSED * smoothing)
        merged = MergedProblem(p, clusters)
        state = NewtonState.start(merged.problem, clusters.mean(self.W))
        flows, w = self.flows(), p.radius / smoothing
        if len(merged.problem.head):
            for _ in range(_MERGED_STEPS):
                state.step(smoothing, _MERGED_TOLERANCE)
                smoothing *= _MERGED_SHRINK
            between = merged.edge >= 0
            edge = merged.edge[between]
            flows[between] = (p.radius * merged.sign)[between, None] * state.u[edge]
            w[between] = p.radius[between] * (state.w / merged.problem.radius)[edge]
        else:
            state.step(smoothing, _MERGED_TOLERANCE)
        return state.W[clusters.label], flows, w

    def flows(self) -> FloatArray:
        """U = r u, (E, P)."""
        return self.problem.radius[:, None] * self.u

    def _solve(self, rtol: float) -> CGResult:
        p = self.problem
        rhs = -p.loss_gradient(self.W)
        kernels.subtract_scaled_divergence(p.head, p.tail, p.radius, self.v, rhs, p.dims)
        return flexible_cg(self._apply, self.multigrid.precondition, rhs, rtol=rtol, max_iterations=_MAX_CG)

    def _apply(self, x: FloatArray) -> FloatArray:
        p, out = self.problem, self.multigrid.apply(x)
        kernels.subtract_curvature(p.head, p.tail, self.w, self.u, self.v, x, out, p.dims)
        return out


def newton(
    problem: FusionProblem, W: FloatArray, recorder: Recorder, certifier: Certifier, multigrid: Multigrid
) -> Outcome:
    """Minimise by primal-dual Newton steps until the certified gap is within the recorder's tolerance.

    Parameters
    ----------
    problem : FusionProblem
        What to minimise; λ > 0 and at least one edge.
    W : (T, P) float64
        Start weights; not changed.
    recorder : Recorder
        Keeps the best certificate and decides when to stop.
    certifier : Certifier
        Of the same problem.
    multigrid : Multigrid
        On the same graph and Gram blocks; its edge weights are overwritten.
    """
    state = NewtonState(problem, multigrid, W)
    smoothing = _FIRST_SMOOTHING * typical_length(problem, W)
    rtol, waiting = _INNER_TOLERANCE, 0
    while not recorder.finished:
        iterations = state.step(smoothing, rtol)
        objective = problem.objective(state.W)
        recorder.consider(state.W, objective)
        allowed = _SLACK_SHARE * recorder.tolerance * objective
        balanced = state.mismatch <= _BALANCED * allowed or waiting >= _PATIENCE
        tried = recorder.last_round or (balanced and state.open_slack <= allowed)
        if tried:
            iterations += _try_to_certify(state, smoothing, recorder, certifier, allowed)
        recorder.end_round(objective, smoothing, iterations)
        waiting = 0 if tried or state.open_slack > allowed else waiting + 1
        if (tried and state.slack > allowed) or (
            not waiting and not tried and state.mismatch <= _NEAR_PATH * state.slack
        ):
            smoothing, rtol = _SHRINK * smoothing, _INNER_TOLERANCE
        elif tried or waiting:
            rtol = max(0.5 * rtol, _TIGHTEST_INNER_TOLERANCE)
    return recorder.outcome()


def _try_to_certify(
    state: NewtonState, smoothing: float, recorder: Recorder, certifier: Certifier, allowed: float
) -> int:
    """Certify the fused weights; failing that, where the slack allows it, the weights as they are."""
    W, flows, w = state.fused(smoothing)
    certificate = certifier.certify(W, flows, recorder.tolerance, w)
    recorder.consider(W, certificate.objective, certificate)
    iterations = certificate.cg_iterations
    if not recorder.finished and state.slack <= allowed:
        certificate = certifier.certify(state.W, state.flows(), recorder.tolerance, state.w)
        recorder.consider(state.W, certificate.objective, certificate)
        iterations += certificate.cg_iterations
    return iterations
