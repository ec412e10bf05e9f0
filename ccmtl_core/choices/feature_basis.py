"""Statistics of the rows X L, for an upper triangular L, and weights in that basis and back.

With w = L z the products X w and (X L) z are the same, and ‖L⁻¹(w_i − w_j)‖ is the Euclidean ‖z_i − z_j‖:
fusing in a metric of one's own is fusing other features.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ccmtl_core.base.arrays import locked, read_only
from ccmtl_core.base.types import FloatArray
from ccmtl_core.kernels.statistics import basis_kernels
from ccmtl_core.statistics.inputs import Statistics
from ccmtl_core.statistics.sufficient_statistics import SufficientStatistics
from ccmtl_core.statistics.triangular_statistics import TriangularStatistics


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
        T, P = statistics.xty.shape
        gram, xty = np.empty((T, P, P)), np.empty((T, P))
        basis_kernels.change(read_only(statistics.gram), read_only(statistics.xty), read_only(L), gram, xty)
        new = SufficientStatistics(locked(gram), locked(xty), statistics.yty, *names)
    known, found = statistics.least_squares, new.least_squares
    error = np.maximum(known.residual_error, found.residual_error)
    return new.knowing(replace(found, residual_error=error, hides=known.hides | found.hides))


def from_basis(Z: FloatArray, L: FloatArray) -> FloatArray:
    """w = L z of each row z of (T, P), one row after the other: equal rows give bitwise equal ones.

    Examples
    --------
    >>> from_basis(np.array([[1.0, 2.0]]), np.array([[1.0, 1.0], [0.0, 2.0]]))
    array([[3., 4.]])
    """
    W: FloatArray = basis_kernels.times(read_only(np.ascontiguousarray(Z)), read_only(L))
    return W


def to_basis(W: FloatArray, L: FloatArray) -> FloatArray:
    """z = L⁻¹ w of each row w of (T, P); equal rows give bitwise equal ones.

    Examples
    --------
    >>> to_basis(np.array([[3.0, 4.0]]), np.array([[1.0, 1.0], [0.0, 2.0]]))
    array([[1., 2.]])
    """
    Z: FloatArray = basis_kernels.solve(read_only(np.ascontiguousarray(W)), read_only(L))
    return Z
