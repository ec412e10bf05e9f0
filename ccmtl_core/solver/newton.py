"""Start weights in, certified weights out: primal-dual Newton on the smoothed objective.

The penalty is smoothed to r √(‖d‖² + ε²) and ε lowered from round to round. Writing u for the scaled dual
variable of an edge, optimality reads G W − c + Dᵀ(r u) = 0 and s u = d with s = √(‖d‖² + ε²). Newton's
method on this pair, instead of on W alone, is what makes large steps safe (Chan, Golub & Mulet, SIAM J.
Sci. Comput. 20, 1999, there for total variation). Eliminating du leaves

    (G + Dᵀ w [I − (u v ᵀ + v uᵀ)/2] D) dW = c − G W − Dᵀ(r v),     v = d/s,  w = r/s,

whose majoriser G + Dᵀ w D is the alternation's system (He et al., AAAI 2019, equation 6): its multigrid
cycle preconditions this one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ccmtl_core._types import FloatArray
from ccmtl_core.objective import FusionProblem, row_norms
from ccmtl_core.solver import kernels
from ccmtl_core.solver.cg import CGResult, flexible_cg
from ccmtl_core.solver.multigrid import Multigrid


@dataclass(frozen=True, eq=False)
class EdgeState:
    """The smoothed penalty around one W: d, ‖d‖, v = d/s and w = r/s on each edge."""

    D: FloatArray
    norms: FloatArray
    v: FloatArray
    w: FloatArray

    @classmethod
    def at(cls, problem: FusionProblem, W: FloatArray, smoothing: float) -> EdgeState:
        """Evaluate it."""
        D = problem.differences(W)
        norms = row_norms(D)
        s = np.sqrt(norms**2 + smoothing**2)
        return cls(D, norms, D / s[:, None], problem.radius / s)


class NewtonStep:
    """The Newton system of one round."""

    def __init__(
        self, problem: FusionProblem, multigrid: Multigrid, W: FloatArray, u: FloatArray, smoothing: float
    ) -> None:
        self.problem, self.multigrid, self.W, self.u, self.smoothing = problem, multigrid, W, u, smoothing
        self.edges = EdgeState.at(problem, W, smoothing)
        multigrid.update(self.edges.w)

    def solve(self, rtol: float, max_iterations: int) -> CGResult:
        """The step dW, by preconditioned flexible conjugate gradients."""
        p = self.problem
        rhs = -p.loss_gradient(self.W) - p.divergence(p.radius[:, None] * self.edges.v)
        return flexible_cg(
            self._apply, self.multigrid.precondition, rhs, rtol=rtol, max_iterations=max_iterations
        )

    def _apply(self, x: FloatArray) -> FloatArray:
        p, out = self.problem, self.multigrid.apply(x)
        kernels.subtract_curvature(p.head, p.tail, self.edges.w, self.u, self.edges.v, x, out, p.dims)
        return out

    def length(self, dW: FloatArray, dD: FloatArray) -> float:
        """Step length: 1, halved until the smoothed objective falls enough (Armijo)."""
        p = self.problem
        slope_loss = float(np.vdot(p.loss_gradient(self.W), dW))
        curvature = float(np.vdot(np.matmul(p.statistics.gram, dW[:, :, None])[:, :, 0], dW))
        a = self.edges.norms**2 + self.smoothing**2
        b = np.einsum("ep,ep->e", self.edges.D, dD)
        c = np.einsum("ep,ep->e", dD, dD)
        s = np.sqrt(a)
        slope = slope_loss + float(p.radius @ (b / s))
        step = 1.0
        while step > 1e-6:
            longer = np.sqrt(np.maximum(a + step * (2.0 * b + step * c), 0.0))
            # (longer − s) without cancellation
            change = step * (2.0 * b + step * c) / (longer + s)
            gain = step * slope_loss + 0.5 * step**2 * curvature + float(p.radius @ change)
            if gain <= 1e-4 * step * slope:
                break
            step *= 0.5
        return step

    def dual(self, dD: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The next u, within the unit balls, and the flows that balance the linear system."""
        u, v = self.u, self.edges.v
        s = self.problem.radius / self.edges.w if self.problem.fusion_strength else np.ones(len(u))
        along_v = np.einsum("ep,ep->e", v, dD)[:, None]
        along_u = np.einsum("ep,ep->e", u, dD)[:, None]
        du = v + (dD - along_v * u) / s[:, None]
        du /= np.maximum(row_norms(du), 1.0)[:, None]
        flows = v + (dD - 0.5 * (along_v * u + along_u * v)) / s[:, None]
        return du, self.problem.radius[:, None] * flows
