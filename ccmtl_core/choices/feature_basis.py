"""Other features of the same rows: without what is a mixture of the rest, and in the basis of a metric.

With w = B z the products X w and (X B) z are the same, and for a square B the Euclidean ‖z_i − z_j‖ is
‖B⁻¹(w_i − w_j)‖: fusing in a metric of one's own is fusing other features.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.linalg import qr, solve_triangular

from ccmtl_core.base.arrays import locked, read_only
from ccmtl_core.base.types import EPS, FloatArray
from ccmtl_core.kernels.block_products import times
from ccmtl_core.kernels.statistics.basis_kernels import times_rows
from ccmtl_core.statistics.inputs import Statistics
from ccmtl_core.statistics.least_squares import (
    SURE,
    LeastSquares,
    batches,
    lengths_or_one,
    minimum_norm,
    task_blocks,
)
from ccmtl_core.statistics.sufficient_statistics import SufficientStatistics
from ccmtl_core.statistics.triangular_statistics import TriangularStatistics

_MOST_LEAK = 1e-6
"""Of a direction with data in one found to have none: more would be no sign of a mixture."""


def in_basis(statistics: Statistics, L: FloatArray) -> Statistics:
    """The statistics of the rows X L, in their form; without sums, which their solver does not need.

    Their least squares know what rounding has done to the given ones: another basis brings no digit back.

    Parameters
    ----------
    statistics : SufficientStatistics or TriangularStatistics
        T tasks with P features.
    L : (P, P) float64
        Upper triangular, of positive diagonal: a triangular factor stays one.

    Returns
    -------
    SufficientStatistics or TriangularStatistics
        In the form of the given ones.

    Examples
    --------
    >>> from ccmtl_core import TaskDataset
    >>> data = TaskDataset.from_arrays([[[1.0, 2.0]]], [[3.0]])
    >>> in_basis(SufficientStatistics.from_dataset(data), np.array([[1.0, 1.0], [0.0, 2.0]])).xty
    array([[ 3., 15.]])
    """
    names = statistics.n_samples, statistics.task_ids, statistics.feature_names
    new: Statistics
    if isinstance(statistics, TriangularStatistics):
        factor = statistics.factor.copy()
        np.matmul(statistics.factor[:, :, :-1], L, out=factor[:, :, :-1])
        new = TriangularStatistics(locked(factor), *names)
    else:
        gram = np.empty_like(statistics.gram)
        for some in task_blocks(*statistics.xty.shape):
            changed = np.matmul(L.T, np.matmul(statistics.gram[some], L))
            gram[some] = 0.5 * (changed + np.swapaxes(changed, 1, 2))
        new = SufficientStatistics(locked(gram), locked(statistics.xty @ L), statistics.yty, *names)
    # A column of X L that cancels is rounding, not to be scaled up to the length of the others.
    scale = np.sqrt(np.diagonal(statistics.gram, axis1=1, axis2=2)) @ np.abs(L)
    return _knowing(new, statistics.least_squares, L, scale)


def independent_features(fitted: Statistics, rows: Statistics) -> tuple[Statistics, FloatArray] | None:
    """Leave out features that are mixtures of the others in all rows of all tasks.

    Parameters
    ----------
    fitted : SufficientStatistics or TriangularStatistics
        Of P features, perhaps with the means taken out.
    rows : SufficientStatistics or TriangularStatistics
        Of the rows as they were before: rounding is relative to these.

    Returns
    -------
    statistics, B : SufficientStatistics, (P, K) float64
        Of K < P features, and the way back: B z are the weights of smallest norm that fit as z does. None
        where no feature is such a mixture up to rounding, or where some task's X or y might depend on what is
        left of it; and of triangular factors, which have digits to spare.

    Examples
    --------
    >>> from ccmtl_core import TaskDataset
    >>> data = TaskDataset.from_arrays([[[1.0, 2.0], [2.0, 4.0]]], [[3.0, 1.0]])
    >>> statistics = SufficientStatistics.from_dataset(data)
    >>> independent_features(statistics, statistics)[1].round(3)
    array([[0.4],
           [0.8]])
    """
    if isinstance(fitted, TriangularStatistics):
        return None
    P, alone, square = fitted.n_features, fitted.least_squares, np.diagonal(rows.gram, axis1=1, axis2=2)
    size = (square / lengths_or_one(square.sum(axis=0))).sum(axis=1)
    share = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0.0)  # faint tasks count like others
    scale = lengths_or_one(np.sqrt(share @ square))
    pooled = np.tensordot(share, fitted.gram, axes=1)
    values, vectors = np.linalg.eigh(pooled / np.outer(scale, scale))
    rounding = EPS * (8 * P + np.sqrt(rows.n_samples))
    silent = values <= rounding.max() * values[-1]
    if not 0 < silent.sum() < P:
        return None
    leak = rounding.max() * values[-1] / values[~silent][0]  # of other directions into those found
    mixtures, length, weights = vectors[:, silent] / scale[:, None], np.sqrt(square), alone.weights
    size, leaked = length @ np.abs(mixtures), leak * (length @ (1.0 / scale))[:, None]
    told = np.einsum("pk,tpk->tk", mixtures, fitted.gram @ mixtures)
    rest = np.abs((fitted.xty - times(fitted.gram, weights)) @ mixtures)
    of_y = np.sqrt(rows.yty) + (length * np.abs(weights)).sum(axis=1)
    noise = SURE / P * (rounding * of_y)[:, None] * (size + leaked)
    if leak > _MOST_LEAK or (told > rounding[:, None] * size**2 + leaked**2).any() or (rest > noise).any():
        return None
    N, _ = np.linalg.qr(mixtures)
    _, order = qr(vectors[:, silent].T, mode="r", pivoting=True)
    kept = np.sort(order[int(silent.sum()) :])
    B = np.eye(P)[:, kept] - N @ N[kept].T
    new = fitted.take_features([fitted.feature_names[p] for p in kept])
    return _knowing(new, alone, B, np.sqrt(square[:, kept])), B


def _knowing(new: Statistics, alone: LeastSquares, B: FloatArray, scale: FloatArray) -> Statistics:
    """The new statistics with the least squares known of the old ones, whose weights are w = B z.

    Only what is nearest to zero is another z, where rows of a task leave a choice.
    """
    K = B.shape[1]
    rank, weights, scale = np.minimum(alone.rank, K), to_basis(alone.weights, B), lengths_or_one(scale)
    quadratic = new.knowing(replace(alone, weights=weights, rank=rank)).quadratic
    for some in batches(rank < K, K):
        D = scale[some]
        _, V = quadratic.reordered(some).loss.spectrum(D)
        determined = np.arange(K) >= K - rank[some, None]
        along = np.where(determined, np.einsum("tpr,tp->tr", V, D * weights[some]), 0.0)
        weights[some] = minimum_norm(V, along, D, rank[some])
    return new.knowing(replace(alone, weights=weights, rank=rank))


def from_basis(Z: FloatArray, B: FloatArray) -> FloatArray:
    """w = B z of each row z of (T, K), one row after the other: equal rows give bitwise equal ones.

    Examples
    --------
    >>> from_basis(np.array([[1.0, 2.0]]), np.array([[1.0, 1.0], [0.0, 2.0]]))
    array([[3., 4.]])
    """
    W: FloatArray = times_rows(read_only(np.ascontiguousarray(Z)), read_only(np.ascontiguousarray(B.T)))
    return W


def to_basis(W: FloatArray, B: FloatArray) -> FloatArray:
    """The z of each row w of (T, P) for which B z is nearest to w; equal rows give bitwise equal ones.

    Examples
    --------
    >>> to_basis(np.array([[3.0, 4.0]]), np.array([[1.0, 1.0], [0.0, 2.0]])).round(9)
    array([[1., 2.]])
    """
    Q, R = np.linalg.qr(B)
    return from_basis(W, np.asarray(solve_triangular(R, Q.T)))
