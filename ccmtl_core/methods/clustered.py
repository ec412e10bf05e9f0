"""Clustered multi-task learning: a convex relaxation of k-means on the tasks' weights (CMTL)."""

from __future__ import annotations

import numpy as np

from ccmtl_core.base.exceptions import ParameterError
from ccmtl_core.base.types import FloatArray
from ccmtl_core.methods.estimator import Solution, TaskRegressor
from ccmtl_core.methods.proximal import Penalty, minimise, singular, with_singular
from ccmtl_core.statistics.inputs import Statistics


class CMTL(TaskRegressor):
    """Tasks in k clusters, relaxed to a convex problem.

        1/2 Σ_t ‖X_t w_t − y_t‖² + ρ₁ η (1 + η) tr(Wᵀ (η I + M)⁻¹ W),     η = ρ₂ / ρ₁,
        over W and M (T, T) with tr M = k and 0 ⪯ M ⪯ I
                            (Jacob, Bach & Vert, NIPS 2008; Zhou, Chen & Ye, NIPS 2011)

    The best M has the singular vectors of W, so that what is left of the penalty is a function of the
    singular values of W alone, Σ σ_i² / (η + m_i) at the best m, and no T × T matrix is made (as for the
    k-support norm: McDonald, Pontil & Stamos, JMLR 17, 2016). Its proximal step is exact.
    Alternating directions, until the proved relative gap is ``tol``. Enormous strengths give zero; with k of
    at least min(T, P) the penalty is the ridge ρ₂ ‖W‖².

    Parameters
    ----------
    cluster_strength, ridge : float
        ρ₁ and ρ₂, both above 0.
    n_clusters : int
        k; of fewer tasks than k, their number.
    tol, max_iter
        As in :class:`ccmtl_core.methods.L21`.

    Examples
    --------
    >>> CMTL(1.0, 0.5, n_clusters=1).fit([[1.0], [1.0]], [3.0, 4.0], ["a", "b"]).coef_.ravel().round(3)
    array([1.5, 2. ])
    """

    def __init__(
        self,
        cluster_strength: float = 1.0,
        ridge: float = 1.0,
        n_clusters: int = 5,
        tol: float = 1e-6,
        max_iter: int = 5000,
    ) -> None:
        self.cluster_strength = cluster_strength
        self.ridge = ridge
        self.n_clusters = n_clusters
        self.tol = tol
        self.max_iter = max_iter

    def _solve(self, statistics: Statistics, start: FloatArray | None) -> Solution:
        if self.cluster_strength == 0.0 or self.ridge == 0.0:
            raise ParameterError("cluster_strength and ridge must be above 0; ITL has no penalty")
        k = min(self.n_clusters, statistics.n_tasks)
        penalty = _Clusters(self.cluster_strength, self.ridge / self.cluster_strength, k)
        return minimise(statistics, penalty, start, self.tol, self.max_iter)


class _Clusters(Penalty):
    """a Σ σ_i² / (η + m_i) at the best m in [0, 1] with Σ m_i = k, a = ρ₁ η (1 + η)."""

    def __init__(self, strength: float, eta: float, k: int) -> None:
        self._a, self._eta, self._k = strength * eta * (1.0 + eta), eta, k

    def value(self, Z: FloatArray) -> float:
        sizes = np.linalg.svd(Z[0], compute_uv=False)
        return self._a * float((sizes**2 / (self._eta + _shares(sizes, self._eta, self._k))).sum())

    def proximal(self, Z: FloatArray, step: float) -> FloatArray:
        sizes, V = singular(Z[0])
        added = 2.0 * step * self._a
        kept = self._eta + _shares(sizes, self._eta + added, self._k)
        return with_singular(Z[0], kept / (kept + added), V)[None]

    def lower_bound(self, A: FloatArray, rr: float, yr: float) -> float:
        squares = singular(A)[0] ** 2
        conjugate = (self._eta * squares.sum() + squares[: self._k].sum()) / (4.0 * self._a)
        size = rr + 2.0 * float(conjugate)
        return 0.5 * yr * yr / size if size > 0.0 else 0.0


def _shares(sizes: FloatArray, shift: float, k: int) -> FloatArray:
    """The m in [0, 1] with Σ m = k that minimises Σ sizes² / (shift + m): clip(α sizes − shift, 0, 1).

    Sizes that are zero take what others cannot; Σ m is piecewise linear in α, so that α is exact.
    """
    some = sizes > 1e-14 * sizes.max(initial=0.0)
    if some.sum() <= k:
        return np.ones_like(sizes)
    s = sizes[some]
    alphas = np.sort(np.r_[shift / s, (shift + 1.0) / s])
    sums = np.clip(alphas[:, None] * s - shift, 0.0, 1.0).sum(axis=1)
    shares = np.zeros_like(sizes)
    shares[some] = np.clip(np.interp(k, sums, alphas) * s - shift, 0.0, 1.0)
    return shares
