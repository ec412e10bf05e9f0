"""Errors computed from statistics are those computed from the rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.training.evaluation import evaluate
from ccmtl_core import CCMTLModel, SufficientStatistics, TaskDataset


def rmse_by_hand(
    dataset: TaskDataset, test: np.ndarray, weights: np.ndarray, intercept: np.ndarray
) -> tuple[float, float]:
    predicted = (dataset.X * weights[dataset.task_index]).sum(axis=1) + intercept[dataset.task_index]
    squares = (dataset.y - predicted) ** 2
    tasks = [t for t in range(dataset.n_tasks) if (test & (dataset.task_index == t)).any()]
    by_task = [np.sqrt(squares[test & (dataset.task_index == t)].mean()) for t in tasks]
    return float(np.mean(by_task)), float(np.sqrt(squares[test].mean()))


@given(seed=st.integers(0, 2**32 - 1), n_tasks=st.integers(1, 6))
def test_errors_are_those_of_the_rows(seed: int, n_tasks: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 9, n_tasks)
    sizes[0] += 2
    X = [rng.normal(size=(n, 3)) for n in sizes]
    data = TaskDataset.from_arrays(X, [x @ rng.normal(size=3) + rng.normal(size=len(x)) for x in X])
    test = rng.random(len(data.y)) < 0.5
    test[:2] = [True, False]
    training, held_out = SufficientStatistics.by_fold(data, test, 2)
    W, b = rng.normal(size=(n_tasks, 3)), rng.normal(size=n_tasks)
    model = CCMTLModel(W, data.task_ids, data.feature_names, intercept=b)
    found = evaluate(model, training, held_out)
    pooled = np.linalg.lstsq(data.X[~test], data.y[~test])[0]
    alone = np.stack(
        [
            np.linalg.pinv(data.X[~test & (data.task_index == t)]) @ data.y[~test & (data.task_index == t)]
            for t in range(n_tasks)
        ]
    )
    rivals = {"ccmtl": W, "pooled": np.tile(pooled, (n_tasks, 1)), "single_task": alone, "zero": 0 * W}
    for name, weights in rivals.items():
        mean_of_tasks, over_rows = rmse_by_hand(data, test, weights, b if name == "ccmtl" else 0 * b)
        assert found["rmse_mean_of_tasks"][name] == pytest.approx(mean_of_tasks, rel=1e-7, abs=1e-7)
        assert found["rmse_over_rows"][name] == pytest.approx(over_rows, rel=1e-7, abs=1e-7)
    assert found["n_test_rows"] == test.sum()
    assert found["n_train_rows"] == (~test).sum()
    assert found["n_tasks_scored"] == len(set(data.task_index[test]))


def test_tasks_are_counted() -> None:
    data = TaskDataset.from_arrays(
        [np.ones((2, 1)), np.ones((1, 1)), np.ones((1, 1)), np.empty((0, 1))],
        [[1.0, 3.0], [5.0], [7.0], []],
    )
    folds = SufficientStatistics.by_fold(data, np.array([0, 1, 1, 0]), 2)
    found = evaluate(CCMTLModel(np.zeros((4, 1)), data.task_ids, data.feature_names), *folds)
    assert found["n_tasks_scored"] == 2
    assert found["n_tasks_without_training_rows"] == 1
    assert found["rmse_mean_of_tasks"]["zero"] == (3.0 + 5.0) / 2


def test_nothing_held_out_is_nothing_to_score() -> None:
    data = TaskDataset.from_arrays([np.ones((2, 1))], [[1.0, 3.0]])
    folds = SufficientStatistics.by_fold(data, np.array([0, 0]), 2)
    with pytest.raises(ValueError, match="no row is held out"):
        evaluate(CCMTLModel(np.zeros((1, 1)), data.task_ids, data.feature_names), *folds)
