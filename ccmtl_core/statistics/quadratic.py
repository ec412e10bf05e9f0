"""The loss of all tasks as a solver sees it: blocks of numbers, without names, sums of rows or checks.

It is computed from Gram matrices, or from triangular factors, whose digits are twice as many: there nothing
is squared before terms of both signs have cancelled.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ccmtl_core.base.arrays import locked, read_only
from ccmtl_core.base.types import EPS, FloatArray, IntArray
from ccmtl_core.kernels.block_products import absolute_quadratic, quadratic, times
from ccmtl_core.kernels.grouping import group_sums
from ccmtl_core.kernels.solver.system_kernels import sum_blocks
from ccmtl_core.statistics.least_squares import LeastSquares, least_squares_from_gram

_WIDE = 17  # features from which blocks are dear to read; of fewer, exact fits keep their last digits


@dataclass(frozen=True, eq=False)
class Quadratic:
    """1/2 Σ_t ‖X_t w_t − y_t‖² of T tasks with P features.

    Parameters
    ----------
    gram, xty, yty, n_samples
        As in :class:`~ccmtl_core.SufficientStatistics`; read-only.
    factor : (T, P + 1, P + 1) float64, optional
        As in :class:`~ccmtl_core.TriangularStatistics`: losses then keep all digits.
    alone : LeastSquares, optional
        Of each task; from the Gram blocks where it is not known.

    Examples
    --------
    >>> arrays = np.ones((2, 1, 1)), np.array([[0.0], [2.0]]), np.array([0.0, 4.0]), np.ones(2, dtype=int)
    >>> both = Quadratic(*arrays).summed(np.array([0, 0]), 1)
    >>> both.xty, both.least_squares.weights
    (array([[2.]]), array([[1.]]))
    """

    gram: FloatArray
    xty: FloatArray
    yty: FloatArray
    n_samples: IntArray
    factor: FloatArray | None = None
    alone: LeastSquares | None = None

    @property
    def n_tasks(self) -> int:
        """T, the number of tasks."""
        return len(self.xty)

    @property
    def n_features(self) -> int:
        """P, the number of features."""
        P: int = self.xty.shape[1]
        return P

    @cached_property
    def least_squares(self) -> LeastSquares:
        """Minimum-norm least squares of each task alone."""
        return self.alone or least_squares_from_gram(self.gram, self.xty, self.yty, self.n_samples)

    @cached_property
    def loss(self) -> GramLoss | FactorLoss:
        """The loss that weights have, around its least value."""
        if self.factor is not None:
            return FactorLoss(self.factor, self.least_squares.weights)
        return GramLoss(self.gram, self.xty, self.least_squares)

    def reordered(self, order: IntArray) -> Quadratic:
        """The same tasks, renumbered: the new task t is the old ``order[t]``."""
        gram, xty, yty, n = (locked(a[order]) for a in (self.gram, self.xty, self.yty, self.n_samples))
        factor = None if self.factor is None else locked(self.factor[order])
        return Quadratic(gram, xty, yty, n, factor, self.least_squares.reordered(order))

    def summed(self, group: IntArray, n_groups: int) -> Quadratic:
        """The tasks of each group as one; ``group`` (T,) says which it is of."""
        gram = np.zeros((n_groups, self.n_features, self.n_features))
        sum_blocks(group, read_only(self.gram), gram)
        n_samples = np.zeros(n_groups, dtype=np.int64)
        np.add.at(n_samples, group, self.n_samples)
        xty, yty = (locked(group_sums(group, values, n_groups)) for values in (self.xty, self.yty))
        return Quadratic(locked(gram), xty, yty, locked(n_samples))

    def pulled(self, tasks: IntArray, force: FloatArray) -> Quadratic:
        """Some tasks (S,), and forces (S, P) on their weights: their inner product is part of the loss."""
        gram, yty, n = (locked(a[tasks]) for a in (self.gram, self.yty, self.n_samples))
        return Quadratic(gram, locked(self.xty[tasks] - force), yty, n)


class Rounding(NamedTuple):
    """Bounds on the rounding errors of a loss and, where it has one of its own, of its gradient (T, P)."""

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

    def around(self, W: FloatArray) -> tuple[FloatArray, FloatArray]:
        """‖X_t w_t − y_t‖² (T,) and G_t w_t − c_t (T, P), in one pass over blocks that are dear to read."""
        if W.shape[1] < _WIDE:
            return self.squared_error(W), self.gradient(W)
        D = W - self.alone.weights
        gradient = times(self.gram, D)
        excess = np.maximum(np.einsum("tp,tp->t", D, gradient), 0.0)
        gradient += self._least_gradient
        return np.asarray(self.alone.residual + excess), gradient

    @cached_property
    def _least_gradient(self) -> FloatArray:
        """The gradient at least squares, (T, P): zero up to rounding and directions cut by rank."""
        return self.gradient(self.alone.weights)

    def gradient(self, W: FloatArray) -> FloatArray:
        """G_t w_t − c_t, (T, P)."""
        gradient = times(self.gram, W)
        gradient -= self.xty
        return gradient

    def excess(self, W: FloatArray) -> tuple[float, float]:
        """Return the loss less its least value, and a bound on the rounding error of this difference."""
        return 0.5 * float(quadratic(self.gram, W - self.alone.weights).sum()), self.rounding(W).loss

    def rounding(self, W: FloatArray) -> Rounding:
        """Bound rounding errors: its terms have both signs, and sizes that sum to |D|ᵀ |G| |D|."""
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

    def around(self, W: FloatArray) -> tuple[FloatArray, FloatArray]:
        """‖R_t w_t − z_t‖² (T,) and R_tᵀ (R_t w_t − z_t) (T, P)."""
        rest, R = self.rest(W), np.swapaxes(self.factor[:, :, :-1], 1, 2)
        return np.einsum("tr,tr->t", rest, rest), np.matmul(R, rest[:, :, None])[:, :, 0]

    def gradient(self, W: FloatArray) -> FloatArray:
        """R_tᵀ (R_t w_t − z_t), (T, P)."""
        return self.around(W)[1]

    def rest(self, W: FloatArray) -> FloatArray:
        """R_t w_t − z_t, (T, P + 1), as long as the residuals are."""
        rest: FloatArray = np.matmul(self.factor[:, :, :-1], W[:, :, None])[:, :, 0] - self.factor[:, :, -1]
        return rest

    def excess(self, W: FloatArray) -> tuple[float, float]:
        """Return the loss less its least value, and a bound on the rounding error of this difference."""
        D = W - self.least
        apart = np.matmul(self.factor[:, :, :-1], D[:, :, None])[:, :, 0]
        return 0.5 * float(np.vdot(apart, apart)), _of_half_square(apart, self._off(D))

    def rounding(self, W: FloatArray) -> Rounding:
        """Bound rounding errors, from a bound e on those of R w − z.

        The loss is half the square of R w − z. The gradient has the error Rᵀ e, which can save no more loss
        than e itself, and that of the product with Rᵀ, for which a bound of its own is returned.
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
        """Bounds on the rounding errors of R w, (T, P + 1)."""
        size = np.abs(self.factor[:, :, :-1])
        off: FloatArray = self._few * np.matmul(size, np.abs(W)[:, :, None])[:, :, 0]
        return off


def _of_half_square(v: FloatArray, off: FloatArray) -> float:
    """Bound the error of 1/2 ‖v‖² where v has errors of at most ``off``."""
    return float(np.vdot(np.abs(v), off)) + 0.5 * float(np.vdot(off, off))
