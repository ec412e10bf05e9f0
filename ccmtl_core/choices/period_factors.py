"""Weigh rows by their period: less in periods that no model foresees.

Feasible generalised least squares with errors whose variance differs between periods (holidays, strikes, a
warehouse that was closed): residuals of a simple model give the variances, and rows count by their inverses
(Aitken, Proc. R. Soc. Edinburgh 55, 1936; Greene, Econometric Analysis, 7th ed., section 9.6).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ccmtl_core.base.arrays import distinct_moments
from ccmtl_core.base.types import FloatArray
from ccmtl_core.choices.random_coefficients import random_coefficients
from ccmtl_core.data.task_dataset import TaskDataset
from ccmtl_core.statistics.inputs import check_data
from ccmtl_core.statistics.sufficient_statistics import SufficientStatistics

LEAST_NOISE = 0.1
"""Of the median period's: a quiet period counts at most ten times as much as a typical one."""


def period_factors(dataset: TaskDataset, period: ArrayLike) -> FloatArray:
    """Weigh rows by the inverse of the noise that their period has over all tasks.

    Residuals are those of the expected random coefficients, in units of each task's own root mean square, so
    that no task decides by the size of its numbers.

    Parameters
    ----------
    dataset : TaskDataset
        n rows.
    period : (n,) array of labels
        Which period each row of ``dataset.X`` is of: numbers, dates or text; rows with equal ones are of one
        period.

    Returns
    -------
    (n,) float64
        median(v) / max(v, median(v) / 10), v the mean square of a period's residuals; 1 where there are none.
        To pass on as ``sample_weight``.

    Raises
    ------
    DataError
        Not one period for each row, or rows without one.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> noise = np.tile([1.0, 1.0, 5.0], 100)
    >>> X = rng.standard_normal((300, 1))
    >>> data = TaskDataset.from_long(X, X[:, 0] + noise * rng.standard_normal(300), np.arange(300) // 15)
    >>> period_factors(data, np.arange(300) % 3)[:3].round(1)
    array([1. , 1.2, 0.1])
    """
    check_data(dataset, TaskDataset)
    n_periods, place = distinct_moments(period, dataset.y.shape, "period")
    statistics = SufficientStatistics.from_dataset(dataset)
    weights = random_coefficients(statistics).expected_weights(statistics)
    squares = (dataset.y - np.einsum("np,np->n", dataset.X, weights[dataset.task_index])) ** 2
    of_task = _means(squares, dataset.task_index, dataset.n_tasks)
    relative = squares / np.where(of_task > 0.0, of_task, 1.0)[dataset.task_index]
    noise = _means(relative, place, n_periods)
    if not noise.any():
        return np.ones(len(squares))
    median = float(np.median(noise[noise > 0.0]))
    of_row: FloatArray = (1.0 / np.maximum(noise / median, LEAST_NOISE))[place]
    return of_row


def _means(values: FloatArray, group: np.ndarray, n_groups: int) -> FloatArray:
    """Mean of each group, (n_groups,); zero for one without values."""
    count = np.bincount(group, minlength=n_groups)
    total = np.bincount(group, values, minlength=n_groups)
    means: FloatArray = total / np.maximum(count, 1)
    return means
