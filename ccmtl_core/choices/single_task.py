"""The simple rivals, of which one is where the solver starts: each task alone, and all tasks as one."""

from __future__ import annotations

import numpy as np

from ccmtl_core.base.arrays import is_real
from ccmtl_core.base.exceptions import ParameterError
from ccmtl_core.base.types import FloatArray
from ccmtl_core.kernels.block_products import times
from ccmtl_core.kernels.wide_blocks import inverses
from ccmtl_core.statistics.inputs import Statistics, statistics_of
from ccmtl_core.statistics.least_squares import task_blocks


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
    return statistics_of(statistics).least_squares.weights.copy()


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
    weights: FloatArray = statistics_of(statistics).pooled().least_squares.weights[0].copy()
    return weights


def shrunk_weights(statistics: Statistics, shrinkage: float) -> FloatArray:
    """Each task shrunk to the pooled weights by one ridge: the simple rival of fusing.

        w_t = argmin ‖X_t w − y_t‖² + s g ‖w − w_pooled‖²

    with g the mean square that a feature gathers in a task, so that the shrinkage s has no unit: at 1 the
    ridge weighs as much as the rows of an average task.

    Parameters
    ----------
    statistics : SufficientStatistics or TriangularStatistics
        T tasks with P features.
    shrinkage : float
        s > 0.

    Returns
    -------
    (T, P) float64
        The pooled weights for a task without data.

    Raises
    ------
    ParameterError
        A shrinkage that is not a finite number above 0.

    Examples
    --------
    >>> from ccmtl_core import SufficientStatistics, TaskDataset
    >>> data = TaskDataset.from_arrays([[[1.0]], [[1.0]]], [[0.0], [2.0]])
    >>> shrunk_weights(SufficientStatistics.from_dataset(data), 1.0).ravel()
    array([0.5, 1.5])
    """
    if not is_real(shrinkage) or not 0 < shrinkage < np.inf:
        raise ParameterError(f"shrinkage must be a finite number above 0, not {shrinkage!r}")
    statistics = statistics_of(statistics)
    pooled, gram = pooled_weights(statistics), np.asarray(statistics.gram)
    size = float(np.trace(gram, axis1=1, axis2=2).mean()) / statistics.n_features
    if size == 0.0:
        return np.tile(pooled, (statistics.n_tasks, 1))
    weights = statistics.xty - gram @ pooled
    for some in task_blocks(*weights.shape):
        weights[some] = times(inverses(gram[some], shrinkage * size)[0], weights[some])
    return weights + pooled


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
