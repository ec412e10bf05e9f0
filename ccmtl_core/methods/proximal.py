"""Minimise loss plus a penalty that has a proximal step, by the alternating direction method of multipliers.

The loss and the penalty see copies of the weights that are drawn together (Boyd et al., Found. Trends Mach.
Learn. 3, 2011: over-relaxed, section 3.4.3, with the strength of the drawing balanced by the relative
residuals, section 3.4.1). The step of the loss is exact, one P × P system for each task. That counts where
features have unlike scales, as in real data: a method of gradient steps then needs thousands. It stops by a
proof: with r = y − X W and any s, θ = s r gives the lower bound s yᵀr − s²/2 ‖r‖² − R*(s Xᵀr) (Fenchel's
dual), in which all terms are known from the statistics.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from ccmtl_core.base.types import FloatArray
from ccmtl_core.methods.estimator import Solution, loss
from ccmtl_core.statistics.inputs import Statistics

_STEPS_PER_CHECK = 10
_NOTHING = 1e-13  # of a sum: what rounding hides
_RELAXED = 1.6
_UNBALANCED = 3.0  # ratio of the relative residuals from which the strength of the drawing is changed
_LARGEST_CHANGE = 10.0


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
    run = _Drawing(statistics, penalty, start)
    nothing = _NOTHING * statistics.total_yty
    best, next_change = Solution(run.W, np.inf, 0, False), 2 * _STEPS_PER_CHECK
    bound = _lower_bound(statistics, penalty, statistics.least_squares.weights)
    for taken in range(1, max_iter + 1):
        ratio = run.step()
        if taken % _STEPS_PER_CHECK and taken < max_iter:
            continue
        objective = loss(statistics, run.Z.sum(axis=0)) + penalty.value(run.Z)
        bound = max(bound, _lower_bound(statistics, penalty, run.W))
        done = objective - bound <= max(tol * objective, nothing)
        if done or objective < best.objective:
            best = Solution(run.Z.sum(axis=0), objective, taken, done)
        if done:
            break
        if taken >= next_change and not 1.0 / _UNBALANCED <= ratio <= _UNBALANCED:
            run.draw(run.strength * float(np.clip(np.sqrt(ratio), 1.0 / _LARGEST_CHANGE, _LARGEST_CHANGE)))
            next_change = taken + max(2 * _STEPS_PER_CHECK, taken // 4)  # ever rarer, so that it converges
    return best._replace(n_iter=taken)


class _Drawing:
    """State of one run: weights W of the loss, parts Z (m, T, P) of the penalty, scaled multipliers U."""

    def __init__(self, statistics: Statistics, penalty: Penalty, start: FloatArray | None) -> None:
        self._gram, self._xty = np.asarray(statistics.gram), np.asarray(statistics.xty)
        self._penalty = penalty
        self.Z = np.zeros((penalty.n_parts, *self._xty.shape))
        if start is not None:
            self.Z[0] = start
        self.W, self._U = self.Z.sum(axis=0), np.zeros_like(self.Z)
        curvature = np.trace(self._gram, axis1=1, axis2=2) / self._xty.shape[1]
        natural = float(np.median(curvature[curvature > 0.0])) if curvature.any() else 1.0
        self.strength = natural
        self.draw(natural)

    def draw(self, strength: float) -> None:
        """Change the strength with which the copies are drawn together."""
        self._U *= self.strength / strength
        self.strength = strength
        shared = strength / self._penalty.n_parts * np.eye(self._xty.shape[1])
        self._inverse = np.linalg.inv(self._gram + shared)

    def step(self) -> float:
        """Take a step; return the relative primal over the relative dual residual."""
        m, before = self._penalty.n_parts, self.Z
        wanted = before - self._U
        total = wanted.sum(axis=0)
        target = self._xty + (self.strength / m) * total
        self.W = np.matmul(self._inverse, target[:, :, None])[:, :, 0]
        copies = wanted + (self.W - total) / m
        ahead = _RELAXED * copies + (1.0 - _RELAXED) * before + self._U
        self.Z = self._penalty.proximal(ahead, 1.0 / self.strength)
        self._U = ahead - self.Z
        sizes = [float(np.linalg.norm(A)) for A in (copies - self.Z, self.Z - before, self.Z, self._U)]
        least = max(_NOTHING * max(sizes), np.finfo(float).tiny)
        primal, dual, of_parts, of_forces = np.maximum(sizes, least)
        return float(primal / of_parts * (of_forces / dual))


def _lower_bound(statistics: Statistics, penalty: Penalty, W: FloatArray) -> float:
    """Return a lower bound on the objective of any weights, from the residuals of W."""
    yr = statistics.total_yty - float(np.vdot(statistics.xty, W))
    force = -statistics.quadratic.loss.gradient(W)
    return penalty.lower_bound(force, 2.0 * loss(statistics, W), yr)


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
    kept = np.maximum(lengths - by, 0.0)
    return kept / np.where(kept > 0.0, lengths, 1.0)
