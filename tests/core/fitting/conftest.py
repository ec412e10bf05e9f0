"""Tasks in clusters, their folds, and a strength chosen on them."""

from __future__ import annotations

import numpy as np
import pytest

from ccmtl_core import (
    SufficientStatistics,
    TaskDataset,
    select,
)
from ccmtl_core.fitting.selection import Selection
from ccmtl_core.statistics.folds import random_folds

STRENGTHS = [0.0, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0]


def clustered(seed: int = 0, n_tasks: int = 30, noise: float = 1.0) -> TaskDataset:
    """Tasks in three clusters, with few and ragged rows: fusing pays, one model for all does not."""
    rng = np.random.default_rng(seed)
    centres = 2.0 * rng.standard_normal((3, 2))
    W = centres[np.arange(n_tasks) % 3] + 0.05 * rng.standard_normal((n_tasks, 2))
    X = [rng.standard_normal((rng.integers(6, 12), 2)) for _ in W]
    y = [x @ w + noise * rng.standard_normal(len(x)) for x, w in zip(X, W, strict=True)]
    return TaskDataset.from_arrays(X, y)


@pytest.fixture(scope="module")
def dataset() -> TaskDataset:
    return clustered()


@pytest.fixture(scope="module")
def folds(dataset: TaskDataset) -> list[SufficientStatistics]:
    fold = random_folds(dataset, 4, np.random.default_rng(1))
    return SufficientStatistics.by_fold(dataset, fold, 4)


@pytest.fixture(scope="module")
def selection(folds: list[SufficientStatistics]) -> Selection:
    return select(folds, STRENGTHS, n_neighbors=4, path_tolerance=1e-7, tolerance=1e-8)
