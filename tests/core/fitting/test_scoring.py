"""Which strength the errors on folds choose, by which score and rule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ccmtl_core import (
    ParameterError,
    SufficientStatistics,
    TaskDataset,
    select,
)
from ccmtl_core.fitting.fold_paths import SelectionProgress
from ccmtl_core.fitting.scoring import choose, mean_of_task_rmse, rmse_over_rows
from ccmtl_core.statistics.folds import contiguous_folds
from tests.core.fitting.conftest import STRENGTHS, clustered


def test_another_score_can_choose(dataset: TaskDataset) -> None:
    result = select(dataset, STRENGTHS, n_folds=3, score=rmse_over_rows)
    assert result.fold_errors[0, 0] != select(dataset, STRENGTHS, n_folds=3).fold_errors[0, 0]
    worst = select(dataset, STRENGTHS, n_folds=3, score=lambda e, n: -mean_of_task_rmse(e, n))
    assert worst.fusion_strength in (0.0, STRENGTHS[-1])


def test_one_standard_error_takes_the_most_fused_of_the_good_ones() -> None:
    data = clustered(3, noise=2.0)
    best = select(data, STRENGTHS, n_folds=3)
    careful = select(data, STRENGTHS, n_folds=3, rule="one_standard_error")
    assert careful.fusion_strength >= best.fusion_strength
    allowed = best.errors[best.chosen] + best.standard_errors[best.chosen]
    assert careful.errors[careful.chosen] <= allowed
    assert (careful.errors[careful.chosen + 1 :] > allowed).all()


def test_one_held_out_part_has_no_standard_error(dataset: TaskDataset) -> None:
    blocks = SufficientStatistics.by_fold(dataset, contiguous_folds(dataset, 2), 2)
    told: list[SelectionProgress] = []
    options: dict[str, Any] = {"folds": "rolling", "rule": "one_standard_error", "on_progress": told.append}
    with pytest.raises(ParameterError, match="one_standard_error needs two or more held-out parts, and"):
        select(dataset, n_folds=1, **options)
    with pytest.raises(ParameterError, match="one_standard_error needs two or more held-out parts, and"):
        select(blocks, **options)
    assert told == []
    best = select(dataset, [0.0, 1.0], folds="rolling", n_folds=1)
    assert best.fold_errors.shape == (1, 2)
    assert np.isnan(best.standard_errors).all()
    with pytest.raises(ParameterError, match="one_standard_error needs"):
        choose(best.fusion_strengths, best.fold_errors, "one_standard_error")


def test_of_equal_errors_the_larger_strength_is_chosen() -> None:
    errors = np.array([[1.0, 0.5, 0.5, 2.0]] * 2)
    assert choose(np.array([0.0, 1.0, 2.0, 3.0]), errors, "best") == 2


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -np.inf, None, "1", np.ones(2)])
def test_a_score_is_a_finite_number(dataset: TaskDataset, value: Any) -> None:
    with pytest.raises(ParameterError, match="score must return a finite number"):
        select(dataset, [0.0, 1.0], n_folds=2, score=lambda squared_error, n_samples: value)


def test_a_score_is_a_function(dataset: TaskDataset) -> None:
    wrong: Any = "rmse"
    with pytest.raises(ParameterError, match="score must be a function, not 'rmse'"):
        select(dataset, [0.0], score=wrong)
