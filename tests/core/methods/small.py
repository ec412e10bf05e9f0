"""Few ragged tasks in two groups, one of them with fewer rows than features, as rows and as statistics."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from ccmtl_core import SufficientStatistics, TaskDataset


class _Rows(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    task: np.ndarray


class Tasks(_Rows):
    @cached_property
    def dataset(self) -> TaskDataset:
        return TaskDataset.from_long(self.X, self.y, self.task)

    @cached_property
    def statistics(self) -> SufficientStatistics:
        return SufficientStatistics.from_dataset(self.dataset)

    @property
    def blocks(self) -> list[tuple[np.ndarray, np.ndarray]]:
        cuts = self.dataset.offsets[1:-1]
        return list(zip(np.split(self.dataset.X, cuts), np.split(self.dataset.y, cuts), strict=True))


def tasks(seed: int, n_tasks: int = 6, n_features: int = 4, short: bool = True) -> Tasks:
    rng = np.random.default_rng(seed)
    centres = 2.0 * rng.standard_normal((2, n_features))
    sizes = rng.integers(6, 12, n_tasks)
    sizes[0] = 2 if short else 9
    task = np.repeat(np.arange(n_tasks), sizes)
    W = centres[np.arange(n_tasks) % 2] + 0.3 * rng.standard_normal((n_tasks, n_features))
    X = rng.standard_normal((len(task), n_features))
    y = np.einsum("np,np->n", X, W[task]) + 0.5 * rng.standard_normal(len(task))
    return Tasks(X, y, task)
