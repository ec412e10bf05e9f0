"""The loss of all tasks as a solver sees it: blocks of numbers, without names, sums of rows or checks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ccmtl_core.base.arrays import locked
from ccmtl_core.base.types import FloatArray, IntArray
from ccmtl_core.kernels.grouping import group_sums
from ccmtl_core.kernels.solver.system_kernels import sum_blocks
from ccmtl_core.statistics.least_squares import LeastSquares, least_squares_from_gram
from ccmtl_core.statistics.loss import FactorLoss, GramLoss


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
        sum_blocks(group, self.gram, gram)
        n_samples = np.zeros(n_groups, dtype=np.int64)
        np.add.at(n_samples, group, self.n_samples)
        xty, yty = (locked(group_sums(group, values, n_groups)) for values in (self.xty, self.yty))
        return Quadratic(locked(gram), xty, yty, locked(n_samples))

    def pulled(self, tasks: IntArray, force: FloatArray) -> Quadratic:
        """Some tasks (S,), and forces (S, P) on their weights: their inner product is part of the loss."""
        gram, yty, n = (locked(a[tasks]) for a in (self.gram, self.yty, self.n_samples))
        return Quadratic(gram, locked(self.xty[tasks] - force), yty, n)
