"""Methods that factorise the weights over clusters of features and of tasks: BiFactor and TriFactor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ccmtl_core.base.types import FloatArray
from ccmtl_core.methods.estimator import Solution, TaskRegressor, loss
from ccmtl_core.statistics.inputs import Statistics

_SMALL = 1e-8  # of a factor's largest singular value: directions below count as so long


@dataclass(frozen=True, eq=False)
class Factors:
    """F (P, K), S (K, L) or None for the identity, and H (T, L): the weights are W = H Sᵀ Fᵀ."""

    F: FloatArray
    S: FloatArray | None
    H: FloatArray

    @property
    def mixed(self) -> FloatArray:
        """H Sᵀ, (T, K): what each task makes of the clusters of features."""
        return self.H if self.S is None else self.H @ self.S.T

    @property
    def basis(self) -> FloatArray:
        """F S, (P, L): the weights of each cluster of tasks."""
        return self.F if self.S is None else self.F @ self.S

    @property
    def weights(self) -> FloatArray:
        """W (T, P)."""
        return self.mixed @ self.F.T


class BiFactor(TaskRegressor):
    """Weights in K latent groups of features and tasks, W = H Fᵀ.

        1/2 Σ_t ‖X_t F h_t − y_t‖² + ρ₁/2 tr(Fᵀ Σ⁻¹ F) + ρ₂/2 tr(Hᵀ Ω⁻¹ H),
        over F (P, K), H (T, K), Σ and Ω ⪰ 0 of trace 1
                            (Murugesan, Carbonell & Yang, Co-clustering for multitask learning, 2017)

    The best Σ turns its term into ‖F‖_*², and so does the best Φ (K, K) of tr(F Φ⁻¹ Fᵀ): with Φ in place of
    Σ and Ω the minimum is the same, and no T × T matrix is made. F, H and each Φ in turn have exact steps, so
    that the objective never rises; it stops where a round lowers it by less than ``tol`` of itself. The
    problem is not convex: the result is a local optimum, found from the singular vectors of least squares.

    Parameters
    ----------
    feature_strength, task_strength : float
        ρ₁ and ρ₂ ≥ 0.
    n_clusters : int
        K; of fewer tasks or features than K, their number.
    tol : float
        As above.
    max_iter : int
        Rounds at most.

    Attributes
    ----------
    factors_ : Factors
        F and H, of which the weights are made.

    Examples
    --------
    >>> BiFactor(0.0, 0.0, 1).fit([[1.0], [1.0]], [3.0, 4.0], ["a", "b"]).coef_.ravel().round(3)
    array([3., 4.])
    """

    def __init__(
        self,
        feature_strength: float = 1.0,
        task_strength: float = 1.0,
        n_clusters: int = 3,
        tol: float = 1e-7,
        max_iter: int = 500,
    ) -> None:
        self.feature_strength = feature_strength
        self.task_strength = task_strength
        self.n_clusters = n_clusters
        self.tol = tol
        self.max_iter = max_iter

    def _solve(self, statistics: Statistics, start: FloatArray | None) -> Solution:
        K = min(self.n_clusters, *statistics.xty.shape)
        U, values, V = _start(statistics, start)
        first = Factors(V[:, :K], None, U[:, :K] * values[:K])
        strengths = self.feature_strength, self.task_strength, 0.0
        found, self.factors_ = _alternate(statistics, first, strengths, self.tol, self.max_iter)
        return found


class TriFactor(TaskRegressor):
    """Weights in K clusters of features and L clusters of tasks, W = H Sᵀ Fᵀ.

        1/2 Σ_t ‖X_t F S h_t − y_t‖² + ρ₁/2 tr(Fᵀ Σ⁻¹ F) + ρ₂/2 tr(Hᵀ Ω⁻¹ H) + ρ₃/2 ‖S‖_F²,
        over F (P, K), S (K, L), H (T, L), Σ and Ω ⪰ 0 of trace 1
                            (Murugesan, Carbonell & Yang, Co-clustering for multitask learning, 2017)

    Solved as :class:`BiFactor`, with an exact step of S in each round. Without ρ₃ the other penalties would
    be without effect, as F and H could shrink while S grows; 0.1 is what the authors' code has.

    Parameters
    ----------
    feature_strength, task_strength : float
        ρ₁ and ρ₂ ≥ 0.
    n_feature_clusters, n_task_clusters : int
        K and L; at most the numbers of features and tasks.
    core_strength : float
        ρ₃ ≥ 0.
    tol, max_iter
        As in :class:`BiFactor`.

    Attributes
    ----------
    factors_ : Factors
        F, S and H, of which the weights are made.

    Examples
    --------
    >>> model = TriFactor(0.0, 0.0, 1, 1, core_strength=0.0)
    >>> model.fit([[1.0], [1.0]], [3.0, 4.0], ["a", "b"]).coef_.ravel().round(3)
    array([3., 4.])
    """

    def __init__(
        self,
        feature_strength: float = 1.0,
        task_strength: float = 1.0,
        n_feature_clusters: int = 3,
        n_task_clusters: int = 3,
        core_strength: float = 0.1,
        tol: float = 1e-7,
        max_iter: int = 500,
    ) -> None:
        self.feature_strength = feature_strength
        self.task_strength = task_strength
        self.n_feature_clusters = n_feature_clusters
        self.n_task_clusters = n_task_clusters
        self.core_strength = core_strength
        self.tol = tol
        self.max_iter = max_iter

    def _solve(self, statistics: Statistics, start: FloatArray | None) -> Solution:
        most = min(statistics.xty.shape)
        K, L = min(self.n_feature_clusters, most), min(self.n_task_clusters, most)
        U, values, V = _start(statistics, start)
        first = Factors(V[:, :K], np.eye(K, L), U[:, :L] * values[:L])
        strengths = self.feature_strength, self.task_strength, self.core_strength
        found, self.factors_ = _alternate(statistics, first, strengths, self.tol, self.max_iter)
        return found


def _start(statistics: Statistics, start: FloatArray | None) -> tuple[FloatArray, FloatArray, FloatArray]:
    W = statistics.least_squares.weights if start is None else start
    U, values, rows = np.linalg.svd(W, full_matrices=False)
    return U, values, rows.T


def objective_of(statistics: Statistics, factors: Factors, strengths: tuple[float, float, float]) -> float:
    """The loss of F, S and H with their penalties of strengths ρ₁, ρ₂ and ρ₃, at the best Σ and Ω."""
    of_features, of_tasks, of_core = strengths
    nuclear = [float(np.linalg.svd(A, compute_uv=False).sum()) for A in (factors.F, factors.H)]
    penalty = of_features * nuclear[0] ** 2 + of_tasks * nuclear[1] ** 2
    if factors.S is not None:
        penalty += of_core * float(np.vdot(factors.S, factors.S))
    return loss(statistics, factors.weights) + 0.5 * penalty


def _alternate(
    statistics: Statistics,
    factors: Factors,
    strengths: tuple[float, float, float],
    tol: float,
    max_iter: int,
) -> tuple[Solution, Factors]:
    G, c = np.asarray(statistics.gram), np.asarray(statistics.xty)
    of_features, of_tasks, of_core = strengths
    value, settled = objective_of(statistics, factors, strengths), False
    iteration = 0
    while iteration < max_iter and not settled:
        iteration += 1
        H = _task_step(G, c, factors.basis, of_tasks * _inverse_root(factors.H))
        factors = Factors(factors.F, factors.S, H)
        if factors.S is not None:
            projected, target = factors.F.T @ G @ factors.F, c @ factors.F
            core = _shared_step(projected, target, H, of_core * np.eye(H.shape[1]))
            factors = Factors(factors.F, core, H)
        F = _shared_step(G, c, factors.mixed, of_features * _inverse_root(factors.F))
        factors = Factors(F, factors.S, H)
        before, value = value, objective_of(statistics, factors, strengths)
        settled = before - value <= tol * value
    return Solution(factors.weights, value, iteration, settled), factors


def _task_step(G: FloatArray, c: FloatArray, basis: FloatArray, ridge: FloatArray) -> FloatArray:
    """H (T, L) that minimises the loss of W = H basisᵀ and 1/2 tr(H ridge Hᵀ)."""
    blocks = basis.T @ G @ basis + ridge
    H: FloatArray = np.matmul(_inverse(blocks), (c @ basis)[:, :, None])[:, :, 0]
    return H


def _shared_step(G: FloatArray, c: FloatArray, H: FloatArray, ridge: FloatArray) -> FloatArray:
    """F (P, K) that minimises the loss of W = H Fᵀ and 1/2 tr(F ridge Fᵀ): one system of P · K unknowns."""
    T, P = c.shape
    K = H.shape[1]
    pairs = (H[:, :, None] * H[:, None, :]).reshape(T, K * K)
    system = (pairs.T @ G.reshape(T, P * P)).reshape(K, K, P, P).transpose(2, 0, 3, 1)
    system = system + np.eye(P)[:, None, :, None] * ridge[None, :, None, :]
    inverse = _inverse(system.reshape(1, P * K, P * K))[0]
    F: FloatArray = (inverse @ (c.T @ H).ravel()).reshape(P, K)
    return F


def _inverse(A: FloatArray) -> FloatArray:
    """Inverse of symmetric blocks (n, K, K) on their range."""
    return np.asarray(np.linalg.pinv(A, rcond=1e-13, hermitian=True), dtype=np.float64)


def _inverse_root(A: FloatArray) -> FloatArray:
    """Φ⁻¹ (K, K) = ‖A‖_* (AᵀA)^(−1/2), with which tr(A Φ⁻¹ Aᵀ) = ‖A‖_*²."""
    values, V = np.linalg.eigh(A.T @ A)
    lengths = np.sqrt(np.maximum(values, 0.0))
    if lengths[-1] == 0.0:
        return np.eye(len(V))
    lengths = np.maximum(lengths, _SMALL * lengths[-1])
    return np.asarray(lengths.sum() * (V / lengths) @ V.T, dtype=np.float64)
