"""The loss 1/2 Σ ‖X_t w_t − y_t‖² of weights, with all digits that the statistics have.

From Gram matrices, and from triangular factors, whose digits are twice as many: there nothing is squared
before terms of both signs have cancelled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ccmtl_core.base.types import EPS, FloatArray
from ccmtl_core.kernels.block_products import absolute_quadratic, quadratic, times
from ccmtl_core.statistics.least_squares import LeastSquares


class Rounding(NamedTuple):
    """What rounding can have moved a loss by, and where that is told apart its gradient (T, P)."""

    loss: float
    gradient: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class GramLoss:
    """The loss of G_t = X_tᵀX_t (T, P, P) and c_t = X_tᵀy_t (T, P), around least squares."""

    gram: FloatArray
    xty: FloatArray
    alone: LeastSquares

    def squared_error(self, W: FloatArray) -> FloatArray:
        """‖X_t w_t − y_t‖², (T,), as RSS_t + (w − ŵ_t)ᵀ G_t (w − ŵ_t): other sums would cancel."""
        excess = np.maximum(quadratic(self.gram, W - self.alone.weights), 0.0)
        return np.asarray(self.alone.residual + excess)

    def gradient(self, W: FloatArray) -> FloatArray:
        """G_t w_t − c_t, (T, P)."""
        gradient = times(self.gram, W)
        gradient -= self.xty
        return gradient

    def excess(self, W: FloatArray) -> tuple[float, float]:
        """By how much the loss is above least, and what rounding can have moved that by."""
        return 0.5 * float(quadratic(self.gram, W - self.alone.weights).sum()), self.rounding(W).loss

    def rounding(self, W: FloatArray) -> Rounding:
        """What rounding can hide: around ŵ the loss is a sum of terms of both signs, |D|ᵀ |G| |D| in size."""
        return Rounding(2.0 * EPS * float(absolute_quadratic(self.gram, W - self.alone.weights).sum()))

    def spectrum(self, scale: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Eigenvalues, rising and not too large, and eigenvectors of S⁻¹ G_t S⁻¹ with S = diag(scale_t)."""
        values, vectors = np.linalg.eigh(self.gram / (scale[:, :, None] * scale[:, None, :]))
        return np.maximum(values - values.shape[1] * EPS * values[:, -1:], 0.0), vectors


@dataclass(frozen=True, eq=False)
class FactorLoss:
    """The loss 1/2 Σ ‖R_t w_t − z_t‖² of factors [R_t z_t] (T, P + 1, P + 1), least at ŵ_t (T, P)."""

    factor: FloatArray
    least: FloatArray

    def squared_error(self, W: FloatArray) -> FloatArray:
        """‖R_t w_t − z_t‖², (T,)."""
        rest = self.rest(np.broadcast_to(W, self.least.shape))
        error: FloatArray = np.einsum("tr,tr->t", rest, rest)
        return error

    def gradient(self, W: FloatArray) -> FloatArray:
        """R_tᵀ (R_t w_t − z_t), (T, P)."""
        R = np.swapaxes(self.factor[:, :, :-1], 1, 2)
        gradient: FloatArray = np.matmul(R, self.rest(W)[:, :, None])[:, :, 0]
        return gradient

    def rest(self, W: FloatArray) -> FloatArray:
        """R_t w_t − z_t, (T, P + 1), as long as the residuals are."""
        rest: FloatArray = np.matmul(self.factor[:, :, :-1], W[:, :, None])[:, :, 0] - self.factor[:, :, -1]
        return rest

    def excess(self, W: FloatArray) -> tuple[float, float]:
        """By how much the loss is above least, and what rounding can have moved that by."""
        D = W - self.least
        apart = np.matmul(self.factor[:, :, :-1], D[:, :, None])[:, :, 0]
        return 0.5 * float(np.vdot(apart, apart)), _of_half_square(apart, self._off(D))

    def rounding(self, W: FloatArray) -> Rounding:
        """What rounding can hide: R w − z is off by e, and its half square by that.

        The gradient is off by Rᵀ e, which can save no more loss than e itself, and by the rounding of the
        product with Rᵀ, which is told apart.
        """
        rest = self.rest(W)
        e = self._off(W) + self._few * np.abs(self.factor[:, :, -1])
        of_product = self._few * np.einsum("trp,tr->tp", np.abs(self.factor[:, :, :-1]), np.abs(rest))
        return Rounding(_of_half_square(rest, e), of_product)

    def spectrum(self, scale: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Eigenvalues, rising and not too large, and eigenvectors of S⁻¹ G_t S⁻¹ with S = diag(scale_t).

        As squares of singular values, of which small ones keep their digits.
        """
        _, values, rows = np.linalg.svd(self.factor[:, :, :-1] / scale[:, None, :], full_matrices=False)
        values = np.maximum(values - values.shape[1] * EPS * values[:, :1], 0.0)[:, ::-1] ** 2
        return values, np.swapaxes(rows, 1, 2)[:, :, ::-1]

    @property
    def _few(self) -> float:
        """The relative rounding of a sum of P + 1 products."""
        return EPS * float(self.factor.shape[2] + 1)

    def _off(self, W: FloatArray) -> FloatArray:
        """What rounding can have moved R w by, (T, P + 1)."""
        size = np.abs(self.factor[:, :, :-1])
        off: FloatArray = self._few * np.matmul(size, np.abs(W)[:, :, None])[:, :, 0]
        return off


def _of_half_square(v: FloatArray, off: FloatArray) -> float:
    """What 1/2 ‖v‖² can be off by where v is off by so much."""
    return float(np.vdot(np.abs(v), off)) + 0.5 * float(np.vdot(off, off))
