"""Start weights in, certified weights out: primal-dual Newton on the smoothed objective.

The penalty is smoothed to r √(‖d‖² + ε²) and ε lowered from round to round. Writing u for the scaled dual
variable of an edge, optimality reads G W − c + Dᵀ(r u) = 0 and s u = d with s = √(‖d‖² + ε²). Newton's
method on this pair, instead of on W alone, is what makes large steps safe (Chan, Golub & Mulet, SIAM J.
Sci. Comput. 20, 1999, there for total variation). Eliminating du leaves

    (G + Dᵀ w [I − (u vᵀ + v uᵀ)/2] D) dW = c − G W − Dᵀ(r v),     v = d/s,  w = r/s,

whose majoriser G + Dᵀ w D is the alternation's system (He et al., AAAI 2019, equation 6): its multigrid
cycle preconditions this one.

A round is one Newton step. It leaves a slack Σ r (‖d‖ − u·d), which is the gap that ε and the rounds still
missing cost, and a mismatch Σ r ‖s u − d‖, which is the distance from the path of minimisers over ε.
ε falls only near the path, and no more once the slack is below what the tolerance allows; then the steps
are solved ever more exactly until the flows balance well enough to certify.
"""

from __future__ import annotations

import numpy as np

from ccmtl_core._types import FloatArray
from ccmtl_core.certificate import Certifier
from ccmtl_core.objective import FusionProblem
from ccmtl_core.solver import kernels
from ccmtl_core.solver.cg import CGResult, flexible_cg
from ccmtl_core.solver.multigrid import Multigrid
from ccmtl_core.solver.outcome import Outcome, Recorder, typical_length

_FIRST_SMOOTHING = 0.1  # of the typical edge length of the start
_SHRINK = 0.2  # of ε, from round to round
_NEAR_PATH = 0.3  # mismatch over slack
_MOST_HALVINGS = 8  # of a step that overshoots; the dual variable takes it whole
_OVERSHOOT = 2.0  # times the smoothed objective: whole steps may raise it, and mend that in the next round
_SLACK_SHARE = 0.7  # of the tolerated gap: a slack below it needs no smaller ε
_BALANCED = 0.02  # mismatch over slack from which a certificate is worth computing
_INNER_TOLERANCE = 0.1
_TIGHTEST_INNER_TOLERANCE = 1e-3
_MAX_CG = 60


class NewtonState:
    """Weights W, scaled duals u and the smoothed edges around them; :meth:`step` moves all."""

    def __init__(self, problem: FusionProblem, multigrid: Multigrid, W: FloatArray) -> None:
        self.problem, self.multigrid, self.W = problem, multigrid, W
        shape = (len(problem.head), W.shape[1])
        self.u, self.v, self.w = np.zeros(shape), np.empty(shape), np.empty(shape[0])
        self.slack = self.mismatch = np.inf

    def step(self, smoothing: float, rtol: float) -> int:
        """One Newton step; returns the CG iterations spent."""
        p = self.problem
        before = p.loss(self.W) + self._smooth(self.W, smoothing)
        self.multigrid.update(self.w)
        solved = self._solve(rtol)
        self.W = self._descend(solved.x, before, smoothing)
        self.slack, self.mismatch = kernels.dual_step(
            p.head, p.tail, p.radius, self.w, self.v, solved.x, self.W, smoothing, self.u, p.dims
        )
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
    rtol = _INNER_TOLERANCE
    while not recorder.finished:
        iterations = state.step(smoothing, rtol)
        objective = problem.objective(state.W)
        tolerated = recorder.tolerance * objective
        size = max(state.slack, _SLACK_SHARE * tolerated)
        if recorder.last_round or (state.slack <= tolerated and state.mismatch <= _BALANCED * size):
            certificate = certifier.certify(state.W, state.flows(), recorder.tolerance, state.w)
            recorder.certified(state.W, certificate, smoothing, iterations)
        else:
            recorder.uncertified(state.W, objective, smoothing, iterations)
        if state.slack <= _SLACK_SHARE * tolerated:
            rtol = max(0.5 * rtol, _TIGHTEST_INNER_TOLERANCE)
        elif state.mismatch <= _NEAR_PATH * size:
            smoothing *= _SHRINK
    return recorder.outcome()
