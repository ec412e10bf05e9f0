"""Alternating direction method of multipliers with the splitting of the network lasso.

Each end of each edge has a copy of its task's weights, so that a step needs P × P systems only, one for each
task (Hallac, Leskovec & Boyd, KDD 2015, section 3). Over-relaxed (Boyd et al., Found. Trends Mach. Learn. 3,
2011, section 3.4.3); the penalty of the copies is balanced by the relative residuals (section 3.4.1).
"""

from __future__ import annotations

import numpy as np

from ccmtl_core.base.types import FloatArray
from ccmtl_core.kernels.solver.splitting_kernel import block_step
from ccmtl_core.methods.estimator import Solution
from ccmtl_core.solver.objective import FusionProblem, row_norms

_STEPS_PER_CHECK = 10
_UNBALANCED = 5.0  # ratio of the relative residuals from which the penalty is changed
_LARGEST_CHANGE = 10.0
_FIRST_PENALTY = 10.0  # times the natural one
_MOST_MOVED = 1e10  # times the first penalty, or its inverse: beyond, rounding decides
_LEAST_FORCE = 1e-3  # of a bound on the multipliers: smaller ones count as so large in the balance
_NOTHING = 1e-13  # of yᵀy, a gap that rounding hides; of its scale, a residual


class BlockSplitting:
    """State of one run: copies z (E, 2, P) of the weights at the ends of edges, scaled multipliers u alike.

    Parameters
    ----------
    problem : FusionProblem
        Loss, graph and strength.
    by_entry : bool
        Penalise Σ_p |W_ip − W_jp| in place of ‖W_i − W_j‖₂.
    start : (T, P) float64, optional
        By default each task's least squares.
    """

    def __init__(
        self, problem: FusionProblem, *, by_entry: bool = False, start: FloatArray | None = None
    ) -> None:
        self._problem, self._by_entry = problem, by_entry
        self.W = (problem.quadratic.least_squares.weights if start is None else start).copy()
        self._z = np.stack([self.W[problem.head], self.W[problem.tail]], axis=1)
        self._u = np.zeros_like(self._z)
        self._penalty = 1.0
        forces = np.linalg.norm(problem.quadratic.xty), np.linalg.norm(problem.radius)
        self._least_force = _LEAST_FORCE * float(min(forces))

    def factorise(self, penalty: float) -> None:
        """Invert (G_t + penalty · degree_t I) for each task."""
        self._u *= self._penalty / penalty
        self._penalty = penalty
        P = self.W.shape[1]
        added = penalty * self._problem.graph.degree.astype(np.float64)
        self._inverse = np.linalg.inv(self._problem.quadratic.gram + added[:, None, None] * np.eye(P))

    def steps(self, count: int) -> float:
        """Take steps; return the relative primal over the relative dual residual."""
        p = self._problem
        for _ in range(count):
            sums = block_step(
                p.head, p.tail, p.radius, self._penalty, self._inverse, p.quadratic.xty, self._by_entry,
                self._z, self._u, self.W,
            )  # fmt: skip
        primal, primal_scale, dual, dual_scale = np.maximum(np.sqrt(sums), np.finfo(float).tiny)
        # Where the tasks' own least squares agree, multipliers vanish and give the dual residual no scale.
        dual_scale = max(dual_scale, self._least_force / self._penalty)
        return float(max(primal / primal_scale, _NOTHING) / max(dual / dual_scale, _NOTHING))

    def objective_and_gap(self) -> tuple[float, float]:
        """Objective of the weights, and how far it may be above the optimum.

        The multipliers are flows U on the edges, feasible as they are. With the force ρ = c − G W − DᵀU that
        they leave on the tasks, the gap is at most Σ (r ‖d‖ − U · d) + Σ_t ‖ρ_t‖ ‖W_t − W*_t‖; the distance
        to the optimum W* is taken to be no more than ‖W_t‖ + ‖least squares‖, which is no proof.
        """
        p, W = self._problem, self.W
        apart, flows = p.differences(W), self._penalty * self._u[:, 0]
        sizes = np.abs(apart).sum(axis=1) if self._by_entry else row_norms(apart)
        penalty = float(p.radius @ sizes)
        force = -p.loss_gradient(W) - p.divergence(flows)
        reach = row_norms(W) + row_norms(p.quadratic.least_squares.weights)
        return p.loss(W) + penalty, penalty - float(np.vdot(flows, apart)) + float(row_norms(force) @ reach)


def natural_penalty(problem: FusionProblem) -> float:
    """The median of (tr G_t / P) / degree: with it, copies weigh as much as the rows of a task."""
    gram = problem.quadratic.gram
    curvature = np.trace(gram, axis1=1, axis2=2) / gram.shape[1]
    natural = float(np.median(curvature / np.maximum(problem.graph.degree, 1)))
    return natural if natural > 0.0 else 1.0


def split(
    problem: FusionProblem, start: FloatArray | None, tol: float, max_iter: int, *, by_entry: bool = False
) -> Solution:
    """Minimise loss and fusion penalty until the estimated relative gap is ``tol``."""
    first = penalty = _FIRST_PENALTY * natural_penalty(problem)
    run = BlockSplitting(problem, by_entry=by_entry, start=start)
    run.factorise(penalty)
    best = Solution(run.W, np.inf, 0, False)
    nothing = _NOTHING * float(problem.quadratic.yty.sum())
    next_change = 2 * _STEPS_PER_CHECK
    for taken in range(_STEPS_PER_CHECK, max_iter + _STEPS_PER_CHECK, _STEPS_PER_CHECK):
        ratio = run.steps(_STEPS_PER_CHECK)
        objective, gap = run.objective_and_gap()
        done = min(gap, objective) <= max(tol * objective, nothing)  # no optimum is below zero
        if done or objective < best.objective:
            best = Solution(run.W.copy(), objective, taken, done)
        if done:
            break
        if taken >= next_change and not 1.0 / _UNBALANCED <= ratio <= _UNBALANCED:
            penalty *= float(np.clip(np.sqrt(ratio), 1.0 / _LARGEST_CHANGE, _LARGEST_CHANGE))
            penalty = float(np.clip(penalty, first / _MOST_MOVED, first * _MOST_MOVED))
            run.factorise(penalty)
            next_change = taken + max(2 * _STEPS_PER_CHECK, taken // 4)  # ever rarer, so that it converges
    return best._replace(n_iter=taken)
