"""Minimise loss plus a penalty with a proximal step by the accelerated proximal gradient method.

Beck & Teboulle (SIAM J. Imaging Sci. 2, 2009), restarted where momentum points uphill (O'Donoghue & Candès,
Found. Comput. Math. 15, 2015). It stops by a proof: with r = y − X W and any s, θ = s r gives the lower bound
s yᵀr − s²/2 ‖r‖² − R*(s Xᵀr) (Fenchel's dual), in which all terms are known from the statistics.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from ccmtl_core.base.types import FloatArray
from ccmtl_core.methods.estimator import Solution, loss
from ccmtl_core.statistics.inputs import Statistics

_STEPS_PER_CHECK = 10
_NOTHING = 1e-13  # of yᵀy: a gap that rounding hides


class Penalty(ABC):
    """R of variables Z, of which the weights W are the sum over the first axis: W itself, or parts of W."""

    n_parts = 1

    @abstractmethod
    def value(self, Z: FloatArray) -> float:
        """R(Z)."""

    @abstractmethod
    def proximal(self, Z: FloatArray, step: float) -> FloatArray:
        """The minimiser V of step · R(V) + 1/2 ‖V − Z‖²."""

    @abstractmethod
    def lower_bound(self, A: FloatArray, rr: float, yr: float) -> float:
        """The largest s yᵀr − s²/2 ‖r‖² − R*(s A) over s, with A = Xᵀr (T, P), rr = ‖r‖² and yr = yᵀr."""


class NormPenalty(Penalty):
    """R is a norm, whose dual norm says how far θ may be scaled."""

    @abstractmethod
    def dual_norm(self, A: FloatArray) -> float:
        """The largest ⟨A, W⟩ over R(W) ≤ 1."""

    def lower_bound(self, A: FloatArray, rr: float, yr: float) -> float:
        """As :meth:`Penalty.lower_bound`: R* is zero as long as s · dual norm ≤ 1, and infinite beyond."""
        size = self.dual_norm(A)
        s = yr / rr if rr > 0.0 else 0.0
        if size > 0.0:
            s = float(np.clip(s, -1.0 / size, 1.0 / size))
        return s * yr - 0.5 * s * s * rr


def minimise(
    statistics: Statistics, penalty: Penalty, start: FloatArray | None, tol: float, max_iter: int
) -> Solution:
    """Minimise 1/2 Σ_t ‖X_t W_t − y_t‖² + R(Z), W the sum of the parts Z.

    Parameters
    ----------
    statistics : Statistics
        T tasks with P features.
    penalty : Penalty
        R.
    start : (T, P) float64, optional
        Where to begin, by default at zero; the first part takes it.
    tol : float
        The proved gap (objective − lower bound) / objective at which to stop.
    max_iter : int
        Steps at most.

    Returns
    -------
    Solution
        The best weights that were checked; ``converged`` where the gap is proved.
    """
    quadratic = statistics.quadratic
    curvature = penalty.n_parts * float(np.linalg.eigvalsh(quadratic.gram)[:, -1].max())
    Z = np.zeros((penalty.n_parts, *quadratic.xty.shape))
    if start is not None:
        Z[0] = start
    step = 1.0 / curvature if curvature > 0.0 else 1.0
    ahead, t, best = Z, 1.0, Solution(Z.sum(axis=0), np.inf, 0, False)
    for iteration in range(max_iter + 1):
        if iteration % _STEPS_PER_CHECK == 0 or iteration == max_iter:
            objective, gap = _gap(statistics, penalty, Z)
            done = gap <= max(tol * objective, _NOTHING * statistics.total_yty)
            if objective < best.objective or done:
                best = Solution(Z.sum(axis=0), objective, iteration, done)
            if done or iteration == max_iter:
                break
        gradient = quadratic.loss.gradient(ahead.sum(axis=0))
        new = penalty.proximal(ahead - step * gradient, step)
        if np.vdot(ahead - new, new - Z) > 0.0:
            t = 1.0
        t_new = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
        ahead = new + ((t - 1.0) / t_new) * (new - Z)
        Z, t = new, t_new
    return best._replace(n_iter=iteration)


def _gap(statistics: Statistics, penalty: Penalty, Z: FloatArray) -> tuple[float, float]:
    """The objective, and how far it can be above the optimum."""
    W = Z.sum(axis=0)
    half_rr = loss(statistics, W)
    objective = half_rr + penalty.value(Z)
    yr = statistics.total_yty - float(np.vdot(statistics.xty, W))
    bound = penalty.lower_bound(-statistics.quadratic.loss.gradient(W), 2.0 * half_rr, yr)
    return objective, objective - bound


def singular(W: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Singular values of W (T, P), falling, and its right singular vectors (P, P), in T P² operations."""
    values, V = np.linalg.eigh(W.T @ W)
    return np.sqrt(np.maximum(values[::-1], 0.0)), V[:, ::-1]


def with_singular(W: FloatArray, factors: FloatArray, V: FloatArray) -> FloatArray:
    """W with the singular values of its right singular vectors V multiplied by ``factors``."""
    changed: FloatArray = W @ ((V * factors) @ V.T)
    return changed


def shrunk(lengths: FloatArray, by: float) -> FloatArray:
    """Factors that shorten lengths by so much, at most to zero."""
    return np.maximum(1.0 - by / np.maximum(lengths, np.finfo(float).tiny), 0.0)
