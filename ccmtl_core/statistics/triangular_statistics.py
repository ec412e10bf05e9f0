"""The triangular form of the statistics: R_t, the triangular factor of [X_t y_t], which keeps all digits.

R_tᵀ R_t = [X_t y_t]ᵀ [X_t y_t]. It holds the same information as gram, xty and yty in the same space, but
none of it as a difference: residuals keep all the digits of the data, and rank is decided by X, not by its
square. Merging is a QR of stacked factors.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from ccmtl_core.base.arrays import all_finite, locked, refuse_each
from ccmtl_core.base.exceptions import DataError
from ccmtl_core.base.types import FloatArray, IntArray
from ccmtl_core.data.row_blocks import IN_PLACE
from ccmtl_core.data.weighted_rows import WeightedRows
from ccmtl_core.kernels.statistics.qr_kernel import accumulate_factor
from ccmtl_core.statistics.centring import centred_factor
from ccmtl_core.statistics.least_squares import LeastSquares, column_lengths, least_squares_from_factor
from ccmtl_core.statistics.task_statistics import Sums, TaskStatistics


@dataclass(frozen=True, eq=False, repr=False)
class TriangularStatistics(TaskStatistics):
    """Triangular form of the statistics of T tasks with P features.

    Offers what :class:`~ccmtl_core.SufficientStatistics` offers, and can stand in its place.
    Arrays are copied as there.

    Parameters
    ----------
    factor : (T, P + 1, P + 1) float64
        R_t, upper triangular, of [X_t y_t].
    n_samples : (T,) int64
        Rows seen; :meth:`scaled` leaves them as they are.
    task_ids : tuple of T str
        Distinct, not empty.
    feature_names : tuple of P str
        Distinct, not empty.
    ones : (T, P + 2) float64, optional
        The column that continues R_t to the factor of [X_t y_t 1]; an intercept needs it.

    Raises
    ------
    DataError
        Shapes that do not fit, values that are not finite, a factor that is not triangular.

    Examples
    --------
    A residual of 1e-9 beside a y of 1e9 is lost in the Gram form and kept here:

    >>> from ccmtl_core import SufficientStatistics, TaskDataset
    >>> data = TaskDataset.from_arrays([[[1.0], [0.0]]], [[1e9, 1e-9]])
    >>> float(SufficientStatistics.from_dataset(data).least_squares.residual[0])
    0.0
    >>> float(TriangularStatistics.from_dataset(data).least_squares.residual[0])
    1e-18
    """

    factor: FloatArray
    n_samples: IntArray
    task_ids: tuple[str, ...]
    feature_names: tuple[str, ...]
    ones: FloatArray | None = None

    def __post_init__(self) -> None:
        self._freeze(factor=(1, 1), ones=(2,))
        with np.errstate(over="ignore"):
            size = np.einsum("tpq,tpq->t", self.factor, self.factor)
            size += 0.0 if self.ones is None else self.weight
        if not all_finite(size):
            fault = "its statistics are not finite; do squares overflow?"
            refuse_each(np.flatnonzero(~np.isfinite(size)), lambda t: f"task {self.task_ids[t]!r}: {fault}")
        if self.factor[:, *np.tril_indices(self.factor.shape[1], -1)].any():
            raise DataError("factor must be upper triangular")
        refuse_each(
            np.flatnonzero(self.n_samples < 0),
            lambda t: f"task {self.task_ids[t]!r}: the number of samples is negative",
        )

    @classmethod
    def _zeros(cls, n_tasks: int, n_features: int) -> Sums:
        return (np.zeros((n_tasks, n_features + 2, n_features + 2)),)

    @classmethod
    def _add_rows(
        cls, sums: Sums, X: FloatArray, y: FloatArray, order: IntArray, offsets: IntArray, slot: IntArray
    ) -> bool:
        accumulate_factor(X, y, order, offsets, slot, *sums)
        return False

    @classmethod
    def _weighted_sums(cls, rows: WeightedRows, order: IntArray, offsets: IntArray, slot: IntArray) -> Sums:
        sums = cls._zeros(len(slot), rows.X.shape[1])
        cls._add_rows(sums, np.column_stack([rows.X, rows.y]), rows.ones, order, offsets, slot)
        return sums

    @classmethod
    def _of_sums(
        cls,
        sums: Sums,
        n_samples: IntArray,
        task_ids: tuple[str, ...],
        names: tuple[str, ...],
        *,
        beyond_doubt: bool = False,
    ) -> Self:
        """From factors of [X y 1], or of [X y] where the ones are not known."""
        (lifted,) = sums
        n, Q = locked(n_samples), len(names) + 1
        if lifted.shape[1] == Q:
            return cls(locked(lifted), n, task_ids, names)
        factor, ones = map(np.ascontiguousarray, (lifted[:, :Q, :Q], lifted[:, :, Q]))
        return cls(locked(factor), n, task_ids, names, locked(ones))

    def _lifted(self) -> FloatArray:
        """New factors of [X y 1], or of [X y] where the ones are not known."""
        return self.factor.copy() if self.ones is None else _lift(self.factor, self.ones)

    def _rows(self) -> tuple[FloatArray, FloatArray]:
        """The rows of all factors, as if they were samples: they have the same statistics."""
        lifted = self._lifted()
        rows = lifted.reshape(-1, lifted.shape[2])
        return np.ascontiguousarray(rows[:, :-1]), np.ascontiguousarray(rows[:, -1])

    def _added(self, other: Self) -> Sums:
        factor = self._lifted()
        offsets = np.arange(self.n_tasks + 1) * factor.shape[1]
        accumulate_factor(*other._rows(), IN_PLACE, offsets, np.arange(self.n_tasks), factor)
        return (factor,)

    def _multiplied(self, factors: FloatArray) -> Sums:
        return (self._lifted() * np.sqrt(factors)[:, None, None],)

    def _total(self) -> Sums:
        X, y = self._rows()
        Q = X.shape[1] + 1
        factor = np.zeros((1, Q, Q))
        accumulate_factor(X, y, IN_PLACE, np.array([0, len(y)]), np.array([0]), factor)
        return (factor,)

    def _least_squares(self) -> LeastSquares:
        return least_squares_from_factor(self.factor, self.n_samples)

    def _centred(self, freedom: IntArray) -> tuple[Sums, LeastSquares]:
        weight = self.means.weight
        assert self.ones is not None  # without them there are no means
        factor, ones = centred_factor(self.factor, self.ones, self.n_samples), np.zeros_like(self.ones)
        ones[:, -1] = np.sqrt(weight)
        alone = least_squares_from_factor(factor, freedom, column_lengths(self.factor))
        return (_lift(factor, ones),), alone

    @cached_property
    def gram(self) -> FloatArray:
        """X_tᵀ X_t, (T, P, P)."""
        R = self.factor[:, :, :-1]
        return locked(np.matmul(np.swapaxes(R, 1, 2), R))

    @cached_property
    def xty(self) -> FloatArray:
        """X_tᵀ y_t, (T, P)."""
        return locked(np.einsum("trp,tr->tp", self.factor[:, :, :-1], self.factor[:, :, -1]))

    @cached_property
    def yty(self) -> FloatArray:
        """y_tᵀ y_t, (T,)."""
        return locked((self.factor[:, :, -1] ** 2).sum(axis=1))

    @cached_property
    def weight(self) -> FloatArray | None:
        """Effective number of rows, (T,), or None."""
        return None if self.ones is None else locked((self.ones**2).sum(axis=1))

    @cached_property
    def x_sum(self) -> FloatArray | None:
        """Sum of the rows of X_t, (T, P), or None."""
        if self.ones is None:
            return None
        return locked(np.einsum("trp,tr->tp", self.factor[:, :, :-1], self.ones[:, :-1]))

    @cached_property
    def y_sum(self) -> FloatArray | None:
        """Sum of y_t, (T,), or None."""
        if self.ones is None:
            return None
        return locked(np.einsum("tr,tr->t", self.factor[:, :, -1], self.ones[:, :-1]))


def _lift(factor: FloatArray, ones: FloatArray) -> FloatArray:
    """Factors of [X y 1] from those of [X y] and the column of the ones."""
    T, Q = ones.shape
    lifted = np.zeros((T, Q, Q))
    lifted[:, :-1, :-1], lifted[:, :, -1] = factor, ones
    return lifted
