"""Statistics in, minimum-norm least squares of each task out, with its residual sum of squares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ccmtl_core._types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class LeastSquares:
    """Least squares of each task alone.

    Parameters
    ----------
    weights : (T, P) float64
        The minimiser of smallest norm.
    residual : (T,) float64
        ‖X_t ŵ_t − y_t‖².
    rank : (T,) int64
        Numerical rank of X_t.
    """

    weights: FloatArray
    residual: FloatArray
    rank: IntArray


def least_squares_from_gram(
    gram: FloatArray, xty: FloatArray, yty: FloatArray, n_samples: IntArray
) -> LeastSquares:
    """From the Gram form, by eigenvalues."""
    values, vectors = np.linalg.eigh(gram)
    kept = values > values[:, -1:] * (gram.shape[1] * 8 * np.finfo(float).eps)
    coefficients = np.matmul(np.swapaxes(vectors, 1, 2), xty[:, :, None])[:, :, 0]
    inverse = np.where(kept, 1.0 / np.where(kept, values, 1.0), 0.0)
    weights = np.matmul(vectors, (coefficients * inverse)[:, :, None])[:, :, 0]
    rank = kept.sum(axis=1)
    residual = np.maximum(yty - (coefficients**2 * inverse).sum(axis=1), 0.0)
    return LeastSquares(weights, np.where(rank >= n_samples, 0.0, residual), rank)
