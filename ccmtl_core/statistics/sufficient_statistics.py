"""Sufficient statistics of each task (gram, xty, yty, n_samples), computed in one pass over rows.

Training, validation errors, merging of partial results, appended data and forgetting need
nothing else (He et al., AAAI 2019, equation 2 depends on the data through them alone):
T × (P² + P + 2) numbers, and P + 2 sums for an intercept, whatever the number of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ccmtl_core.base.arguments import check_kind
from ccmtl_core.base.arrays import as_counts, as_shape, checked_names, ids_or_default, locked
from ccmtl_core.base.display import counted, named, shown
from ccmtl_core.base.exceptions import DataError
from ccmtl_core.base.frozen_value import FrozenValue
from ccmtl_core.base.threads import WORTH_SHARING, sharing, slices
from ccmtl_core.base.types import FloatArray, IntArray
from ccmtl_core.data.row_blocks import IN_PLACE, Block, BlockNames, check_sizes, group_by_fold, group_by_task
from ccmtl_core.data.task_dataset import TaskDataset
from ccmtl_core.data.weighted_rows import weighted_rows
from ccmtl_core.kernels.statistics.gram_kernel import accumulate_gram
from ccmtl_core.statistics.centring import (
    Means,
    centred_gram,
    checked_factor,
    checked_weights,
    means_of,
    refuse_unequal_sums,
)
from ccmtl_core.statistics.gram_checks import refuse_impossible, refuse_impossible_sums
from ccmtl_core.statistics.gram_totals import Totals, sum_of_tasks, weighted_totals, zeros
from ccmtl_core.statistics.least_squares import LeastSquares, least_squares_from_gram
from ccmtl_core.statistics.quadratic import Quadratic


@dataclass(frozen=True, eq=False)
class SufficientStatistics(FrozenValue):
    """Gram form of the statistics of T tasks with P features.

    Nobody can change them: arrays are copied, unless they and what they are views of are read-only.

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
    weight : (T,) float64, optional
        Effective number of rows: ``n_samples`` as :meth:`scaled` scales them.
    x_sum : (T, P) float64, optional
        Sum of the rows of X_t.
    y_sum : (T,) float64, optional
        Sum of y_t. All three or none; an intercept needs them.

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
    weight: FloatArray | None = None
    x_sum: FloatArray | None = None
    y_sum: FloatArray | None = None

    def __post_init__(self) -> None:
        task_ids = checked_names(self.task_ids, "task id")
        feature_names = checked_names(self.feature_names, "feature name")
        T, P = len(task_ids), len(feature_names)
        if not (T and P):
            raise DataError("statistics need at least one task and one feature")
        checked: dict[str, Any] = {
            "gram": as_shape(self.gram, (T, P, P), "gram"),
            "xty": as_shape(self.xty, (T, P), "xty"),
            "yty": as_shape(self.yty, (T,), "yty"),
            "n_samples": as_counts(self.n_samples, T),
            "task_ids": task_ids,
            "feature_names": feature_names,
        }
        sums = {"weight": (T,), "x_sum": (T, P), "y_sum": (T,)}
        given = [name for name in sums if getattr(self, name) is not None]
        if given and len(given) < len(sums):
            raise DataError(f"weight, x_sum and y_sum go together; got {', '.join(given)} alone")
        checked.update((name, as_shape(getattr(self, name), sums[name], name)) for name in given)
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        refuse_impossible(self.task_ids, self.gram, self.xty, self.yty, self.n_samples)
        if self.weight is not None and self.x_sum is not None and self.y_sum is not None:
            refuse_impossible_sums(self.task_ids, self.gram, self.yty, self.weight, self.x_sum, self.y_sum)

    def __repr__(self) -> str:
        tasks, features = counted(len(self.task_ids), "task"), named(self.feature_names, "feature")
        return shown(self, tasks, features, counted(int(self.n_samples.sum()), "row"))

    @classmethod
    def from_dataset(
        cls, dataset: TaskDataset, sample_weight: ArrayLike | None = None
    ) -> SufficientStatistics:
        """Statistics of a dataset, in one pass over its rows.

        Parameters
        ----------
        dataset : TaskDataset
            n rows.
        sample_weight : (n,) array of numbers, optional
            What each row counts, finite and not negative; 1 by default. Rows that count 0 are not among
            ``n_samples``. A weighted copy of the rows is made.

        Returns
        -------
        SufficientStatistics

        Examples
        --------
        >>> data = TaskDataset.from_arrays([[[1.0], [2.0]]], [[1.0, 2.0]])
        >>> SufficientStatistics.from_dataset(data, [3, 1]).xty
        array([[7.]])
        """
        check_kind(dataset, "dataset", TaskDataset)
        if sample_weight is not None:
            return cls.by_fold(dataset, np.zeros(len(dataset.y), dtype=np.int64), 1, sample_weight)[0]
        totals = zeros(dataset.n_tasks, dataset.n_features)
        X, y, offsets, slot = dataset.X, dataset.y, dataset.offsets, np.arange(dataset.n_tasks)
        parts = slices(dataset.n_tasks, 2 if X.size >= WORTH_SHARING else 1)

        def accumulate(tasks: slice) -> bool:
            bounds = offsets[tasks.start : tasks.stop + 1]
            return accumulate_gram(X, y, IN_PLACE, bounds, slot[tasks], *totals)

        with sharing(len(parts)) as share:
            beyond_doubt = all(share(accumulate, parts))
        return cls._of_rows(totals, dataset.n_samples, dataset, beyond_doubt)

    @classmethod
    def _of_rows(
        cls, totals: Totals, n_samples: IntArray, dataset: TaskDataset, beyond_doubt: bool
    ) -> SufficientStatistics:
        """From sums over the rows of a dataset, which need no check but where squares over- or underflow."""
        gram, xty, yty, x_sum, y_sum = map(locked, totals)
        make = cls._of_checked if beyond_doubt else cls
        return make(
            gram=gram,
            xty=xty,
            yty=yty,
            n_samples=locked(n_samples),
            task_ids=dataset.task_ids,
            feature_names=dataset.feature_names,
            weight=locked(n_samples.astype(np.float64)),
            x_sum=x_sum,
            y_sum=y_sum,
        )

    @classmethod
    def _of_checked(cls, **values: Any) -> SufficientStatistics:
        """From what needs no check: the checks would take half as long as the pass over the rows."""
        new = object.__new__(cls)
        new.__dict__.update(values)
        return new

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
            By default the columns of the first block that is a table, or else "x_1", "x_2", ….

        Returns
        -------
        SufficientStatistics

        Raises
        ------
        DataError
            A faulty block, or a table of other columns, named by its number, with the faulty rows.

        Examples
        --------
        >>> blocks = [([[1.0]], [2.0], [0]), ([[3.0], [4.0]], [5.0, 6.0], [1, 0])]
        >>> SufficientStatistics.from_blocks(blocks, n_tasks=2, n_features=1).xty.ravel()
        array([26., 15.])
        """
        check_sizes(n_tasks, n_features)
        names = BlockNames(feature_names, n_features)
        totals = zeros(n_tasks, n_features)
        n_samples = np.zeros(n_tasks, dtype=np.int64)
        slot = np.arange(n_tasks)
        for number, block in enumerate(blocks):
            X, y, order, offsets = group_by_task(number, block, n_tasks, n_features, names)
            accumulate_gram(X, y, order, offsets, slot, *totals)
            n_samples += np.diff(offsets)
        ids = ids_or_default(task_ids, n_tasks)
        gram, xty, yty, x_sum, y_sum = map(locked, totals)
        weight = locked(n_samples.astype(np.float64))
        return cls(gram, xty, yty, locked(n_samples), ids, names.all(), weight, x_sum, y_sum)

    @classmethod
    def by_fold(
        cls, dataset: TaskDataset, fold: ArrayLike, n_folds: int, sample_weight: ArrayLike | None = None
    ) -> list[SufficientStatistics]:
        """Statistics of each fold of the rows, all in one pass.

        Parameters
        ----------
        dataset : TaskDataset
            The rows.
        fold : (n,) integers in [0, n_folds)
            The fold of each row of ``dataset.X``; a boolean mask gives two folds.
        n_folds : int
            How many.
        sample_weight : (n,) array of numbers, optional
            As in :meth:`from_dataset`.

        Returns
        -------
        list of n_folds SufficientStatistics
            All with the tasks of the dataset. Training statistics are sums of these
            (:func:`ccmtl_core.training_statistics`), never the total minus one: that would cancel.
        """
        order, offsets, slot = group_by_fold(dataset, fold, n_folds)
        T = dataset.n_tasks
        parts = [slice(f * T, (f + 1) * T) for f in range(n_folds)]
        n_samples = np.empty(len(slot), dtype=np.int64)
        if sample_weight is None:
            totals = zeros(len(slot), dataset.n_features)
            sure = accumulate_gram(dataset.X, dataset.y, order, offsets, slot, *totals)
            n_samples[slot] = np.diff(offsets)
            return [cls._of_rows(tuple(a[s] for a in totals), n_samples[s], dataset, sure) for s in parts]
        rows = weighted_rows(dataset, sample_weight)
        totals, weight = weighted_totals(rows, order, offsets, slot)
        gram, xty, yty, x_sum, y_sum, weight = map(locked, (*totals, weight))
        n_samples[slot] = rows.counts(order, offsets)
        n_samples = locked(n_samples)
        names = dataset.task_ids, dataset.feature_names
        return [
            cls(gram[s], xty[s], yty[s], n_samples[s], *names, weight[s], x_sum[s], y_sum[s]) for s in parts
        ]

    def __add__(self, other: SufficientStatistics) -> SufficientStatistics:
        if not isinstance(other, SufficientStatistics):
            return NotImplemented
        if self.task_ids != other.task_ids or self.feature_names != other.feature_names:
            raise DataError("only statistics of the same tasks and features, in the same order, add up")
        refuse_unequal_sums(self.weight, other.weight)
        return self._like(
            [a + b for a, b in zip(self._sums(), other._sums(), strict=True)],
            self.n_samples + other.n_samples,
            self.task_ids,
        )

    def scaled(self, factor: float | FloatArray) -> SufficientStatistics:
        """Statistics in which each row counts ``factor`` times (forgetting: factor < 1).

        Parameters
        ----------
        factor : float or (T,) float64
            One for all, or one per task.

        Returns
        -------
        SufficientStatistics
            Of the same tasks.

        Raises
        ------
        ParameterError
            A factor that is negative or not finite.
        DataError
            A factor that is no number.
        """
        factors = checked_factor(factor, self.n_tasks)
        sums = [(a.T * factors).T for a in self._sums()]
        return self._like(sums, self.n_samples, self.task_ids)

    def pooled(self) -> SufficientStatistics:
        """All tasks as one, with the id "pooled"."""
        sums = [sum_of_tasks(a)[None] for a in self._sums()]
        return self._like(sums, self.n_samples.sum(keepdims=True), ("pooled",))

    def reordered(self, order: IntArray) -> SufficientStatistics:
        """The same tasks, renumbered: the new task t is the old ``order[t]``."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        arrays = {n: locked(value[order]) for n, value in values.items() if isinstance(value, np.ndarray)}
        ids = tuple(map(self.task_ids.__getitem__, order.tolist()))
        new = self._of_checked(**{**values, **arrays, "task_ids": ids})
        new.__dict__["least_squares"] = self.least_squares.reordered(order)
        return new

    def _sums(self) -> list[FloatArray]:
        """All that adds up: gram, xty, yty and, where known, weight, x_sum, y_sum."""
        return [
            a for a in (self.gram, self.xty, self.yty, self.weight, self.x_sum, self.y_sum) if a is not None
        ]

    def _like(
        self, sums: Sequence[FloatArray], n_samples: IntArray, task_ids: tuple[str, ...]
    ) -> SufficientStatistics:
        """Other sums of the kind of :meth:`_sums`, new arrays, of the same features."""
        gram, xty, yty, *rest = map(locked, sums)
        return SufficientStatistics(gram, xty, yty, locked(n_samples), task_ids, self.feature_names, *rest)

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

    @cached_property
    def means(self) -> Means:
        """Weight, x̄ and ȳ of each task."""
        return means_of(self.weight, self.x_sum, self.y_sum)

    @cached_property
    def centred(self) -> SufficientStatistics:
        """The statistics of the centred rows: what is left for weights beside an intercept per task."""
        means = self.means
        rest = centred_gram(self.gram, self.xty, self.yty, means, self.n_samples)
        zeros = np.zeros_like(self.xty), np.zeros_like(self.yty)
        new = self._like([rest.gram, rest.xty, rest.yty, means.weight, *zeros], self.n_samples, self.task_ids)
        before = np.diagonal(self.gram, axis1=1, axis2=2), self.yty
        freedom = np.maximum(self.n_samples - 1, 0)  # rows that centring leaves
        alone = least_squares_from_gram(rest.gram, rest.xty, rest.yty, freedom, before)
        hides = alone.hides | (rest.hides & (alone.residual > 0.0))
        new.__dict__["least_squares"] = replace(alone, hides=hides)
        return new

    @cached_property
    def quadratic(self) -> Quadratic:
        """What a solver sees of them."""
        return Quadratic(self.gram, self.xty, self.yty, self.n_samples, None, self.least_squares)

    def squared_error(self, weights: ArrayLike, intercept: ArrayLike | None = None) -> FloatArray:
        """Residual sum of squares ‖X_t w_t + b_t − y_t‖² of each task.

        Computed as RSS_t + (w − ŵ_t)ᵀ G_t (w − ŵ_t) around the task's own least squares ŵ_t, with an
        intercept from the centred rows: yᵀy − 2cᵀw + wᵀGw would cancel.

        Parameters
        ----------
        weights : (T, P) or (P,)
            One model per task, or one for all.
        intercept : (T,) or float, optional
            b; none by default.

        Returns
        -------
        (T,) float64

        Raises
        ------
        DataError
            Wrong shapes; an intercept, and the statistics have no sums.
        """
        W = checked_weights(weights, self.n_tasks, self.n_features)
        if intercept is not None:
            return self.centred.squared_error(W) + self.means.offset_error(W, intercept)
        return self.quadratic.loss.squared_error(W)
