"""The samples of many tasks in one value: X and y grouped by task, with where each task begins.

It checks what every computation relies on (shapes, number types, finite values, distinct ids), so that
whoever is handed a ``TaskDataset`` need not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ccmtl_core.base.arrays import (
    MAX_FAULTS,
    all_finite,
    as_float64,
    as_id,
    as_integers,
    as_sequence,
    check_columns,
    checked_index,
    checked_names,
    features_or_default,
    ids_or_default,
    is_whole,
    locked,
    read_only,
    refuse,
    refuse_each,
)
from ccmtl_core.base.display import counted, named, quoted, shown, spread
from ccmtl_core.base.exceptions import DataError
from ccmtl_core.base.frozen_value import FrozenValue
from ccmtl_core.base.types import FloatArray, IntArray
from ccmtl_core.kernels.grouping import group_rows


@dataclass(frozen=True, eq=False)
class TaskDataset(FrozenValue):
    """Samples of T tasks that share P features.

    Prefer :meth:`from_arrays`, :meth:`from_long` or :meth:`from_codes`, which copy and group the rows; the
    constructor keeps read-only views of arrays that are grouped already.

    Parameters
    ----------
    X : (n, P) float64, C order
        Features, the rows of each task contiguous.
    y : (n,) float64
        Targets.
    offsets : (T + 1,) int64
        Task t owns the rows ``offsets[t]:offsets[t + 1]``; a task may own none.
    task_ids : tuple of T str
        Distinct, not empty.
    feature_names : tuple of P str
        Distinct, not empty.

    Raises
    ------
    DataError
        Wrong shapes, non-finite values, unusable ids; names task, row and feature of each fault.
    """

    X: FloatArray
    y: FloatArray
    offsets: IntArray
    task_ids: tuple[str, ...]
    feature_names: tuple[str, ...]

    def __post_init__(self) -> None:
        X, y = as_float64(self.X, "X"), as_float64(self.y, "y")
        offsets = as_integers(self.offsets, "offsets")
        if X.ndim != 2 or y.shape != X.shape[:1]:
            raise DataError(f"X must be (n, P) and y (n,); got {X.shape} and {y.shape}")
        if X.shape[1] == 0:
            raise DataError("X has no features: at least one column is needed")
        task_ids = checked_names(self.task_ids, "task id")
        feature_names = checked_names(self.feature_names, "feature name")
        if len(feature_names) != X.shape[1]:
            raise DataError(f"{len(feature_names)} feature names for {X.shape[1]} features")
        if not task_ids:
            raise DataError("there are no tasks")
        if offsets.shape != (len(task_ids) + 1,):
            raise DataError(f"offsets must be ({len(task_ids) + 1},); got {offsets.shape}")
        if offsets[0] != 0 or offsets[-1] != len(y) or (np.diff(offsets) < 0).any():
            raise DataError(f"offsets must rise from 0 to {len(y)}")
        values = {"X": X, "y": y, "offsets": offsets, "task_ids": task_ids, "feature_names": feature_names}
        for name, value in values.items():
            object.__setattr__(self, name, read_only(value) if isinstance(value, np.ndarray) else value)
        if not (all_finite(X) and all_finite(y)):
            _refuse_values(X, y, self._place, feature_names)

    @classmethod
    def from_arrays(
        cls,
        X: Sequence[ArrayLike],
        y: Sequence[ArrayLike],
        task_ids: Sequence[object] | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> TaskDataset:
        """Build from one pair of arrays per task.

        Parameters
        ----------
        X : T arrays (n_t, P)
            Features; n_t may be 0. Integers are cast to float64 before any arithmetic.
        y : T arrays (n_t,)
            Targets; (n_t, 1) is accepted.
        task_ids : T ids, optional
            Text or integers; default "0", "1", ….
        feature_names : P names, optional
            By default the names of the columns if X is a table of polars, pandas or Arrow, else "x_1",
            "x_2", …. A table must have these columns in this order.

        Returns
        -------
        TaskDataset

        Raises
        ------
        DataError
            As the class; every faulty task is listed.

        Examples
        --------
        >>> data = TaskDataset.from_arrays([[[1, 0], [0, 1]], [[2, 2]]], [[3, 4], [5]], ["north", "south"])
        >>> data.n_samples
        array([2, 1])
        """
        X, y = as_sequence(X, "X"), as_sequence(y, "y")
        if len(X) != len(y):
            raise DataError(f"X has {len(X)} tasks, y has {len(y)}")
        if len(X) == 0:
            raise DataError("there are no tasks")
        ids = ids_or_default(task_ids, len(X))
        if len(ids) != len(X):
            raise DataError(f"{len(ids)} task ids for {len(X)} tasks")
        blocks = [as_float64(block, f"task {name!r}: X") for block, name in zip(X, ids, strict=True)]
        targets = [as_float64(block, f"task {name!r}: y") for block, name in zip(y, ids, strict=True)]
        n_features = next((b.shape[1] for b in blocks if b.ndim == 2), 0)
        blocks = [b.reshape(0, n_features) if b.shape == (0,) else b for b in blocks]
        targets = [v[:, 0] if v.ndim == 2 and v.shape[1] == 1 else v for v in targets]
        refuse(list(_shape_faults(blocks, targets, ids, n_features)))
        lengths = [len(v) for v in targets]
        data = cls(
            X=np.concatenate(blocks),
            y=np.concatenate(targets),
            offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            task_ids=ids,
            feature_names=features_or_default(feature_names, n_features, X),
        )
        for table, name in zip(X, ids, strict=True):
            check_columns(table, data.feature_names, f"X of task {name!r}")
        return data

    @classmethod
    def from_long(
        cls,
        X: ArrayLike,
        y: ArrayLike,
        task: ArrayLike | Sequence[object],
        *,
        feature_names: Sequence[str] | None = None,
        task_ids: Sequence[object] | None = None,
    ) -> TaskDataset:
        """Build from stacked rows, each with the id of its task.

        Parameters
        ----------
        X : (n, P)
            Features of all tasks, in any order of rows. The dataset groups them by task, and keeps their
            order within a task. Times, folds or weights of the rows, given later, must be in that new order.
            A table sorted by task has it already, unless ``task_ids`` orders the tasks anew.
        y : (n,)
            Targets.
        task : (n,)
            The id of each row's task: text or integers, read as text.
        feature_names : P names, optional
            As in :meth:`from_arrays`.
        task_ids : T ids, optional
            Fixes the order of the tasks, some perhaps without rows; by default that of first appearance.

        Returns
        -------
        TaskDataset

        Raises
        ------
        DataError
            As the class; also a row whose task is not among ``task_ids``.

        Examples
        --------
        >>> data = TaskDataset.from_long([[1.0], [2.0], [3.0]], [1, 2, 3], ["b", "a", "b"])
        >>> data.task_ids, data.X.ravel()
        (('b', 'a'), array([1., 3., 2.]))
        """
        codes, found = _factorize(task)
        if task_ids is None:
            return cls.from_codes(X, y, codes, found, feature_names=feature_names)
        wanted = checked_names(task_ids, "task id")
        position = {name: t for t, name in enumerate(wanted)}
        refuse([f"task {quoted(name)} is not among task_ids" for name in found if name not in position])
        mapping = np.array([position[name] for name in found], dtype=np.int64)
        return cls.from_codes(X, y, mapping[codes], wanted, feature_names=feature_names)

    @classmethod
    def from_codes(
        cls,
        X: ArrayLike,
        y: ArrayLike,
        task_index: ArrayLike,
        task_ids: Sequence[object],
        *,
        feature_names: Sequence[str] | None = None,
    ) -> TaskDataset:
        """Build from stacked rows, each with the position of its task in ``task_ids``.

        Parameters
        ----------
        X, y, feature_names
            As in :meth:`from_long`.
        task_index : (n,) integers in [0, T)
            Row i belongs to ``task_ids[task_index[i]]``.
        task_ids : T ids
            Text or integers.

        Returns
        -------
        TaskDataset

        Raises
        ------
        DataError
            As the class; also an index outside [0, T).
        """
        features, targets = as_float64(X, "X"), as_float64(y, "y")
        ids = checked_names(task_ids, "task id")
        index = checked_index(task_index, len(ids), "task_index")
        if features.ndim != 2 or targets.shape != features.shape[:1] or index.shape != targets.shape:
            raise DataError(
                f"X must be (n, P), y and task (n,); got {features.shape}, {targets.shape}, {index.shape}"
            )
        if (index[1:] >= index[:-1]).all():
            offsets = np.searchsorted(index, np.arange(len(ids) + 1))
            features, targets = features.copy(), targets.copy()
        else:
            order, offsets = group_rows(index, len(ids))
            features, targets = features[order], targets[order]
        names = features_or_default(feature_names, features.shape[1], [X])
        try:
            data = cls(features, targets, offsets, ids, names)
        except DataError:
            given = as_float64(X, "X"), as_float64(y, "y")  # in the caller's order
            _refuse_values(*given, lambda i: f"row {i + 1}, task {ids[index[i]]!r}", names)
            raise
        check_columns(X, data.feature_names, "X")
        return data

    def __repr__(self) -> str:
        rows = f"{len(self.y):,} rows, {spread(self.n_samples.tolist())} per task"
        return shown(self, counted(self.n_tasks, "task"), named(self.feature_names, "feature"), rows)

    @property
    def n_tasks(self) -> int:
        """T, the number of tasks."""
        return len(self.task_ids)

    @property
    def n_features(self) -> int:
        """P, the number of features."""
        return len(self.feature_names)

    @cached_property
    def n_samples(self) -> IntArray:
        """Rows of each task, (T,) int64."""
        return locked(np.diff(self.offsets))

    @cached_property
    def task_index(self) -> IntArray:
        """The task of each row, (n,) int64."""
        return locked(np.repeat(np.arange(self.n_tasks), self.n_samples))

    def _place(self, row: int) -> str:
        t = int(np.searchsorted(self.offsets, row, side="right")) - 1
        return f"task {self.task_ids[t]!r}, row {row - self.offsets[t] + 1}"


def _refuse_values(X: FloatArray, y: FloatArray, place: Callable[[int], str], names: Sequence[str]) -> None:
    """Name each value that is not finite by the place of its row."""
    bad_x, bad_y = np.argwhere(~np.isfinite(X)), np.flatnonzero(~np.isfinite(y))
    faults = [f"{place(i)}, feature {names[p]!r}: {X[i, p]}" for i, p in bad_x[:MAX_FAULTS].tolist()]
    faults += [f"{place(i)}: y is {y[i]}" for i in bad_y[:MAX_FAULTS].tolist()]
    if faults:
        raise DataError(faults[:MAX_FAULTS], n_faults=len(bad_x) + len(bad_y))


def _shape_faults(
    blocks: Sequence[FloatArray], targets: Sequence[FloatArray], ids: Sequence[str], n_features: int
) -> Iterator[str]:
    for block, target, name in zip(blocks, targets, ids, strict=True):
        if block.ndim != 2 or block.shape[1] != n_features:
            yield f"task {name!r}: X must be (n_t, {n_features}); got {block.shape}"
        elif target.ndim != 1 or len(target) != len(block):
            yield f"task {name!r}: y must be ({len(block)},) like X; got {target.shape}"


def _factorize(task: ArrayLike | Sequence[object]) -> tuple[IntArray, tuple[str, ...]]:
    """Number the distinct ids in order of first appearance: the number of each row, and the ids."""
    if getattr(task, "ndim", 1) != 1:
        raise DataError("task must be a sequence with one id per row")
    if isinstance(task, np.ndarray) and task.dtype.kind in "iu":
        return _factorize_integers(task)
    position: dict[object, int] = {}
    try:
        each = as_sequence(task, "task, one id per row,")
        codes = np.fromiter((position.setdefault(t, len(position)) for t in each), dtype=np.int64)
    except TypeError as error:  # a list or a dict in place of an id
        raise DataError(f"a task id must be text or an integer: {error}") from error
    unusable = [code for code, id_ in enumerate(position) if not (isinstance(id_, str) or is_whole(id_))]
    refuse_each(
        np.flatnonzero(np.isin(codes, unusable)) if unusable else [],
        lambda row: f"row {row + 1}: a task id must be text or an integer, not {quoted(each[row])}",
    )
    merged: dict[str, int] = {}
    names = [merged.setdefault(as_id(value), len(merged)) for value in position]  # 7 and "7" are one id
    return np.array(names, dtype=np.int64)[codes], tuple(merged)


def _factorize_integers(task: NDArray[Any]) -> tuple[IntArray, tuple[str, ...]]:
    values, first, inverse = np.unique(task, return_index=True, return_inverse=True)
    by_appearance = np.argsort(first)
    rank = np.empty(len(values), dtype=np.int64)
    rank[by_appearance] = np.arange(len(values))
    return rank[inverse], tuple(str(int(value)) for value in values[by_appearance])
