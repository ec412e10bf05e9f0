"""Time, stage by stage, a selection for thousands of weekly series whose features nearly agree.

The series are invented: levels with a heavy tail, seasons that groups of products share, promotions, and a
part that hardly sells. A row is a target up to eight weeks ahead, with what is known before: means of the
last weeks, the same weeks of earlier years, and further lags where more features are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from benchmarks.report import Bar, Row, Section, step
from benchmarks.stopwatch import Stopwatch
from ccmtl_core import (
    ModelChoices,
    SufficientStatistics,
    TaskDataset,
    nearest_neighbour_graph,
    random_folds,
    select,
    strength_grid,
    training_statistics,
)
from ccmtl_core.fitting.path import walk

SEED = 0
N_TASKS, N_FEATURES, N_FOLDS = 3_900, 9, 2
YEAR, N_WEEKS, N_ORIGINS, HORIZON = 52, 208, 32, 8
WINDOWS = (1, 2, 4, 8, 13)
N_GROUPS = 12  # of products that share a season
SHARE_THIN = 0.15  # of the products, which hardly sell
MEMORY = 0.8  # of a week, in the mean that fades
N_JOBS = 2
PATH_TOLERANCE = 1e-3  # that of select
MOST_SECONDS = 12.0  # of a processor, for either choice of the intercept
Array = NDArray[np.float64]


def measure(n_tasks: int = N_TASKS, n_features: int = N_FEATURES, n_folds: int = N_FOLDS) -> Section:
    """Time the stages of one fold and the whole selection, with and without an intercept."""
    rng = np.random.default_rng(SEED)
    small, data = (rows(weekly_sales(rng, n), n_features) for n in (40, n_tasks))
    tables: dict[str, list[Row]] = {}
    bars: list[Bar] = []
    for fit_intercept in (False, True):
        choices = ModelChoices(fit_intercept=fit_intercept, metric="mahalanobis")
        select(small, n_folds=2, choices=choices)  # compiles what is not compiled
        step(f"  {n_tasks} series, {'with' if fit_intercept else 'without'} an intercept")
        stages = Stages()
        with stages.timed("whole selection"):
            selection = select(data, n_folds=n_folds, n_jobs=N_JOBS, choices=choices)
        seconds = float(stages.rows[0]["processor seconds"])
        _walk_one_fold(data, choices, n_folds, stages)
        name = "with an intercept" if fit_intercept else "no intercept"
        tables[f"{n_tasks} series, {n_features} features, {n_folds} folds, {name}"] = stages.rows
        bars += [
            Bar(f"processor seconds of the whole selection, {name}", seconds, MOST_SECONDS),
            Bar(f"largest gap on the folds, {name}", float(selection.gaps.max()), PATH_TOLERANCE),
        ]
    return Section(tables, bars)


class Stages:
    """Seconds by stage."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Time the block, and add a row."""
        watch = Stopwatch()
        with watch.running():
            yield
        cpu, wall = watch.seconds
        self.rows.append({"stage": stage, "processor seconds": cpu, "wall seconds": wall})


def _walk_one_fold(data: TaskDataset, choices: ModelChoices, n_folds: int, stages: Stages) -> None:
    """The stages of a selection, one after the other, for the rows without one fold."""
    with stages.timed("statistics of all folds"):
        fold = random_folds(data, n_folds, np.random.default_rng(SEED))
        training = training_statistics(SufficientStatistics.by_fold(data, fold, n_folds))[0]
    with stages.timed("one fold: metric and start"):
        prepared = choices.prepare(training)
    with stages.timed("one fold: graph"):
        graph = nearest_neighbour_graph(prepared.start)
    with stages.timed("one fold: grid of strengths"):
        strengths = strength_grid(prepared.statistics, graph)
    with stages.timed("one fold: path over the strengths"):
        points = list(walk(prepared.statistics, graph, prepared.start, strengths, tolerance=PATH_TOLERANCE))
    rounds, cg = sum(point.rounds for point in points), sum(point.cg_iterations for point in points)
    path = f"one fold: path, {len(points)} strengths in {rounds} rounds, {cg} CG iterations"
    stages.rows[-1] = {**stages.rows[-1], "stage": path}


def weekly_sales(rng: np.random.Generator, n_tasks: int, n_weeks: int = N_WEEKS) -> Array:
    """Units of each week, (T, n_weeks), in units of their own typical change."""
    group = rng.integers(0, N_GROUPS, n_tasks)
    phase = rng.uniform(0.0, 2.0 * np.pi, N_GROUPS)[group] + rng.normal(0.0, 0.2, n_tasks)
    swing = rng.gamma(2.0, 0.12, N_GROUPS)[group] * rng.gamma(4.0, 0.25, n_tasks)
    season = swing[:, None] * np.cos(2.0 * np.pi * np.arange(n_weeks) / YEAR + phase[:, None])
    shape = n_tasks, n_weeks
    drift = np.cumsum(rng.normal(0.0, 0.03, shape), axis=1)
    promoted = rng.random(shape) < rng.uniform(0.0, 0.1, (n_tasks, 1))
    noise = rng.normal(0.0, 1.0, shape) * rng.gamma(4.0, 0.05, (n_tasks, 1))
    level = rng.normal(3.0, 1.3, (n_tasks, 1))
    units = np.round(np.exp(level + season + drift + promoted * rng.gamma(2.0, 0.4, shape) + noise))
    thin = rng.random((n_tasks, 1)) < SHARE_THIN
    units = np.where(thin, rng.poisson(0.1 * units), units)
    change = np.sqrt(np.mean(np.diff(units, axis=1) ** 2, axis=1, keepdims=True))
    scaled: Array = units / np.where(change > 0.0, change, 1.0)
    return scaled


def rows(sales: Array, n_features: int) -> TaskDataset:
    """One row for each origin and step ahead: nine features, then lags from the second last week on."""
    n_tasks = len(sales)
    total = np.concatenate([np.zeros((n_tasks, 1)), np.cumsum(sales, axis=1)], axis=1)
    fading = sales[:, :1]
    X, y = [], []
    for week in range(1, N_WEEKS - HORIZON + 1):
        if week > N_WEEKS - HORIZON - N_ORIGINS:
            levels = [(total[:, week] - total[:, week - w]) / w for w in WINDOWS]
            a_year_ago = total[:, week - YEAR] - total[:, week - YEAR - WINDOWS[-1]]
            lags = [sales[:, week - lag] for lag in range(2, 2 + n_features - 9)]
            for target in range(week, week + HORIZON):
                same = sales[:, target - YEAR :: -YEAR]
                columns = [*levels, same[:, 0], a_year_ago / WINDOWS[-1], same.mean(axis=1), fading[:, 0]]
                X.append(np.stack(columns + lags, axis=1))
                y.append(sales[:, target])
        fading = MEMORY * fading + (1.0 - MEMORY) * sales[:, week : week + 1]
    n = len(y)
    return TaskDataset(
        np.stack(X, axis=1).reshape(n_tasks * n, n_features),
        np.stack(y, axis=1).ravel(),
        np.arange(n_tasks + 1) * n,
        tuple(map(str, range(n_tasks))),
        tuple(f"feature {number}" for number in range(1, n_features + 1)),
    )
