"""Part rows into folds for cross-validation, and add up the statistics of the folds that train."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from itertools import accumulate
from numbers import Real
from operator import add
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ccmtl_core.base.arguments import check_integer, check_kind
from ccmtl_core.base.arrays import as_array, distinct_moments
from ccmtl_core.base.exceptions import DataError, ParameterError
from ccmtl_core.base.types import IntArray
from ccmtl_core.data.task_dataset import TaskDataset
from ccmtl_core.statistics.inputs import check_data
from ccmtl_core.statistics.sufficient_statistics import SufficientStatistics
from ccmtl_core.statistics.triangular_statistics import TriangularStatistics

Statistics = TypeVar("Statistics", SufficientStatistics, TriangularStatistics)

_TIMES = (Real, Decimal, date, timedelta, np.datetime64)


def training_statistics(folds: Sequence[Statistics], *, rolling: bool = False) -> list[Statistics]:
    """Return, for each fold held out, the statistics of what trains: all other folds, or those before it.

    They are sums of folds, about 3 K additions for K of them: the total minus one fold would lose digits, and
    leave eigenvalues below zero.

    Parameters
    ----------
    folds : sequence of K statistics
        Of the same tasks, K ≥ 2; with ``rolling`` blocks of time, the oldest first.
    rolling : bool
        Train on the folds before alone. The first is then never held out.

    Returns
    -------
    list of statistics
        K of them, or with ``rolling`` K − 1.

    Raises
    ------
    ParameterError
        Fewer than two folds.

    Examples
    --------
    >>> from ccmtl_core import TaskDataset
    >>> data = TaskDataset.from_arrays([[[1.0], [2.0], [3.0]]], [[1.0, 1.0, 1.0]])
    >>> folds = SufficientStatistics.by_fold(data, [0, 1, 2], 3)
    >>> [float(part.xty[0, 0]) for part in training_statistics(folds)]
    [5.0, 4.0, 3.0]
    >>> [float(part.xty[0, 0]) for part in training_statistics(folds, rolling=True)]
    [1.0, 3.0]
    """
    check_number(len(folds))
    before: list[Statistics] = list(accumulate(folds[:-1], add))
    if rolling:
        return before
    after: list[Statistics] = list(accumulate(folds[:0:-1], lambda later, fold: fold + later))[::-1]
    return [after[0], *map(add, before[:-1], after[1:]), before[-1]]


def random_folds(dataset: TaskDataset, n_folds: int, rng: np.random.Generator) -> IntArray:
    """Draw the fold of each row, so that a task has as many rows in one fold as in another, or one more.

    Returns
    -------
    (n,) int64
        In [0, n_folds). Which folds get one more is drawn too, task by task.

    Examples
    --------
    >>> data = TaskDataset.from_arrays([np.ones((4, 1))] * 2, [np.ones(4)] * 2)
    >>> np.bincount(random_folds(data, 2, np.random.default_rng(0)))
    array([4, 4])
    """
    check_data(dataset, TaskDataset)
    check_number(n_folds)
    check_kind(rng, "rng", np.random.Generator)
    order = np.lexsort((rng.random(len(dataset.y)), dataset.task_index))
    shift = rng.integers(0, n_folds, dataset.n_tasks)
    fold = np.empty(len(order), dtype=np.int64)
    fold[order] = (_place(dataset) + shift[dataset.task_index]) % n_folds
    return fold


def contiguous_folds(dataset: TaskDataset, n_folds: int, time: ArrayLike | None = None) -> IntArray:
    """Cut the rows into blocks that follow each other, for contiguous folds and for rolling origins.

    Parameters
    ----------
    dataset : TaskDataset
        n rows.
    n_folds : int
        Blocks, 2 or more.
    time : (n,) array of numbers, dates or datetimes, optional
        When each row of ``dataset.X`` was: blocks then hold the same number of distinct times. Otherwise the
        rows of each task are cut into equal parts in their order.

    Returns
    -------
    (n,) int64
        In [0, n_folds), the earliest 0.

    Raises
    ------
    DataError
        Times that are not one for each row, missing ones, text, or fewer distinct ones than folds.

    Examples
    --------
    >>> data = TaskDataset.from_arrays([np.ones((4, 1))], [np.ones(4)])
    >>> contiguous_folds(data, 2)
    array([0, 0, 1, 1])
    >>> contiguous_folds(data, 2, [9, 1, 9, 9])
    array([1, 0, 1, 1])
    """
    check_data(dataset, TaskDataset)
    check_number(n_folds)
    if time is None:
        return _place(dataset) * n_folds // np.maximum(dataset.n_samples, 1)[dataset.task_index]
    _check_times(as_array(time, "time"))
    n_times, place = distinct_moments(time, dataset.y.shape, "time")
    if n_times < n_folds:
        raise DataError(
            f"the rows have {n_times} distinct times, too few for {n_folds} folds (rolling "
            "ones are one more than n_folds): take a smaller n_folds"
        )
    fold: IntArray = place * n_folds // n_times
    return fold


def _check_times(time: NDArray[Any]) -> None:
    """Refuse what does not say when a row was, such as text, where "10" is before "9"."""
    if time.dtype.kind == "O":
        kinds = {type(value) for value in time.flat if value is not None}
        wrong = [kind for kind in kinds if not issubclass(kind, _TIMES) or issubclass(kind, bool)]
    else:
        wrong = [] if time.dtype.kind in "iufMm" else [time.dtype.type]
    if wrong:
        names = " and ".join(sorted(kind.__name__ for kind in wrong))
        raise DataError(
            f"time must hold numbers, dates or datetimes, not {names}: text of dates becomes datetimes by "
            "np.array(time, dtype='datetime64'), text of numbers numbers by np.array(time, dtype=float)"
        )


def _place(dataset: TaskDataset) -> IntArray:
    """Return the place of each row in its task, (n,)."""
    return np.asarray(np.arange(len(dataset.y)) - dataset.offsets[:-1][dataset.task_index])


def check_number(n_folds: int, least: int = 2) -> None:
    """Refuse a number of folds that is no integer, or too small to hold one out."""
    check_integer(n_folds, "n_folds")
    if n_folds < least:
        needed = "one fold is" if least == 1 else "two folds are"
        raise ParameterError(f"at least {needed} needed, not {n_folds!r}")
