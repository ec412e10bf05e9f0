"""One primal-dual Newton step on weights and dual variables.

The penalty is smoothed to r √(‖d‖² + ε²). Writing u for the scaled dual variable of an edge, optimality
reads G W − c + Dᵀ(r u) = 0 and s u = d with s = √(‖d‖² + ε²). Newton's method on this pair, instead of on W
alone, is what makes large steps safe (Chan, Golub & Mulet, SIAM J. Sci. Comput. 20, 1999, there for total
variation). Eliminating du leaves

    (G + Dᵀ w [I − (u vᵀ + v uᵀ)/2] D) dW = c − G W − Dᵀ(r v),     v = d/s,  w = r/s,

whose majoriser G + Dᵀ w D is the alternation's system (He et al., AAAI 2019, equation 6): its multigrid
cycle preconditions this one.
"""

from __future__ import annotations

import numpy as np

from ccmtl_core.base.types import FloatArray
from ccmtl_core.kernels.solver import edge_kernels
from ccmtl_core.solver.objective import FusionProblem
from ccmtl_core.solver.systems.cg import MOST_ITERATIONS, CGResult, flexible_cg
from ccmtl_core.solver.systems.multigrid import Multigrid
from ccmtl_core.solver.systems.pooled_spectrum import PooledSpectrum

FUSED = 3.0  # times ε: the two tasks of a shorter edge count as fused
_MOST_HALVINGS = 8  # of a step that overshoots; the dual variable takes it whole
_OVERSHOOT = 2.0  # times the smoothed objective: whole steps may raise it, and mend that in the next round


class NewtonState:
    """Weights W, scaled duals u and the smoothed edges around them; :meth:`step` moves all."""

    overshoot = _OVERSHOOT
    """Times the smoothed objective before: a step that leads above is halved."""

    def __init__(self, problem: FusionProblem, multigrid: Multigrid, W: FloatArray) -> None:
        self.problem, self.multigrid, self.W = problem, multigrid, W
        shape = (len(problem.head), W.shape[1])
        self.u, self.v, self.w = np.zeros(shape), np.empty(shape), np.empty(shape[0])
        self.open_slack = self.slack = self.mismatch = np.inf
        self._loss, self._gradient = problem.loss_around(W)

    @classmethod
    def start(cls, problem: FusionProblem, W: FloatArray) -> NewtonState:
        """A state with a multigrid of its own."""
        graph, gram = problem.graph, problem.quadratic.gram
        spectrum = PooledSpectrum.of(gram, graph.component, graph.n_components)
        return cls(problem, Multigrid(graph.edges, gram, spectrum), W)

    def step(self, smoothing: float, rtol: float) -> int:
        """One Newton step; returns the CG iterations spent."""
        p = self.problem
        before = self._loss + self._smooth(self.W, smoothing)
        self.multigrid.update(self.w)
        solved = self._solve(rtol)
        self.W = self._descend(solved.x, before, smoothing)
        self.open_slack, self.slack, self.mismatch = edge_kernels.dual_step(
            p.head, p.tail, p.radius, self.w, self.v, solved.x, self.W, smoothing, FUSED * smoothing,
            self.u, p.lanes,
        )  # fmt: skip
        return solved.iterations

    def _smooth(self, W: FloatArray, smoothing: float) -> float:
        """Evaluate v and w around W; returns the smoothed penalty."""
        p = self.problem
        penalty: float = edge_kernels.smooth_edges(
            p.head, p.tail, W, p.radius, smoothing, self.v, self.w, p.lanes
        )
        return penalty

    def _descend(self, dW: FloatArray, before: float, smoothing: float) -> FloatArray:
        """W + dW, the step halved while it overshoots."""
        p, length = self.problem, 1.0
        for _ in range(_MOST_HALVINGS):
            W = self.W + length * dW
            penalty = edge_kernels.smoothed_penalty(p.head, p.tail, W, p.radius, smoothing, p.lanes)
            self._loss, self._gradient = p.loss_around(W)
            if self._loss + penalty <= self.overshoot * before:
                break
            length *= 0.5
        return W

    def objective(self) -> float:
        """J(W)."""
        return self._loss + self.problem.penalty(self.W)

    def flows(self) -> FloatArray:
        """U = r u, (E, P)."""
        return self.problem.radius[:, None] * self.u

    def _solve(self, rtol: float) -> CGResult:
        p = self.problem
        rhs = -self._gradient
        edge_kernels.subtract_scaled_divergence(p.head, p.tail, p.radius, self.v, rhs, p.lanes)
        return flexible_cg(
            self._apply, self.multigrid.precondition, rhs, rtol=rtol, max_iterations=MOST_ITERATIONS
        )

    def _apply(self, x: FloatArray) -> FloatArray:
        p, out = self.problem, self.multigrid.apply(x)
        edge_kernels.subtract_curvature(p.head, p.tail, self.w, self.u, self.v, x, out, p.lanes)
        return out
