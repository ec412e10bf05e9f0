"""Each task alone and all tasks as one, against LAPACK's minimum-norm least squares."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from ccmtl_core import (
    SufficientStatistics,
    TaskDataset,
    TriangularStatistics,
    pooled_weights,
    single_task_weights,
)
from ccmtl_core.choices.single_task import start_weights
from tests.core.problems import datasets

property_test = settings(derandomize=True, max_examples=60)
every_form = pytest.mark.parametrize("form", [SufficientStatistics, TriangularStatistics])


def rows(data: TaskDataset, t: int) -> tuple[np.ndarray, np.ndarray]:
    part = slice(data.offsets[t], data.offsets[t + 1])
    return data.X[part], data.y[part]


@every_form
@property_test
@given(data=datasets())
def test_each_task_alone_is_its_minimum_norm_fit(
    form: type[SufficientStatistics] | type[TriangularStatistics], data: TaskDataset
) -> None:
    W = single_task_weights(form.from_dataset(data))
    for t in range(data.n_tasks):
        X, y = rows(data, t)
        expected = np.linalg.lstsq(X, y, rcond=1e-7)[0]
        assert np.abs(W[t] - expected).max() <= 1e-6 * max(np.abs(expected).max(), 1e-300)


@every_form
def test_pooled_is_the_fit_of_all_rows(
    form: type[SufficientStatistics] | type[TriangularStatistics],
) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4))
    X[:, 3] = X[:, 0] - X[:, 1]  # minimum norm matters
    y = rng.standard_normal(60)
    data = TaskDataset.from_long(X, y, rng.integers(0, 7, 60))
    expected = np.linalg.lstsq(X, y, rcond=None)[0]
    assert pooled_weights(form.from_dataset(data)) == pytest.approx(expected, rel=1e-10)


@every_form
def test_tasks_without_data_start_at_the_pooled_weights(
    form: type[SufficientStatistics] | type[TriangularStatistics],
) -> None:
    X = [np.array([[1.0, 0.0], [0.0, 1.0]]), np.empty((0, 2)), np.array([[1.0, 1.0]]), np.zeros((2, 2))]
    statistics = form.from_dataset(TaskDataset.from_arrays(X, [[1.0, 3.0], [], [0.0], [1.0, 1.0]]))
    start, pooled = start_weights(statistics), pooled_weights(statistics)
    assert pooled.any()
    assert start[1].tolist() == start[3].tolist() == pooled.tolist()
    assert start[0] == pytest.approx([1.0, 3.0])
    assert start[2].tolist() == [0.0, 0.0], "a task with data keeps its own answer, zero included"
    assert single_task_weights(statistics)[1].tolist() == [0.0, 0.0]


def test_results_can_be_changed_without_changing_the_statistics() -> None:
    statistics = SufficientStatistics.from_dataset(TaskDataset.from_arrays([[[1.0]]], [[2.0]]))
    for weights in (single_task_weights, pooled_weights, start_weights):
        weights(statistics)[...] = 99.0
        assert weights(statistics).ravel().tolist() == [2.0]
