"""Rows in, sufficient statistics out: gram, xty, yty and n_samples of each task, in one pass.

Training, validation errors, merging of partial results, appended data and forgetting need
nothing else (He et al., AAAI 2019, equation 2 depends on the data through them alone):
T × (P² + P + 2) numbers, whatever the number of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ccmtl_core._types import FloatArray, IntArray
from ccmtl_core.exceptions import DataError, ParameterError
from ccmtl_core.gram_kernel import accumulate_grouped, accumulate_scattered
from ccmtl_core.least_squares import LeastSquares, least_squares_from_gram
from ccmtl_core.task_dataset import (
    TaskDataset,
    as_float64,
    checked_names,
    checked_task_index,
    default_feature_names,
    read_only,
    refuse,
)

Block = tuple[ArrayLike, ArrayLike, ArrayLike]


@dataclass(frozen=True, eq=False)
class SufficientStatistics:
    """Gram form of the statistics of T tasks with P features.

    Parameters
    ----------
    gram : (T, P, P) float64
        X_tᵀ X_t, symmetric.
    xty : (T, P) float64
        X_tᵀ y_t.
    yty : (T,) float64
        y_tᵀ y_t.
    n_samples : (T,) int64
        Rows seen; :meth:`scaled` leaves them as they are.
    task_ids : tuple of T str
        Distinct, not empty.
    feature_names : tuple of P str
        Distinct, not empty.

    Raises
    ------
    DataError
        Shapes that do not fit, values that are not finite.

    Examples
    --------
    >>> data = TaskDataset.from_arrays([[[1.0], [2.0]], [[3.0]]], [[1.0, 2.0], [3.0]])
    >>> statistics = SufficientStatistics.from_dataset(data)
    >>> statistics.gram.ravel(), statistics.yty
    (array([5., 9.]), array([5., 9.]))
    """

    gram: FloatArray
    xty: FloatArray
    yty: FloatArray
    n_samples: IntArray
    task_ids: tuple[str, ...]
    feature_names: tuple[str, ...]

    def __post_init__(self) -> None:
        task_ids = checked_names(self.task_ids, "task id")
        feature_names = checked_names(self.feature_names, "feature name")
        T, P = len(task_ids), len(feature_names)
        if not (T and P):
            raise DataError("statistics need at least one task and one feature")
        arrays: dict[str, Any] = {
            "gram": as_float64(self.gram, "gram"),
            "xty": as_float64(self.xty, "xty"),
            "yty": as_float64(self.yty, "yty"),
            "n_samples": np.ascontiguousarray(self.n_samples, dtype=np.int64),
        }
        shapes = {"gram": (T, P, P), "xty": (T, P), "yty": (T,), "n_samples": (T,)}
        refuse(
            [
                f"{name} must be {shapes[name]}; got {array.shape}"
                for name, array in arrays.items()
                if array.shape != shapes[name]
            ]
        )
        for name, array in arrays.items():
            object.__setattr__(self, name, read_only(array))
        object.__setattr__(self, "task_ids", task_ids)
        object.__setattr__(self, "feature_names", feature_names)
        self._refuse_non_finite()

    def _refuse_non_finite(self) -> None:
        finite = np.isfinite(self.yty) & np.isfinite(self.xty).all(axis=1)
        finite &= np.isfinite(self.gram).all(axis=(1, 2))
        refuse(
            [
                f"task {self.task_ids[t]!r}: its statistics are not finite (values whose squares overflow?)"
                for t in np.flatnonzero(~finite)
            ]
        )

    @classmethod
    def from_dataset(cls, dataset: TaskDataset) -> SufficientStatistics:
        """Statistics of a dataset, in one pass over its rows."""
        gram, xty, yty = _zeros(dataset.n_tasks, dataset.n_features)
        accumulate_grouped(dataset.X, dataset.y, dataset.offsets, gram, xty, yty)
        return cls(gram, xty, yty, dataset.n_samples, dataset.task_ids, dataset.feature_names)

    @classmethod
    def from_blocks(
        cls,
        blocks: Iterable[Block],
        n_tasks: int,
        n_features: int,
        *,
        task_ids: Sequence[object] | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> SufficientStatistics:
        """Statistics of rows that arrive in pieces, each piece read once and let go.

        Parameters
        ----------
        blocks : iterable of (X, y, task_index)
            X (b, P), y (b,), task_index (b,) integers in [0, T); rows in any order.
        n_tasks, n_features : int
            T and P.
        task_ids : T ids, optional
            Default "0", "1", ….
        feature_names : P names, optional
            Default "x_1", "x_2", ….

        Raises
        ------
        DataError
            A faulty block, named by its number, with the faulty rows.

        Examples
        --------
        >>> blocks = [([[1.0]], [2.0], [0]), ([[3.0], [4.0]], [5.0, 6.0], [1, 0])]
        >>> SufficientStatistics.from_blocks(blocks, n_tasks=2, n_features=1).xty.ravel()
        array([26., 15.])
        """
        gram, xty, yty = _zeros(n_tasks, n_features)
        n_samples = np.zeros(n_tasks, dtype=np.int64)
        for number, (X, y, task_index) in enumerate(blocks):
            features, targets, index = _checked_block(number, X, y, task_index, n_tasks, n_features)
            accumulate_scattered(features, targets, index, gram, xty, yty)
            n_samples += np.bincount(index, minlength=n_tasks)
        ids = [str(t) for t in range(n_tasks)] if task_ids is None else task_ids
        names = default_feature_names(n_features) if feature_names is None else feature_names
        return cls(gram, xty, yty, n_samples, tuple(map(str, ids)), tuple(names))

    @classmethod
    def by_fold(cls, dataset: TaskDataset, fold: ArrayLike, n_folds: int) -> list[SufficientStatistics]:
        """Statistics of each fold of the rows, all in one pass.

        Parameters
        ----------
        dataset : TaskDataset
            The rows.
        fold : (n,) integers in [0, n_folds)
            The fold of each row of ``dataset.X``; a boolean mask gives two folds.
        n_folds : int
            How many.

        Returns
        -------
        list of n_folds SufficientStatistics
            All with the tasks of the dataset. Training statistics are sums of these
            (:func:`training_folds`), never the total minus one: that would cancel.
        """
        index = np.asarray(fold)
        index = checked_task_index(index.astype(np.int64) if index.dtype == bool else index, n_folds)
        if index.shape != dataset.y.shape:
            raise DataError(f"fold must be {dataset.y.shape}; got {index.shape}")
        T = dataset.n_tasks
        slot = index * T + dataset.task_index
        gram, xty, yty = _zeros(n_folds * T, dataset.n_features)
        accumulate_scattered(dataset.X, dataset.y, slot, gram, xty, yty)
        n_samples = np.bincount(slot, minlength=n_folds * T)
        pieces = [slice(f * T, (f + 1) * T) for f in range(n_folds)]
        return [
            cls(gram[s], xty[s], yty[s], n_samples[s], dataset.task_ids, dataset.feature_names)
            for s in pieces
        ]

    def __add__(self, other: SufficientStatistics) -> SufficientStatistics:
        if not isinstance(other, SufficientStatistics):
            return NotImplemented
        if self.task_ids != other.task_ids or self.feature_names != other.feature_names:
            raise DataError("only statistics of the same tasks and features, in the same order, add up")
        return SufficientStatistics(
            self.gram + other.gram,
            self.xty + other.xty,
            self.yty + other.yty,
            self.n_samples + other.n_samples,
            self.task_ids,
            self.feature_names,
        )

    def scaled(self, factor: float) -> SufficientStatistics:
        """Statistics in which each row counts ``factor`` times (forgetting: factor < 1).

        Raises
        ------
        ParameterError
            A factor that is negative or not finite.
        """
        if not (np.isfinite(factor) and factor >= 0):
            raise ParameterError(f"factor must be finite and not negative, not {factor}")
        return SufficientStatistics(
            self.gram * factor,
            self.xty * factor,
            self.yty * factor,
            self.n_samples,
            self.task_ids,
            self.feature_names,
        )

    def pooled(self) -> SufficientStatistics:
        """All tasks as one, with the id "pooled"."""
        return SufficientStatistics(
            _sum_of_tasks(self.gram)[None],
            _sum_of_tasks(self.xty)[None],
            self.yty.sum(keepdims=True),
            self.n_samples.sum(keepdims=True),
            ("pooled",),
            self.feature_names,
        )

    @property
    def n_tasks(self) -> int:
        """T, the number of tasks."""
        return len(self.task_ids)

    @property
    def n_features(self) -> int:
        """P, the number of features."""
        return len(self.feature_names)

    @property
    def total_yty(self) -> float:
        """Σ_t y_tᵀ y_t."""
        return float(self.yty.sum())

    @cached_property
    def least_squares(self) -> LeastSquares:
        """Minimum-norm least squares of each task alone."""
        return least_squares_from_gram(self.gram, self.xty, self.yty, self.n_samples)

    def squared_error(self, weights: ArrayLike) -> FloatArray:
        """Residual sum of squares ‖X_t w_t − y_t‖² of each task.

        Computed as RSS_t + (w − ŵ_t)ᵀ G_t (w − ŵ_t) around the task's own least squares ŵ_t:
        yᵀy − 2cᵀw + wᵀGw would cancel.

        Parameters
        ----------
        weights : (T, P) or (P,)
            One model per task, or one for all.

        Returns
        -------
        (T,) float64
        """
        W = np.asarray(weights, dtype=np.float64)
        if W.shape not in {(self.n_tasks, self.n_features), (self.n_features,)}:
            raise DataError(f"weights must be ({self.n_tasks}, {self.n_features}); got {W.shape}")
        start = self.least_squares
        D = W - start.weights
        quadratic: FloatArray = np.matmul(np.matmul(D[:, None, :], self.gram), D[:, :, None])[:, 0, 0]
        error: FloatArray = start.residual + np.maximum(quadratic, 0.0)
        return error


def training_folds(folds: Sequence[SufficientStatistics]) -> list[SufficientStatistics]:
    """For each fold the sum of the others, built from prefix and suffix sums.

    Raises
    ------
    ParameterError
        Fewer than two folds.
    """
    if len(folds) < 2:
        raise ParameterError(f"at least two folds are needed, not {len(folds)}")
    before, after = [folds[0]], [folds[-1]]
    for part in folds[1:-1]:
        before.append(before[-1] + part)
    for part in folds[-2:0:-1]:
        after.append(part + after[-1])
    after.reverse()
    middle = [before[f - 1] + after[f] for f in range(1, len(folds) - 1)]
    return [after[0], *middle, before[-1]]


def _zeros(n_tasks: int, n_features: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    return np.zeros((n_tasks, n_features, n_features)), np.zeros((n_tasks, n_features)), np.zeros(n_tasks)


def _sum_of_tasks(array: FloatArray) -> FloatArray:
    """Sum over the first axis, pairwise (a plain sum over it would add one task after the other)."""
    columns = np.ascontiguousarray(array.reshape(len(array), -1).T)
    total: FloatArray = columns.sum(axis=1).reshape(array.shape[1:])
    return total


def _checked_block(
    number: int, X: ArrayLike, y: ArrayLike, task_index: ArrayLike, n_tasks: int, n_features: int
) -> tuple[FloatArray, FloatArray, IntArray]:
    features, targets = as_float64(X, f"block {number}: X"), as_float64(y, f"block {number}: y")
    index = checked_task_index(task_index, n_tasks)
    if features.shape != (len(targets), n_features) or targets.ndim != 1 or index.shape != targets.shape:
        raise DataError(
            f"block {number}: X must be (b, {n_features}), y and task_index (b,); "
            f"got {features.shape}, {targets.shape}, {index.shape}"
        )
    if not (np.isfinite(features).all() and np.isfinite(targets).all()):
        bad = np.flatnonzero(~(np.isfinite(features).all(axis=1) & np.isfinite(targets)))
        refuse([f"block {number}, row {row}: not finite" for row in bad])
    return features, targets, index
