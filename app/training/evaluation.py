"""Compute the errors of a fitted model on held-out rows, beside those of simple rivals.

The error of a forecast is the mean over tasks of the task's own root mean squared error,

    1/|S| Σ_{t ∈ S} sqrt( ‖X_t w_t + b_t − y_t‖² / n_t ),     S = tasks with held-out rows,

which is how the paper reports Sales and Ta-Feng; the root mean squared error over all rows, as it reports
School, stands beside it. All of it is computed from the sufficient statistics of the held-out rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ccmtl_core import CCMTLModel, ModelChoices, SufficientStatistics, rival_models


def evaluate(
    model: CCMTLModel,
    training: SufficientStatistics,
    held_out: SufficientStatistics,
    choices: ModelChoices | None = None,
    shrinkages: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    """Compare ``model``, fitted to ``training``, with simple rivals and with always zero.

    The rivals are fitted plain and with ``choices``; there are shrunk ones only with the ``shrinkages`` of a
    selection. The answer has ``rmse_mean_of_tasks`` and ``rmse_over_rows`` by method, and the counts behind
    them. Raise ValueError if no row is held out.
    """
    scored = held_out.n_samples > 0
    if not scored.any():
        raise ValueError("no row is held out: there is nothing to score")
    models = {"ccmtl": model, **rival_models(training, choices, shrinkages)}
    # Without intercepts, errors are computed without centring the rows, which would cost digits.
    errors = {
        name: held_out.squared_error(m.weights, m.intercept if m.intercept.any() else None)[scored]
        for name, m in models.items()
    }
    errors["zero"] = held_out.squared_error(np.zeros(training.n_features))[scored]
    rows = held_out.n_samples[scored]
    return {
        "rmse_mean_of_tasks": {name: float(np.sqrt(e / rows).mean()) for name, e in errors.items()},
        "rmse_over_rows": {name: float(np.sqrt(e.sum() / rows.sum())) for name, e in errors.items()},
        "n_tasks_scored": int(scored.sum()),
        "n_tasks_without_training_rows": int((scored & (training.n_samples == 0)).sum()),
        "n_train_rows": int(training.n_samples.sum()),
        "n_test_rows": int(rows.sum()),
    }
