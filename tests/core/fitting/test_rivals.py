"""Rivals: the pooled, single-task and shrunk models that errors are compared with."""

from __future__ import annotations

import numpy as np
import pytest

from ccmtl_core import (
    ModelChoices,
    SufficientStatistics,
    rival_models,
    select,
    shrunk_weights,
    training_statistics,
)
from ccmtl_core.fitting.rivals import SHRINKAGES
from ccmtl_core.fitting.scoring import mean_of_task_rmse
from ccmtl_core.fitting.selection import Selection


def test_the_shrunk_rival_is_shrunk_as_is_best_on_the_folds(
    folds: list[SufficientStatistics], selection: Selection
) -> None:
    errors = [
        [
            mean_of_task_rmse(test.squared_error(shrunk_weights(train, shrinkage)), test.n_samples)
            for train, test in zip(training_statistics(folds), folds, strict=True)
        ]
        for shrinkage in SHRINKAGES
    ]
    best = min(errors, key=np.mean)
    np.testing.assert_allclose(selection.rivals["shrunk"], best, rtol=1e-12)
    assert selection.rivals["shrunk"].mean() < selection.rivals["single_task"].mean()


@pytest.mark.parametrize(
    "choices",
    [
        ModelChoices(fit_intercept=True, loss_scaling="spread", n_neighbors=29),
        ModelChoices(metric="mahalanobis", n_neighbors=29),
    ],
)
def test_rivals_are_fitted_plain_and_with_the_same_choices(
    folds: list[SufficientStatistics], choices: ModelChoices
) -> None:
    result = select(folds, [1.0, 10.0], choices=choices)
    assert result.shrinkages.keys() == {"shrunk", "shrunk_same_choices"}
    for f, training in enumerate(training_statistics(folds)):
        models = rival_models(training, choices, result.shrinkages)
        assert models.keys() == result.rivals.keys()
        for name, model in models.items():
            squared = folds[f].squared_error(model.weights, model.intercept)
            error = mean_of_task_rmse(squared, folds[f].n_samples)
            assert result.rivals[name][f] == pytest.approx(error, rel=1e-9)
        same = models["pooled_same_choices"]
        assert (same.weights == same.weights[0]).all()
        assert bool(same.intercept.any()) is choices.fit_intercept
        assert not models["pooled"].intercept.any()
    # All fused with the choices, and each alone with them, are what those rivals are.
    ends = select(folds, [0.0, 1e9], choices=choices).fold_errors
    np.testing.assert_allclose(ends[:, 0], result.rivals["single_task_same_choices"], rtol=1e-6)
    np.testing.assert_allclose(ends[:, 1], result.rivals["pooled_same_choices"], rtol=1e-6)


def test_without_choices_rivals_of_the_same_choices_are_the_plain_ones(selection: Selection) -> None:
    for name in ("pooled", "single_task", "shrunk"):
        assert (selection.rivals[name] == selection.rivals[f"{name}_same_choices"]).all()
