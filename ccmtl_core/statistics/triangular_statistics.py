"""Sufficient statistics with all digits of the rows: the triangular factor of [X_t y_t].

R_t is upper triangular with R_tᵀ R_t = [X_t y_t]ᵀ [X_t y_t]. It holds the same information as
gram, xty and yty in the same space, but none of it as a difference: residuals keep all the digits
of the data, and rank is decided by X, not by its square. Merging is a QR of stacked factors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ccmtl_core.base.arguments import check_kind
from ccmtl_core.base.arrays import (
    all_finite,
    as_counts,
    as_shape,
    checked_names,
    ids_or_default,
    locked,
    refuse_each,
)
from ccmtl_core.base.display import counted, named, shown
from ccmtl_core.base.exceptions import DataError
from ccmtl_core.base.frozen_value import FrozenValue
from ccmtl_core.base.types import FloatArray, IntArray
from ccmtl_core.data.row_blocks import IN_PLACE, Block, BlockNames, check_sizes, group_by_fold, group_by_task
from ccmtl_core.data.task_dataset import TaskDataset
from ccmtl_core.data.weighted_rows import weighted_rows
from ccmtl_core.kernels.statistics.qr_kernel import accumulate_factor
from ccmtl_core.statistics.centring import (
    Means,
    centred_factor,
    checked_factor,
    checked_weights,
    means_of,
    refuse_unequal_sums,
)
from ccmtl_core.statistics.least_squares import LeastSquares, column_lengths, least_squares_from_factor
from ccmtl_core.statistics.quadratic import Quadratic


@dataclass(frozen=True, eq=False)
class TriangularStatistics(FrozenValue):
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

    >>> from ccmtl_core import SufficientStatistics
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
        task_ids = checked_names(self.task_ids, "task id")
        feature_names = checked_names(self.feature_names, "feature name")
        T, Q = len(task_ids), len(feature_names) + 1
        if not T or Q == 1:
            raise DataError("statistics need at least one task and one feature")
        checked: dict[str, Any] = {
            "factor": as_shape(self.factor, (T, Q, Q), "factor"),
            "n_samples": as_counts(self.n_samples, T),
            "task_ids": task_ids,
            "feature_names": feature_names,
            "ones": None if self.ones is None else as_shape(self.ones, (T, Q + 1), "ones"),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        self._refuse_impossible()

    def __repr__(self) -> str:
        tasks, features = counted(len(self.task_ids), "task"), named(self.feature_names, "feature")
        return shown(self, tasks, features, counted(int(self.n_samples.sum()), "row"))

    def _refuse_impossible(self) -> None:
        with np.errstate(over="ignore"):
            size = np.einsum("tpq,tpq->t", self.factor, self.factor)
            size += 0.0 if self.ones is None else self.weight
        if not all_finite(size):
            bad = np.flatnonzero(~np.isfinite(size))
            fault = "its statistics are not finite; do squares overflow?"
            refuse_each(bad, lambda t: f"task {self.task_ids[t]!r}: {fault}")
        if self.factor[:, *np.tril_indices(self.factor.shape[1], -1)].any():
            raise DataError("factor must be upper triangular")
        refuse_each(
            np.flatnonzero(self.n_samples < 0),
            lambda t: f"task {self.task_ids[t]!r}: the number of samples is negative",
        )

    @classmethod
    def from_dataset(
        cls, dataset: TaskDataset, sample_weight: ArrayLike | None = None
    ) -> TriangularStatistics:
        """Statistics of a dataset; as :meth:`SufficientStatistics.from_dataset`."""
        check_kind(dataset, "dataset", TaskDataset)
        if sample_weight is not None:
            return cls.by_fold(dataset, np.zeros(len(dataset.y), dtype=np.int64), 1, sample_weight)[0]
        factor = _zeros(dataset.n_tasks, dataset.n_features)
        slot = np.arange(dataset.n_tasks)
        accumulate_factor(dataset.X, dataset.y, IN_PLACE, dataset.offsets, slot, factor)
        return cls._of_lifted(factor, dataset.n_samples, dataset.task_ids, dataset.feature_names)

    @classmethod
    def _of_lifted(
        cls, lifted: FloatArray, n_samples: IntArray, task_ids: tuple[str, ...], names: tuple[str, ...]
    ) -> TriangularStatistics:
        """From the factors (T, P + 2, P + 2) of [X y 1]."""
        factor, ones = map(np.ascontiguousarray, (lifted[:, :-1, :-1], lifted[:, :, -1]))
        return cls(locked(factor), locked(n_samples), task_ids, names, locked(ones))

    @classmethod
    def from_blocks(
        cls,
        blocks: Iterable[Block],
        n_tasks: int,
        n_features: int,
        *,
        task_ids: Sequence[object] | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> TriangularStatistics:
        """Statistics of rows that arrive in pieces; as :meth:`SufficientStatistics.from_blocks`."""
        check_sizes(n_tasks, n_features)
        names = BlockNames(feature_names, n_features)
        factor = _zeros(n_tasks, n_features)
        n_samples = np.zeros(n_tasks, dtype=np.int64)
        slot = np.arange(n_tasks)
        for number, block in enumerate(blocks):
            X, y, order, offsets = group_by_task(number, block, n_tasks, n_features, names)
            accumulate_factor(X, y, order, offsets, slot, factor)
            n_samples += np.diff(offsets)
        ids = ids_or_default(task_ids, n_tasks)
        return cls._of_lifted(factor, n_samples, ids, names.all())

    @classmethod
    def by_fold(
        cls, dataset: TaskDataset, fold: ArrayLike, n_folds: int, sample_weight: ArrayLike | None = None
    ) -> list[TriangularStatistics]:
        """Statistics of each fold of the rows; as :meth:`SufficientStatistics.by_fold`."""
        order, offsets, slot = group_by_fold(dataset, fold, n_folds)
        factor = _zeros(len(slot), dataset.n_features)
        n_samples = np.empty(len(slot), dtype=np.int64)
        if sample_weight is None:
            accumulate_factor(dataset.X, dataset.y, order, offsets, slot, factor)
            n_samples[slot] = np.diff(offsets)
        else:
            rows = weighted_rows(dataset, sample_weight)
            accumulate_factor(rows.with_targets(), rows.ones, order, offsets, slot, factor)
            n_samples[slot] = rows.counts(order, offsets)
        T = dataset.n_tasks
        parts = [slice(f * T, (f + 1) * T) for f in range(n_folds)]
        names = dataset.task_ids, dataset.feature_names
        return [cls._of_lifted(factor[s], n_samples[s], *names) for s in parts]

    def __add__(self, other: TriangularStatistics) -> TriangularStatistics:
        if not isinstance(other, TriangularStatistics):
            return NotImplemented
        if self.task_ids != other.task_ids or self.feature_names != other.feature_names:
            raise DataError("only statistics of the same tasks and features, in the same order, add up")
        refuse_unequal_sums(self.ones, other.ones)
        factor = self._lifted()
        offsets = np.arange(self.n_tasks + 1) * factor.shape[1]
        accumulate_factor(*other._rows(), IN_PLACE, offsets, np.arange(self.n_tasks), factor)
        return self._like(factor, self.n_samples + other.n_samples, self.task_ids)

    def scaled(self, factor: float | FloatArray) -> TriangularStatistics:
        """Statistics in which each row counts ``factor`` times (forgetting: factor < 1).

        Parameters
        ----------
        factor : float or (T,) float64
            One for all, or one per task.

        Returns
        -------
        TriangularStatistics
            Of the same tasks.

        Raises
        ------
        ParameterError
            A factor that is negative or not finite.
        DataError
            A factor that is no number.
        """
        root = np.sqrt(checked_factor(factor, self.n_tasks))
        ones = None if self.ones is None else locked(self.ones * root[:, None])
        R = locked(self.factor * root[:, None, None])
        return TriangularStatistics(R, self.n_samples, self.task_ids, self.feature_names, ones)

    def pooled(self) -> TriangularStatistics:
        """All tasks as one, with the id "pooled"."""
        X, y = self._rows()
        Q = X.shape[1] + 1
        factor = np.zeros((1, Q, Q))
        accumulate_factor(X, y, IN_PLACE, np.array([0, len(y)]), np.array([0]), factor)
        return self._like(factor, self.n_samples.sum(keepdims=True), ("pooled",))

    def _lifted(self) -> FloatArray:
        """New factors of [X y 1], or of [X y] where the ones are not known."""
        if self.ones is None:
            return self.factor.copy()
        T, Q = self.ones.shape
        lifted = np.zeros((T, Q, Q))
        lifted[:, :-1, :-1], lifted[:, :, -1] = self.factor, self.ones
        return lifted

    def _rows(self) -> tuple[FloatArray, FloatArray]:
        """The rows of all factors, as if they were samples: they have the same statistics."""
        lifted = self._lifted()
        rows = lifted.reshape(-1, lifted.shape[2])
        return np.ascontiguousarray(rows[:, :-1]), np.ascontiguousarray(rows[:, -1])

    def _like(
        self, factor: FloatArray, n_samples: IntArray, task_ids: tuple[str, ...]
    ) -> TriangularStatistics:
        """From what :meth:`_lifted` gives."""
        if self.ones is None:
            return TriangularStatistics(locked(factor), locked(n_samples), task_ids, self.feature_names)
        return self._of_lifted(factor, n_samples, task_ids, self.feature_names)

    def reordered(self, order: IntArray) -> TriangularStatistics:
        """The same tasks, renumbered: the new task t is the old ``order[t]``."""
        new = TriangularStatistics(
            locked(self.factor[order]),
            locked(self.n_samples[order]),
            tuple(map(self.task_ids.__getitem__, order.tolist())),
            self.feature_names,
            None if self.ones is None else locked(self.ones[order]),
        )
        new.__dict__["least_squares"] = self.least_squares.reordered(order)
        return new

    @property
    def n_tasks(self) -> int:
        """T, the number of tasks."""
        return len(self.task_ids)

    @property
    def n_features(self) -> int:
        """P, the number of features."""
        return len(self.feature_names)

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

    @property
    def total_yty(self) -> float:
        """Σ_t y_tᵀ y_t."""
        return float(self.yty.sum())

    @cached_property
    def least_squares(self) -> LeastSquares:
        """Minimum-norm least squares of each task alone, with all the digits of X."""
        return least_squares_from_factor(self.factor, self.n_samples)

    @cached_property
    def means(self) -> Means:
        """Weight, x̄ and ȳ of each task."""
        return means_of(self.weight, self.x_sum, self.y_sum)

    @cached_property
    def centred(self) -> TriangularStatistics:
        """The statistics of the centred rows: what is left for weights beside an intercept per task."""
        means = self.means
        assert self.ones is not None  # without them there are no means
        ones = np.zeros_like(self.ones)
        ones[:, -1] = np.sqrt(means.weight)
        factor = locked(centred_factor(self.factor, self.ones, self.n_samples))
        new = TriangularStatistics(factor, self.n_samples, self.task_ids, self.feature_names, locked(ones))
        freedom = np.maximum(self.n_samples - 1, 0)  # rows that centring leaves
        new.__dict__["least_squares"] = least_squares_from_factor(
            factor, freedom, column_lengths(self.factor)
        )
        return new

    @cached_property
    def quadratic(self) -> Quadratic:
        """What a solver sees of them."""
        return Quadratic(self.gram, self.xty, self.yty, self.n_samples, self.factor, self.least_squares)

    def squared_error(self, weights: ArrayLike, intercept: ArrayLike | None = None) -> FloatArray:
        """Residual sum of squares ‖X_t w_t + b_t − y_t‖² of each task, = ‖R_t (w_t, −1)‖² without b.

        Parameters
        ----------
        weights : (T, P) or (P,)
            One model per task, or one for all.
        intercept : (T,) or float, optional
            b; none by default.

        Returns
        -------
        (T,) float64
        """
        W = checked_weights(weights, self.n_tasks, self.n_features)
        if intercept is not None:
            return self.centred.squared_error(W) + self.means.offset_error(W, intercept)
        return self.quadratic.loss.squared_error(W)


def _zeros(n_tasks: int, n_features: int) -> FloatArray:
    return np.zeros((n_tasks, n_features + 2, n_features + 2))
