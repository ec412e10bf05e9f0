"""The Gram form of the statistics: products of X and y of each task, and sums for an intercept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from ccmtl_core.base.arrays import checked_names, locked, refuse
from ccmtl_core.base.display import quoted
from ccmtl_core.base.exceptions import DataError
from ccmtl_core.base.types import FloatArray, IntArray
from ccmtl_core.statistics.centring import centred_gram
from ccmtl_core.statistics.gram_checks import refuse_impossible, refuse_impossible_sums
from ccmtl_core.statistics.gram_totals import add_rows, sum_of_tasks, weighted_totals, zeros
from ccmtl_core.statistics.least_squares import LeastSquares, least_squares_from_gram
from ccmtl_core.statistics.task_statistics import Sums, TaskStatistics

ADDED = ("gram", "xty", "yty", "x_sum", "y_sum", "weight")
"""What adds up, in the order of :mod:`.gram_totals`; the last three only where they are known."""


@dataclass(frozen=True, eq=False, repr=False)
class SufficientStatistics(TaskStatistics):
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
    >>> from ccmtl_core import TaskDataset
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
        self._freeze(gram=(0, 0), xty=(0,), yty=(), weight=(), x_sum=(0,), y_sum=())
        refuse_impossible(self.task_ids, self.gram, self.xty, self.yty, self.n_samples)
        weight, x_sum, y_sum = self.weight, self.x_sum, self.y_sum
        if weight is not None and x_sum is not None and y_sum is not None:
            refuse_impossible_sums(self.task_ids, self.gram, self.yty, weight, x_sum, y_sum)
            return
        given = [name for name in ("weight", "x_sum", "y_sum") if getattr(self, name) is not None]
        if given:
            raise DataError(f"weight, x_sum and y_sum go together; got {', '.join(given)} alone")

    def take_features(self, names: Sequence[str]) -> Self:
        """Statistics of the same rows with some of the features, in the order named.

        Raises
        ------
        DataError
            A name that is not among ``feature_names``, that stands twice, or none.

        Examples
        --------
        >>> from ccmtl_core import TaskDataset
        >>> data = TaskDataset.from_arrays([[[1.0, 2.0]]], [[3.0]], feature_names=["price", "stock"])
        >>> SufficientStatistics.from_dataset(data).take_features(["stock"]).gram.ravel()
        array([4.])
        """
        wanted = checked_names(names, "feature name")
        place = {name: p for p, name in enumerate(self.feature_names)}
        refuse([f"there is no feature {quoted(name)}" for name in wanted if name not in place])
        if not wanted:
            raise DataError("names must hold at least one feature")
        p = np.array([place[name] for name in wanted])
        x_sum = None if self.x_sum is None else locked(self.x_sum.take(p, axis=1))
        gram = self.gram.take(p, axis=1).take(p, axis=2)  # one index for both lays them out by columns
        taken = {"gram": locked(gram), "xty": locked(self.xty.take(p, axis=1)), "x_sum": x_sum}
        return self._of_checked(**{**self._fields(), **taken, "feature_names": wanted})

    _zeros = staticmethod(zeros)
    _add_rows = staticmethod(add_rows)
    _weighted_sums = staticmethod(weighted_totals)

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
        make = cls._of_checked if beyond_doubt else cls
        arrays = dict(zip(ADDED, map(locked, sums), strict=False))
        return make(**arrays, n_samples=locked(n_samples), task_ids=task_ids, feature_names=names)

    def _sums(self) -> Sums:
        """All that adds up: gram, xty, yty and, where known, x_sum, y_sum, weight."""
        return [a for a in (getattr(self, name) for name in ADDED) if a is not None]

    def _added(self, other: Self) -> Sums:
        return [a + b for a, b in zip(self._sums(), other._sums(), strict=True)]

    def _multiplied(self, factors: FloatArray) -> Sums:
        return [(a.T * factors).T for a in self._sums()]

    def _total(self) -> Sums:
        return [sum_of_tasks(a)[None] for a in self._sums()]

    def _least_squares(self) -> LeastSquares:
        return least_squares_from_gram(self.gram, self.xty, self.yty, self.n_samples)

    def _centred(self, freedom: IntArray) -> tuple[Sums, LeastSquares]:
        rest = centred_gram(self.gram, self.xty, self.yty, self.means, self.n_samples)
        before = np.diagonal(self.gram, axis1=1, axis2=2), self.yty
        alone = least_squares_from_gram(rest.gram, rest.xty, rest.yty, freedom, before)
        hides = alone.hides | (rest.hides & (alone.residual > 0.0))
        no_sums = np.zeros_like(self.xty), np.zeros_like(self.yty)
        return (rest.gram, rest.xty, rest.yty, *no_sums, self.means.weight), replace(alone, hides=hides)
