"""Errors of one model for all series, from sums alone, against the rows themselves."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from ccmtl_core import SufficientStatistics, TaskDataset
from ccmtl_core.base.types import BoolArray, FloatArray, IntArray
from ccmtl_core.forecasting.shared_models import SharedModels

N_BLOCKS = 4


def rows(seed: int = 0) -> tuple[TaskDataset, IntArray]:
    """Rows of seven series, one of which begins in the third block, and the block of each row."""
    rng = np.random.default_rng(seed)
    blocks = [np.sort(rng.integers(0, N_BLOCKS, 40)) for _ in range(6)] + [np.array([2, 2, 3])]
    X = [rng.normal(size=(len(block), 5)) + rng.normal(size=5) for block in blocks]
    y = [x @ rng.normal(size=5) + rng.normal() + 0.3 * rng.normal(size=len(x)) for x in X]
    return TaskDataset.from_arrays(X, y), np.concatenate(blocks)


def by_hand(data: TaskDataset, block: IntArray, wanted: BoolArray, fit_intercept: bool) -> float:
    """The mean error by least squares on rows, with a column of ones for each series."""
    columns: FloatArray = data.X[:, wanted]
    errors = []
    for held_out in range(1, N_BLOCKS):
        trains, tests = block < held_out, block == held_out
        if fit_intercept:
            known = [t for t in range(data.n_tasks) if (data.task_index[trains] == t).any()]
            ones = (data.task_index[:, None] == np.array(known)).astype(float)
            found = np.linalg.lstsq(np.hstack([columns, ones])[trains], data.y[trains], rcond=None)[0]
            w = found[: wanted.sum()]
            mean = data.y[trains].mean() - columns[trains].mean(axis=0) @ w
            b = np.full(data.n_tasks, mean)
            b[known] = found[wanted.sum() :]
            offset = b[data.task_index]
        else:
            w, offset = np.linalg.lstsq(columns[trains], data.y[trains], rcond=None)[0], 0.0
        residual = data.y - columns @ w - offset
        tasks = np.unique(data.task_index[tests])
        own = [np.sqrt((residual[tests & (data.task_index == t)] ** 2).mean()) for t in tasks]
        errors.append(np.mean(own))
    return float(np.mean(errors))


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_errors_are_those_of_least_squares_on_the_rows(fit_intercept: bool) -> None:
    data, block = rows()
    shared = SharedModels(SufficientStatistics.by_fold(data, block, N_BLOCKS))
    sets = np.random.default_rng(1).random((6, 5)) < 0.6
    sets[:, 0] = True
    expected = [by_hand(data, block, one, fit_intercept) for one in sets]
    assert_allclose(shared.errors(sets, fit_intercept=fit_intercept).of_series, expected, rtol=1e-9)


def test_features_that_are_mixtures_of_others_change_nothing() -> None:
    data, block = rows()
    mixed = TaskDataset.from_arrays(
        [
            data.X[s] @ np.hstack([np.eye(5), np.ones((5, 1))])
            for s in map(slice, data.offsets, data.offsets[1:])
        ],
        [data.y[s] for s in map(slice, data.offsets, data.offsets[1:])],
    )
    shared = SharedModels(SufficientStatistics.by_fold(mixed, block, N_BLOCKS))
    plain, more = shared.errors([[True] * 5 + [False], [True] * 6], fit_intercept=True).of_series
    assert_allclose(more, plain, rtol=1e-7)
