"""Statistics of centred rows, which are what an intercept per task leaves to fit.

With x̄ and ȳ the means of a task, the best intercept for weights w is b = ȳ − x̄ᵀw, and

    ‖y − X w − b 1‖² = ‖(y − ȳ 1) − (X − 1 x̄ᵀ) w‖²,        (X − 1 x̄ᵀ)ᵀ(X − 1 x̄ᵀ) = G − n x̄ x̄ᵀ

The difference loses digits where means are large beside spreads; ``least_squares_from_gram`` is told them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ccmtl_core.base.arrays import as_float64
from ccmtl_core.base.exceptions import DataError, ParameterError
from ccmtl_core.base.frozen_value import FrozenValue
from ccmtl_core.base.types import EPS, BoolArray, FloatArray, IntArray
from ccmtl_core.data.row_blocks import IN_PLACE
from ccmtl_core.kernels.statistics.qr_kernel import CHUNK, accumulate_factor
from ccmtl_core.statistics.least_squares import SURE, column_lengths


@dataclass(frozen=True, eq=False)
class Means(FrozenValue):
    """Means of the rows of each task.

    Parameters
    ----------
    weight : (T,) float64
        Effective number of rows.
    x, y : (T, P), (T,) float64
        x̄ and ȳ; those of all rows together for a task without rows.
    """

    weight: FloatArray
    x: FloatArray
    y: FloatArray

    def intercept(self, weights: FloatArray) -> FloatArray:
        """The best intercepts for weights (T, P): b = ȳ − x̄ᵀw, (T,)."""
        best: FloatArray = self.y - (self.x * weights).sum(axis=1)
        return best

    def offset_error(self, weights: FloatArray, intercept: ArrayLike) -> FloatArray:
        """What an intercept other than the best one adds to the squared error, (T,)."""
        b = as_float64(intercept, "intercept")
        if b.shape not in {(), self.y.shape}:
            raise DataError(f"intercept must be {self.y.shape}; got {b.shape}")
        error: FloatArray = self.weight * (b - self.intercept(weights)) ** 2
        return error


def means_of(weight: FloatArray | None, x_sum: FloatArray | None, y_sum: FloatArray | None) -> Means:
    """Means from sums.

    Raises
    ------
    DataError
        The sums are not known.
    """
    if weight is None or x_sum is None or y_sum is None:
        raise DataError(
            "these statistics hold no sums of x and y, which an intercept needs; "
            "compute them from rows, or give weight, x_sum and y_sum"
        )
    some, total = weight > 0, max(float(weight.sum()), float(np.finfo(np.float64).tiny))
    y = np.divide(y_sum, weight, out=np.full_like(y_sum, y_sum.sum() / total), where=some)
    overall = np.tile(x_sum.sum(axis=0) / total, (len(weight), 1))
    x = np.divide(x_sum, weight[:, None], out=overall, where=some[:, None])
    return Means(weight, x, y)


def checked_factor(factor: float | FloatArray, n_tasks: int) -> FloatArray:
    """How often rows count, (T,), each finite and not negative."""
    factors = as_float64(factor, "factor")
    if factors.shape not in {(), (n_tasks,)}:
        raise ParameterError(f"factor must be one number or one per task; got {factors.shape}")
    if not (np.isfinite(factors).all() and (factors >= 0).all()):
        raise ParameterError(f"factor must be finite and not negative, not {factor}")
    return np.broadcast_to(factors, (n_tasks,))


def checked_weights(weights: ArrayLike, n_tasks: int, n_features: int) -> FloatArray:
    """Weights (T, P), or (P,) for all tasks."""
    W = as_float64(weights, "weights")
    if W.shape not in {(n_tasks, n_features), (n_features,)}:
        raise DataError(f"weights must be ({n_tasks}, {n_features}); got {W.shape}")
    return W


@dataclass(frozen=True, eq=False)
class CentredGram:
    """Products of centred rows.

    Parameters
    ----------
    gram : (T, P, P) float64
        G − n x̄ x̄ᵀ; zero in the row and column of a feature that is constant up to rounding.
    xty : (T, P) float64
        c − n x̄ ȳ.
    yty : (T,) float64
        yᵀy − n ȳ².
    hides : (T,) bool
        Whether y depends, by more than rounding, on a feature that was taken for constant.
    """

    gram: FloatArray
    xty: FloatArray
    yty: FloatArray
    hides: BoolArray


def centred_gram(
    gram: FloatArray,
    xty: FloatArray,
    yty: FloatArray,
    means: Means,
    n_samples: IntArray,
) -> CentredGram:
    """Take the means out of the products of T tasks.

    Parameters
    ----------
    gram, xty, yty
        As in :class:`~ccmtl_core.SufficientStatistics`.
    means : Means
        Of the same tasks.
    n_samples : (T,) int64
        Rows of each task, which rounding grows with, whatever they weigh.

    Returns
    -------
    CentredGram

    Examples
    --------
    >>> import numpy as np
    >>> means = Means(np.array([2.0]), np.array([[2.0]]), np.array([3.0]))
    >>> gram, xty, yty = np.array([[[10.0]]]), np.array([[14.0]]), np.array([20.0])
    >>> rest = centred_gram(gram, xty, yty, means, np.array([2]))
    >>> rest.gram.ravel(), rest.xty.ravel(), rest.yty
    (array([2.]), array([2.]), array([2.]))
    """
    weight, x_mean, y_mean = means.weight, means.x, means.y
    square = np.diagonal(gram, axis1=1, axis2=2)
    noise = (8 + np.sqrt(n_samples / 64)) * EPS
    x_square = square - weight[:, None] * x_mean**2
    varies = x_square > noise[:, None] * square
    y_square = yty - weight * y_mean**2
    y_varies = y_square > noise * yty
    both = varies[:, :, None] & varies[:, None, :]
    rest = np.where(both, gram - weight[:, None, None] * (x_mean[:, :, None] * x_mean[:, None, :]), 0.0)
    products = xty - weight[:, None] * x_mean * y_mean[:, None]
    unknown = noise[:, None] * np.sqrt(square * yty[:, None])
    covary = varies & (np.abs(products) > unknown)
    hides = np.asarray((~varies & (np.abs(products) > SURE * unknown)).any(axis=1))
    return CentredGram(rest, np.where(covary, products, 0.0), np.where(y_varies, y_square, 0.0), hides)


def centred_factor(factor: FloatArray, ones: FloatArray, n_samples: IntArray) -> FloatArray:
    """Triangular factor of the centred [X y].

    The factor of [1 X y] without its first row and column: nothing is subtracted. Columns that are constant
    up to rounding are zero.

    Parameters
    ----------
    factor : (T, P + 1, P + 1) float64
        Upper triangular, of [X y].
    ones : (T, P + 2) float64
        The column that continues it to the factor of [X y 1].
    n_samples : (T,) int64
        Rows of each task, which rounding grows with, whatever they weigh.

    Returns
    -------
    (T, P + 1, P + 1) float64
        Upper triangular.

    Examples
    --------
    >>> import numpy as np
    >>> R = np.linalg.qr(np.array([[1.0, 2.0, 1.0], [3.0, 4.0, 1.0], [3.0, 0.0, 1.0]]), mode="r")
    >>> centred = centred_factor(R[None, :2, :2], R[None, :, 2], np.array([3]))
    >>> round(float(centred[0, 0, 0]) ** 2, 9)  # Σ (x − x̄)²
    2.666666667
    """
    T, Q = len(factor), factor.shape[1]
    rows = np.zeros((T, Q + 1, Q + 1))
    rows[:, :, 0] = ones
    rows[:, :Q, 1:] = factor
    stacked = rows.reshape(-1, Q + 1)
    out = np.zeros((T, Q + 1, Q + 1))
    offsets = np.arange(T + 1) * (Q + 1)
    features, last = np.ascontiguousarray(stacked[:, :-1]), np.ascontiguousarray(stacked[:, -1])
    accumulate_factor(features, last, IN_PLACE, offsets, np.arange(T), out)
    centred = np.ascontiguousarray(out[:, 1:, 1:])
    # Equal rows err to one side in each of the steps that take CHUNK rows; other errors tend to cancel.
    noise = EPS * (8 * Q + np.sqrt(n_samples) + n_samples / CHUNK)[:, None]
    constant = column_lengths(centred) <= noise * column_lengths(factor)
    return np.where(constant[:, None, :], 0.0, centred)
