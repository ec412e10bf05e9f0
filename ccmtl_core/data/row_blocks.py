"""Check rows that arrive in blocks, and compute the order that groups rows by task or by fold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ccmtl_core.base.arguments import check_integer, check_kind
from ccmtl_core.base.arrays import (
    all_finite,
    as_float64,
    as_integers,
    check_columns,
    checked_index,
    column_names,
    features_or_default,
    is_whole,
    refuse_each,
)
from ccmtl_core.base.exceptions import DataError, ParameterError
from ccmtl_core.base.types import FloatArray, IntArray
from ccmtl_core.data.task_dataset import TaskDataset
from ccmtl_core.kernels.grouping import group_rows

Block = tuple[ArrayLike, ArrayLike, ArrayLike]
"""X (b, P), y (b,), task_index (b,) integers."""

IN_PLACE = np.empty(0, dtype=np.int64)
"""Stands for the order of rows that are grouped already."""

_FOLDS_OF_FEW_ROWS = 100  # are accepted, however few rows there are


def check_sizes(n_tasks: int, n_features: int) -> None:
    """Raise an error unless both numbers are integers of at least 1."""
    check_integer(n_tasks, "n_tasks")
    check_integer(n_features, "n_features")
    if n_tasks < 1 or n_features < 1:
        raise DataError("statistics need at least one task and one feature")


class BlockNames:
    """Names of the features: those given, or those of the first block that is a table; others must agree."""

    def __init__(self, feature_names: Sequence[str] | None, n_features: int) -> None:
        self._given = None if feature_names is None else features_or_default(feature_names, n_features)
        self._n_features = n_features
        if self._given is not None and len(self._given) != n_features:
            raise DataError(f"feature_names has {len(self._given)} names for {n_features} features")

    def take(self, number: int, X: ArrayLike) -> None:
        """Take the names of a block's columns; others than known, or in another order, are a DataError."""
        if self._given is None:
            self._given = column_names(X) or None
        else:
            check_columns(X, self._given, f"X of block {number}")

    def all(self) -> tuple[str, ...]:
        """Return the names; "x_1", "x_2", … if no block had any."""
        return features_or_default(self._given, self._n_features)


def group_by_task(
    number: int, block: Block, n_tasks: int, n_features: int, names: BlockNames
) -> tuple[FloatArray, FloatArray, IntArray, IntArray]:
    """Return one block's X and y as float64, and the order and offsets that group its rows by task.

    A DataError names the block and its bad rows.
    """
    what = f"block {number}"
    try:
        X, y, task_index = block
    except (TypeError, ValueError):
        raise DataError(f"{what} must be three arrays, (X, y, task_index)") from None
    features, targets = as_float64(X, f"{what}: X"), as_float64(y, f"{what}: y")
    index = checked_index(task_index, n_tasks, f"{what}: task_index")
    if features.shape != (len(index), n_features) or index.ndim != 1 or targets.shape != index.shape:
        raise DataError(
            f"{what}: X must be (b, {n_features}), y and task_index (b,); "
            f"got {features.shape}, {targets.shape}, {index.shape}"
        )
    if not (all_finite(features) and all_finite(targets)):
        bad = np.flatnonzero(~(np.isfinite(features).all(axis=1) & np.isfinite(targets)))
        refuse_each(bad, lambda row: f"{what}, row {row + 1}: a value is not finite")
    names.take(number, X)
    return (features, targets, *group_rows(index, n_tasks))


def group_by_fold(dataset: TaskDataset, fold: ArrayLike, n_folds: int) -> tuple[IntArray, IntArray, IntArray]:
    """Group the n rows of T tasks by task and fold; some of the K folds may be empty.

    Returns
    -------
    order : (n,) int64
        Row numbers, group after group. Groups follow the order of the rows, so memory is read once.
    offsets : (T K + 1,) int64
        Bounds of each group in ``order``.
    slot : (T K,) int64
        Where each group goes so that the tasks of one fold lie together: fold · T + task.
    """
    check_kind(dataset, "dataset", TaskDataset)
    if not is_whole(n_folds) or n_folds < 1:
        raise ParameterError(f"n_folds must be an integer of at least 1, not {n_folds!r}")
    n_rows = len(dataset.y)
    if n_folds > max(n_rows, _FOLDS_OF_FEW_ROWS):
        raise ParameterError(f"n_folds is {n_folds}: of {n_rows} rows most folds would be empty")
    index = checked_index(as_integers(fold, "fold", also="b"), n_folds, "fold")
    if index.shape != dataset.y.shape:
        raise DataError(f"fold must be {dataset.y.shape}; got {index.shape}")
    T = dataset.n_tasks
    order, offsets = group_rows(dataset.task_index * n_folds + index, T * n_folds)
    slot = np.arange(T * n_folds).reshape(n_folds, T).T.ravel()
    return order, offsets, slot
