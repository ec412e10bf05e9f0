"""Add up the statistics of parts of the rows (of weeks, stores or machines) with any tasks."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ccmtl_core.base.arguments import check_kind
from ccmtl_core.base.arrays import is_real, locked
from ccmtl_core.base.exceptions import DataError, ParameterError
from ccmtl_core.base.types import FloatArray, IntArray
from ccmtl_core.statistics.gram_totals import add_rows, zeros
from ccmtl_core.statistics.sufficient_statistics import ADDED, SufficientStatistics
from ccmtl_core.statistics.triangular_statistics import TriangularStatistics


def merge_statistics(parts: Iterable[SufficientStatistics]) -> SufficientStatistics:
    """Add up statistics of the same features and any tasks.

    Parameters
    ----------
    parts : iterable of SufficientStatistics
        Read one after the other, and each let go, in the order in which they are to be added.

    Returns
    -------
    SufficientStatistics
        The union of the tasks, in order of first appearance.

    Raises
    ------
    DataError
        No parts; features that differ in name or order; parts with and without sums of x and y.
    ParameterError
        Parts that are no such statistics.

    Examples
    --------
    >>> from ccmtl_core import TaskDataset
    >>> north = TaskDataset.from_arrays([[[1.0]], [[2.0]]], [[1.0], [1.0]], task_ids=["a", "b"])
    >>> south = TaskDataset.from_arrays([[[3.0]], [[4.0]]], [[1.0], [1.0]], task_ids=["c", "b"])
    >>> merged = merge_statistics(map(SufficientStatistics.from_dataset, (north, south)))
    >>> merged.task_ids, merged.gram.ravel()
    (('a', 'b', 'c'), array([ 1., 20.,  9.]))
    """
    check_kind(parts, "parts", Iterable, hint="a list of the statistics that are to be added up")
    total: StatisticsSum | None = None
    for part in parts:
        check_kind(part, "each part", SufficientStatistics)
        total = total or StatisticsSum(part.feature_names)
        total.add(part)
    if total is None:
        raise DataError("there are no statistics to merge")
    return total.statistics()


def append_statistics(
    old: SufficientStatistics, new: SufficientStatistics, *, forgetting: float = 1.0
) -> SufficientStatistics:
    """Add new rows to old ones, which may count less than they did.

    Parameters
    ----------
    old, new : SufficientStatistics
        Of the same features; tasks that ``old`` lacks come after its own.
    forgetting : float
        From 0 to 1: what an old row counts for from now on, beside 1 for a new row. Used at each appending,
        it makes the weight of a row fall geometrically.

    Returns
    -------
    SufficientStatistics
        Of all rows, which :func:`ccmtl_core.fit` takes: no old row is read again.

    Raises
    ------
    ParameterError
        A factor outside [0, 1]; statistics that are none, or of two kinds.
    DataError
        Other features.

    Examples
    --------
    >>> from ccmtl_core import TaskDataset
    >>> rows = TaskDataset.from_arrays([[[1.0]]], [[2.0]], task_ids=["a"])
    >>> statistics = SufficientStatistics.from_dataset(rows)
    >>> append_statistics(statistics, statistics, forgetting=0.5).xty
    array([[3.]])
    """
    check_kind(old, "old", SufficientStatistics, TriangularStatistics)
    check_kind(new, "new", type(old))
    if not is_real(forgetting) or not 0.0 <= forgetting <= 1.0:
        raise ParameterError(f"forgetting must be from 0 to 1, not {forgetting!r}")
    kept = old if forgetting == 1.0 else old.scaled(forgetting)
    same = (old.task_ids, old.feature_names) == (new.task_ids, new.feature_names)
    return kept + new if same else merge_statistics([kept, new])


class StatisticsSum:
    """A running sum of statistics of the same features, in which tasks are numbered as they appear."""

    def __init__(self, feature_names: tuple[str, ...]) -> None:
        self.feature_names = feature_names
        self._number: dict[str, int] = {}
        self._n_samples = np.zeros(0, dtype=np.int64)
        self._sums = zeros(0, len(feature_names))

    def add(self, part: SufficientStatistics) -> None:
        """Add statistics; those of other features, or without the sums of x and y, are a DataError."""
        if part.feature_names != self.feature_names:
            names = f"{', '.join(self.feature_names)} and {', '.join(part.feature_names)}"
            raise DataError(f"statistics of different features do not add up: {names}")
        if part.weight is None:
            raise DataError("statistics without the sums of x and y cannot be merged")
        task = self.numbers(part.task_ids)
        for name, total in zip(ADDED, self._sums, strict=True):
            total[task] += getattr(part, name)
        self._n_samples[task] += part.n_samples

    def add_rows(
        self, X: FloatArray, y: FloatArray, order: IntArray, offsets: IntArray, task: IntArray
    ) -> None:
        """Add rows in S groups, as ``accumulate_gram`` takes them, each of the task (S,) of that number.

        Numbers are those of :meth:`numbers`, none twice.
        """
        add_rows(self._sums, X, y, order, offsets, task)
        self._n_samples[task] += np.diff(offsets)

    def numbers(self, task_ids: Iterable[str]) -> IntArray:
        """Return the number of each task; new tasks get the next ones."""
        number = self._number
        found = [number.setdefault(name, len(number)) for name in task_ids]
        self._make_room(len(number))
        return np.array(found, dtype=np.int64)

    @property
    def n_tasks(self) -> int:
        """How many tasks are known."""
        return len(self._number)

    def statistics(self) -> SufficientStatistics:
        """Return the sum so far, of one task or more; nothing may be added afterwards."""
        T = len(self._number)
        sums = {name: locked(total[:T]) for name, total in zip(ADDED, self._sums, strict=True)}
        return SufficientStatistics(
            **sums,
            n_samples=locked(self._n_samples[:T]),
            task_ids=tuple(self._number),
            feature_names=self.feature_names,
        )

    def _make_room(self, n_tasks: int) -> None:
        """Double the arrays when they are full; memory that is not used yet costs nothing."""
        before = len(self._n_samples)
        if n_tasks <= before:
            return
        room = max(2 * before, n_tasks, 1024)
        n_samples, sums = np.zeros(room, dtype=np.int64), zeros(room, len(self.feature_names))
        n_samples[:before] = self._n_samples
        for new, old in zip(sums, self._sums, strict=True):
            new[:before] = old
        self._n_samples, self._sums = n_samples, sums
