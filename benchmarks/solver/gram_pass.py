"""Measure how long the one pass over the rows takes, beside a plain sum over them.

The first shape is that of the largest synthetic set, the others are those of Ta-Feng and School.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.report import Bar, Row, Section
from benchmarks.stopwatch import best_of
from ccmtl_core import SufficientStatistics, TaskDataset, TriangularStatistics

SHAPES = ((160_000, 100, 10), (23_812, 115, 5), (139, 110, 28))
REPEATS = 5
MOST_PASSES = 2.5


def measure() -> Section:
    """Measure each shape; the bar is for the first."""
    tables = {
        f"{n_tasks * n_samples:,} rows of {n_features} features in {n_tasks:,} tasks": _rows(
            n_tasks, n_samples, n_features
        )
        for n_tasks, n_samples, n_features in SHAPES
    }
    passes = next(iter(tables.values()))[1]["plain sums"]
    return Section(tables, [Bar("statistics over a plain sum", passes, MOST_PASSES)])


def _rows(n_tasks: int, n_samples: int, n_features: int) -> list[Row]:
    """Time a plain sum, the Gram form, the same in five random folds, and the triangular form."""
    rng = np.random.default_rng(0)
    n = n_tasks * n_samples
    names = tuple(map(str, range(n_tasks))), tuple(map(str, range(n_features)))
    offsets = np.arange(n_tasks + 1) * n_samples
    data = TaskDataset(rng.standard_normal((n, n_features)), rng.standard_normal(n), offsets, *names)
    fold = rng.integers(0, 5, n)
    passes: dict[str, Callable[[], object]] = {
        "plain sum": data.X.sum,
        "gram": lambda: SufficientStatistics.from_dataset(data),
        "gram, 5 folds": lambda: SufficientStatistics.by_fold(data, fold, 5),
        "triangular": lambda: TriangularStatistics.from_dataset(data),
    }
    seconds = {name: best_of(REPEATS, work)[1].cpu for name, work in passes.items()}
    return [
        {"": name, "seconds": value, "plain sums": value / seconds["plain sum"]}
        for name, value in seconds.items()
    ]
