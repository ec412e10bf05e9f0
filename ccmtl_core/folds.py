"""Statistics of each fold in, statistics of each training part out, as sums and never as differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ccmtl_core.exceptions import ParameterError
from ccmtl_core.statistics import SufficientStatistics
from ccmtl_core.triangular_statistics import TriangularStatistics

Statistics = TypeVar("Statistics", SufficientStatistics, TriangularStatistics)


def training_folds(folds: Sequence[Statistics]) -> list[Statistics]:
    """For each fold, the statistics of all the others together.

    Prefix and suffix sums: about 3 K additions for K folds. The total minus one fold would
    cancel, and would leave eigenvalues below zero.

    Parameters
    ----------
    folds : sequence of K statistics
        Of the same tasks, K ≥ 2.

    Returns
    -------
    list of K statistics

    Raises
    ------
    ParameterError
        Fewer than two folds.

    Examples
    --------
    >>> from ccmtl_core import TaskDataset
    >>> data = TaskDataset.from_arrays([[[1.0], [2.0], [3.0]]], [[1.0, 1.0, 1.0]])
    >>> folds = SufficientStatistics.by_fold(data, [0, 1, 2], 3)
    >>> [float(part.xty[0, 0]) for part in training_folds(folds)]
    [5.0, 4.0, 3.0]
    """
    if len(folds) < 2:
        raise ParameterError(f"at least two folds are needed, not {len(folds)}")
    last = len(folds) - 1
    before, after = {1: folds[0]}, {last - 1: folds[-1]}
    for f in range(2, last + 1):
        before[f] = before[f - 1] + folds[f - 1]
    for f in range(last - 2, -1, -1):
        after[f] = folds[f + 1] + after[f + 1]
    parts = [after[0]]
    parts.extend(before[f] + after[f] for f in range(1, last))
    parts.append(before[last])
    return parts
