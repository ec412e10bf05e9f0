"""Statistics in, the simple rivals and the solver's start out: each task alone, and all tasks as one."""

from __future__ import annotations

import numpy as np

from ccmtl_core._types import FloatArray
from ccmtl_core.statistics import SufficientStatistics
from ccmtl_core.triangular_statistics import TriangularStatistics

Statistics = SufficientStatistics | TriangularStatistics


def single_task_weights(statistics: Statistics) -> FloatArray:
    """Minimum-norm least squares of each task alone (ITL of He et al., without a ridge).

    Returns
    -------
    (T, P) float64
        Zero for a task without data.

    Examples
    --------
    >>> from ccmtl_core import SufficientStatistics, TaskDataset
    >>> data = TaskDataset.from_arrays([[[1.0], [1.0]], [[2.0]]], [[1.0, 3.0], [2.0]])
    >>> single_task_weights(SufficientStatistics.from_dataset(data))
    array([[2.],
           [1.]])
    """
    return statistics.least_squares.weights.copy()


def pooled_weights(statistics: Statistics) -> FloatArray:
    """Minimum-norm least squares of all rows as one task (STL of He et al., without a ridge).

    Returns
    -------
    (P,) float64

    Examples
    --------
    >>> from ccmtl_core import SufficientStatistics, TaskDataset
    >>> data = TaskDataset.from_arrays([[[1.0], [1.0]], [[2.0]]], [[1.0, 3.0], [2.0]])
    >>> pooled_weights(SufficientStatistics.from_dataset(data))
    array([1.33333333])
    """
    weights: FloatArray = statistics.pooled().least_squares.weights[0].copy()
    return weights


def start_weights(statistics: Statistics) -> FloatArray:
    """Each task alone; the pooled weights for tasks without any data, which say nothing of their own.

    Returns
    -------
    (T, P) float64
    """
    W = single_task_weights(statistics)
    silent = ~np.asarray(statistics.gram).any(axis=(1, 2))
    if silent.any():
        W[silent] = pooled_weights(statistics)
    return W
