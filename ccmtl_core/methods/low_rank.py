"""Methods whose tasks share features or a subspace: L21, Trace and RMTL."""

from __future__ import annotations

import numpy as np

from ccmtl_core.base.types import FloatArray
from ccmtl_core.methods.estimator import Solution, TaskRegressor, loss
from ccmtl_core.methods.proximal import NormPenalty, minimise, shrunk, singular, with_singular
from ccmtl_core.statistics.inputs import Statistics


class L21(TaskRegressor):
    """Few features, the same for all tasks.

        1/2 Σ_t ‖X_t w_t − y_t‖² + ρ Σ_p ‖W_{·p}‖₂
                            (Argyriou, Evgeniou & Pontil, NIPS 2007; Liu, Ji & Ye, UAI 2009)

    Alternating directions (:mod:`ccmtl_core.methods.proximal`), until the proved relative gap is ``tol``. At
    ρ = 0 each task alone, from ρ = max_p ‖c_{·p}‖ on zero, with c_t = X_tᵀy_t.

    Parameters
    ----------
    strength : float
        ρ ≥ 0.
    tol : float
        (objective − lower bound) / objective at which to stop.
    max_iter : int
        Steps at most.

    Examples
    --------
    >>> L21(strength=1.0).fit([[1.0, 0.0], [0.0, 1.0]], [3.0, 0.5]).coef_.round(3)
    array([[2., 0.]])
    """

    def __init__(self, strength: float = 1.0, tol: float = 1e-6, max_iter: int = 5000) -> None:
        self.strength = strength
        self.tol = tol
        self.max_iter = max_iter

    def _solve(self, statistics: Statistics, start: FloatArray | None) -> Solution:
        if self.strength == 0.0:
            return _alone(statistics)
        return minimise(statistics, _SharedFeatures(self.strength), start, self.tol, self.max_iter)


class Trace(TaskRegressor):
    """Weights of low rank.

        1/2 Σ_t ‖X_t w_t − y_t‖² + ρ ‖W‖_*                              (Ji & Ye, ICML 2009)

    Alternating directions, each step of which thresholds the singular values exactly, until the proved
    relative gap is ``tol``. At ρ = 0 each task alone, from ρ = ‖(c_t)‖₂ on zero, with c_t = X_tᵀy_t.

    Parameters
    ----------
    strength : float
        ρ ≥ 0.
    tol, max_iter
        As in :class:`L21`.

    Examples
    --------
    >>> Trace(strength=1.0).fit([[1.0], [1.0]], [3.0, 4.0], ["a", "b"]).coef_.ravel().round(3)
    array([2.4, 3.2])
    """

    def __init__(self, strength: float = 1.0, tol: float = 1e-6, max_iter: int = 5000) -> None:
        self.strength = strength
        self.tol = tol
        self.max_iter = max_iter

    def _solve(self, statistics: Statistics, start: FloatArray | None) -> Solution:
        if self.strength == 0.0:
            return _alone(statistics)
        return minimise(statistics, _LowRank(self.strength), start, self.tol, self.max_iter)


class RMTL(TaskRegressor):
    """Weights of low rank, and outlier tasks that are free of it: W = L + S.

        1/2 Σ_t ‖X_t w_t − y_t‖² + ρ₁ ‖L‖_* + ρ₂ Σ_t ‖S_t‖₂           (Chen, Zhou & Ye, KDD 2011)

    Alternating directions of the loss, L and S, until the proved relative gap is ``tol``. Where either
    strength is 0 each task alone; where both are enormous zero.

    Parameters
    ----------
    rank_strength, outlier_strength : float
        ρ₁ and ρ₂ ≥ 0.
    tol, max_iter
        As in :class:`L21`.

    Examples
    --------
    >>> RMTL(1.0, 100.0).fit([[1.0], [1.0]], [3.0, 4.0], ["a", "b"]).coef_.ravel().round(2)
    array([2.4, 3.2])
    """

    def __init__(
        self,
        rank_strength: float = 1.0,
        outlier_strength: float = 1.0,
        tol: float = 1e-6,
        max_iter: int = 5000,
    ) -> None:
        self.rank_strength = rank_strength
        self.outlier_strength = outlier_strength
        self.tol = tol
        self.max_iter = max_iter

    def _solve(self, statistics: Statistics, start: FloatArray | None) -> Solution:
        if self.rank_strength == 0.0 or self.outlier_strength == 0.0:
            return _alone(statistics)
        penalty = _LowRankAndOutliers(self.rank_strength, self.outlier_strength)
        return minimise(statistics, penalty, start, self.tol, self.max_iter)


def _alone(statistics: Statistics) -> Solution:
    W = statistics.least_squares.weights.copy()
    return Solution(W, loss(statistics, W), 1, True)


class _SharedFeatures(NormPenalty):
    """ρ Σ_p ‖W_{·p}‖₂."""

    def __init__(self, strength: float) -> None:
        self._strength = strength

    def value(self, Z: FloatArray) -> float:
        return self._strength * float(np.linalg.norm(Z[0], axis=0).sum())

    def proximal(self, Z: FloatArray, step: float) -> FloatArray:
        return Z * shrunk(np.linalg.norm(Z[0], axis=0), step * self._strength)

    def dual_norm(self, A: FloatArray) -> float:
        return float(np.linalg.norm(A, axis=0).max()) / self._strength


class _LowRank(NormPenalty):
    """ρ ‖W‖_*."""

    def __init__(self, strength: float) -> None:
        self._strength = strength

    def value(self, Z: FloatArray) -> float:
        return self._strength * float(np.linalg.svd(Z[0], compute_uv=False).sum())

    def proximal(self, Z: FloatArray, step: float) -> FloatArray:
        values, V = singular(Z[0])
        return with_singular(Z[0], shrunk(values, step * self._strength), V)[None]

    def dual_norm(self, A: FloatArray) -> float:
        return float(singular(A)[0][0]) / self._strength


class _LowRankAndOutliers(NormPenalty):
    """ρ₁ ‖Z_0‖_* + ρ₂ Σ_t ‖Z_1t‖₂, as a norm of Z_0 + Z_1."""

    n_parts = 2

    def __init__(self, rank_strength: float, outlier_strength: float) -> None:
        self._low_rank, self._strength = _LowRank(rank_strength), outlier_strength

    def value(self, Z: FloatArray) -> float:
        return self._low_rank.value(Z[:1]) + self._strength * float(np.linalg.norm(Z[1], axis=1).sum())

    def proximal(self, Z: FloatArray, step: float) -> FloatArray:
        lengths = np.linalg.norm(Z[1], axis=1)
        rows = Z[1] * shrunk(lengths, step * self._strength)[:, None]
        return np.stack([self._low_rank.proximal(Z[:1], step)[0], rows])

    def dual_norm(self, A: FloatArray) -> float:
        rows = float(np.linalg.norm(A, axis=1).max()) / self._strength
        return max(self._low_rank.dual_norm(A), rows)
