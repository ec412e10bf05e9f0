"""Errors of the simple models on the same folds, which fusing must beat."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from ccmtl_core.base.types import FloatArray
from ccmtl_core.choices.single_task import pooled_weights, shrunk_weights, single_task_weights
from ccmtl_core.fitting.scoring import Score
from ccmtl_core.statistics.inputs import Statistics

SHRINKAGES = tuple(10.0**power for power in range(-3, 4))
"""Tried for the rival that is shrunk to the pooled weights."""


def rival_errors(
    training: Sequence[Statistics], held_out: Sequence[Statistics], score: Score
) -> dict[str, FloatArray]:
    """Errors (K,) of the simple models, fold by fold; the shrinkage is the one best on these folds."""

    def errors(weights: Callable[[Statistics], FloatArray]) -> FloatArray:
        return np.array(
            [
                score(test.squared_error(weights(train)), test.n_samples)
                for train, test in zip(training, held_out, strict=True)
            ]
        )

    shrunk = [errors(partial(shrunk_weights, shrinkage=shrinkage)) for shrinkage in SHRINKAGES]
    return {
        "pooled": errors(pooled_weights),
        "single_task": errors(single_task_weights),
        "shrunk": min(shrunk, key=np.mean),
    }
