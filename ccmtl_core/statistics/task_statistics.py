"""What both forms of the statistics share: how rows become statistics, and what is computed of these.

Training, validation errors, merging of partial results, appended data and forgetting need nothing else of the
rows (He et al., AAAI 2019, equation 2 depends on the data through them alone), whatever their number.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

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
from ccmtl_core.data.weighted_rows import WeightedRows, weighted_rows
from ccmtl_core.statistics.centring import Means, checked_factor, checked_weights, means_of
from ccmtl_core.statistics.least_squares import LeastSquares
from ccmtl_core.statistics.quadratic import Quadratic

Sums = Sequence[FloatArray]
"""All that a form adds up, an entry for each task along the first axis."""


class TaskStatistics(FrozenValue, ABC):
    """Statistics of T tasks with P features, in either form.

    Nobody can change them: arrays are copied, unless they and what they are views of are read-only.
    """

    n_samples: IntArray
    task_ids: tuple[str, ...]
    feature_names: tuple[str, ...]
    _alone: LeastSquares | None = None

    if TYPE_CHECKING:  # fields of one form, computed by the other

        @property
        def gram(self) -> FloatArray:
            """X_tᵀ X_t, (T, P, P)."""

        @property
        def xty(self) -> FloatArray:
            """X_tᵀ y_t, (T, P)."""

        @property
        def yty(self) -> FloatArray:
            """y_tᵀ y_t, (T,)."""

        @property
        def weight(self) -> FloatArray | None:
            """Effective number of rows, (T,), or None."""

        @property
        def x_sum(self) -> FloatArray | None:
            """Sum of the rows of X_t, (T, P), or None."""

        @property
        def y_sum(self) -> FloatArray | None:
            """Sum of y_t, (T,), or None."""

    def __repr__(self) -> str:
        tasks, features = counted(len(self.task_ids), "task"), named(self.feature_names, "feature")
        return shown(self, tasks, features, counted(int(self.n_samples.sum()), "row"))

    @classmethod
    def from_dataset(cls, dataset: TaskDataset, sample_weight: ArrayLike | None = None) -> Self:
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
        SufficientStatistics or TriangularStatistics
            Of the tasks of the dataset.

        Examples
        --------
        >>> from ccmtl_core import SufficientStatistics
        >>> data = TaskDataset.from_arrays([[[1.0], [2.0]]], [[1.0, 2.0]])
        >>> SufficientStatistics.from_dataset(data, [3, 1]).xty
        array([[7.]])
        """
        check_kind(dataset, "dataset", TaskDataset)
        if sample_weight is not None:
            return cls.by_fold(dataset, np.zeros(len(dataset.y), dtype=np.int64), 1, sample_weight)[0]
        sums = cls._zeros(dataset.n_tasks, dataset.n_features)
        X, y, offsets, slot = dataset.X, dataset.y, dataset.offsets, np.arange(dataset.n_tasks)
        parts = slices(dataset.n_tasks, 2 if X.size >= WORTH_SHARING else 1)

        def add(tasks: slice) -> bool:
            bounds = offsets[tasks.start : tasks.stop + 1]
            return cls._add_rows(sums, X, y, IN_PLACE, bounds, slot[tasks])

        with sharing(len(parts)) as share:
            beyond_doubt = all(share(add, parts))
        names = dataset.task_ids, dataset.feature_names
        return cls._of_sums(sums, dataset.n_samples, *names, beyond_doubt=beyond_doubt)

    @classmethod
    def from_blocks(
        cls,
        blocks: Iterable[Block],
        n_tasks: int,
        n_features: int,
        *,
        task_ids: Sequence[object] | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> Self:
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
        SufficientStatistics or TriangularStatistics

        Raises
        ------
        DataError
            A faulty block, or a table of other columns, named by its number, with the faulty rows.

        Examples
        --------
        >>> from ccmtl_core import SufficientStatistics
        >>> blocks = [([[1.0]], [2.0], [0]), ([[3.0], [4.0]], [5.0, 6.0], [1, 0])]
        >>> SufficientStatistics.from_blocks(blocks, n_tasks=2, n_features=1).xty.ravel()
        array([26., 15.])
        """
        check_sizes(n_tasks, n_features)
        names = BlockNames(feature_names, n_features)
        sums, n_samples = cls._zeros(n_tasks, n_features), np.zeros(n_tasks, dtype=np.int64)
        slot = np.arange(n_tasks)
        for number, block in enumerate(blocks):
            X, y, order, offsets = group_by_task(number, block, n_tasks, n_features, names)
            cls._add_rows(sums, X, y, order, offsets, slot)
            n_samples += np.diff(offsets)
        return cls._of_sums(sums, n_samples, ids_or_default(task_ids, n_tasks), names.all())

    @classmethod
    def by_fold(
        cls, dataset: TaskDataset, fold: ArrayLike, n_folds: int, sample_weight: ArrayLike | None = None
    ) -> list[Self]:
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
        list of n_folds statistics
            All with the tasks of the dataset. Training statistics are sums of these
            (:func:`ccmtl_core.training_statistics`), never the total minus one: that would cancel.
        """
        order, offsets, slot = group_by_fold(dataset, fold, n_folds)
        n_samples = np.empty(len(slot), dtype=np.int64)
        if sample_weight is None:
            sums = cls._zeros(len(slot), dataset.n_features)
            beyond_doubt = cls._add_rows(sums, dataset.X, dataset.y, order, offsets, slot)
            n_samples[slot] = np.diff(offsets)
        else:
            rows = weighted_rows(dataset, sample_weight)
            sums, beyond_doubt = cls._weighted_sums(rows, order, offsets, slot), False
            n_samples[slot] = rows.counts(order, offsets)
        T, names = dataset.n_tasks, (dataset.task_ids, dataset.feature_names)
        sums = tuple(map(locked, sums))  # the parts then share their memory
        parts = [slice(f * T, (f + 1) * T) for f in range(n_folds)]
        return [
            cls._of_sums([a[s] for a in sums], n_samples[s], *names, beyond_doubt=beyond_doubt) for s in parts
        ]

    @classmethod
    @abstractmethod
    def _zeros(cls, n_tasks: int, n_features: int) -> Sums:
        """Sums of no rows."""

    @classmethod
    @abstractmethod
    def _add_rows(
        cls, sums: Sums, X: FloatArray, y: FloatArray, order: IntArray, offsets: IntArray, slot: IntArray
    ) -> bool:
        """Add groups of rows as ``accumulate_gram`` takes them; whether the sums need no check."""

    @classmethod
    @abstractmethod
    def _weighted_sums(cls, rows: WeightedRows, order: IntArray, offsets: IntArray, slot: IntArray) -> Sums:
        """Sums of groups of weighted rows."""

    @classmethod
    @abstractmethod
    def _of_sums(
        cls,
        sums: Sums,
        n_samples: IntArray,
        task_ids: tuple[str, ...],
        names: tuple[str, ...],
        *,
        beyond_doubt: bool = False,
    ) -> Self:
        """From new arrays that nobody else holds."""

    @classmethod
    def _of_checked(cls, **values: Any) -> Self:
        """From what needs no check: the checks would take half as long as the pass over the rows."""
        new = object.__new__(cls)
        new.__dict__.update(values)
        return new

    def _freeze(self, **more: tuple[int, ...]) -> None:
        """Check names, counts and, where they are given, arrays, of axes T and P plus so many each."""
        task_ids = checked_names(self.task_ids, "task id")
        feature_names = checked_names(self.feature_names, "feature name")
        T, P = len(task_ids), len(feature_names)
        if not (T and P):
            raise DataError("statistics need at least one task and one feature")
        checked: dict[str, Any] = {"task_ids": task_ids, "feature_names": feature_names}
        for name, axes in more.items():
            if (given := getattr(self, name)) is not None:
                checked[name] = as_shape(given, (T, *(P + n for n in axes)), name)
        checked["n_samples"] = as_counts(self.n_samples, T)
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def __add__(self, other: Self) -> Self:
        if not isinstance(other, type(self)):
            return NotImplemented
        if self.task_ids != other.task_ids or self.feature_names != other.feature_names:
            raise DataError("only statistics of the same tasks and features, in the same order, add up")
        if (self.weight is None) is not (other.weight is None):
            raise DataError("only one of the statistics to add holds the sums of x and y")
        return self._like(self._added(other), self.n_samples + other.n_samples)

    def scaled(self, factor: float | FloatArray) -> Self:
        """Statistics in which each row counts ``factor`` times (forgetting: factor < 1).

        Parameters
        ----------
        factor : float or (T,) float64
            One for all, or one per task.

        Returns
        -------
        SufficientStatistics or TriangularStatistics
            With ``n_samples`` as it is.

        Raises
        ------
        ParameterError
            A factor that is negative or not finite.
        DataError
            A factor that is no number.
        """
        return self._like(self._multiplied(checked_factor(factor, self.n_tasks)), self.n_samples)

    def pooled(self) -> Self:
        """All tasks as one, with the id "pooled"."""
        return self._like(self._total(), self.n_samples.sum(keepdims=True), ("pooled",))

    def reordered(self, order: IntArray) -> Self:
        """The same tasks, renumbered: the new task t is the old ``order[t]``."""
        values = self._fields()
        arrays = {n: locked(value[order]) for n, value in values.items() if isinstance(value, np.ndarray)}
        ids = tuple(map(self.task_ids.__getitem__, order.tolist()))
        new = self._of_checked(**{**values, **arrays, "task_ids": ids})
        return new.knowing(self.least_squares.reordered(order))

    def knowing(self, least_squares: LeastSquares) -> Self:
        """Return a copy with least-squares solutions that are more exact than those the statistics give."""
        return self._of_checked(**self._fields(), _alone=least_squares)

    def _fields(self) -> dict[str, Any]:
        names = self.__annotations__  # of the form's own class: what it is made of
        return {name: getattr(self, name) for name in names}

    def _like(self, sums: Sums, n_samples: IntArray, task_ids: tuple[str, ...] | None = None) -> Self:
        return self._of_sums(sums, n_samples, task_ids or self.task_ids, self.feature_names)

    @abstractmethod
    def _added(self, other: Self) -> Sums: ...

    @abstractmethod
    def _multiplied(self, factors: FloatArray) -> Sums: ...

    @abstractmethod
    def _total(self) -> Sums: ...

    @abstractmethod
    def _centred(self, freedom: IntArray) -> tuple[Sums, LeastSquares]:
        """Sums of the centred rows, and their least squares, which leave so many rows to tell (T,)."""

    @abstractmethod
    def _least_squares(self) -> LeastSquares: ...

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
        return self._alone or self._least_squares()

    @cached_property
    def means(self) -> Means:
        """Weight, x̄ and ȳ of each task."""
        return means_of(self.weight, self.x_sum, self.y_sum)

    @cached_property
    def centred(self) -> Self:
        """The statistics of the centred rows: what is left for weights beside an intercept per task."""
        sums, alone = self._centred(np.maximum(self.n_samples - 1, 0))
        return self._like(sums, self.n_samples).knowing(alone)

    @cached_property
    def quadratic(self) -> Quadratic:
        """The loss of these statistics in the form that solvers take."""
        factor = getattr(self, "factor", None)
        return Quadratic(self.gram, self.xty, self.yty, self.n_samples, factor, self.least_squares)

    def squared_error(self, weights: ArrayLike, intercept: ArrayLike | None = None) -> FloatArray:
        """Residual sum of squares ‖X_t w_t + b_t − y_t‖² of each task.

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
