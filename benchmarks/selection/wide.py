"""Time a selection for thousands of weekly series with many features, some of them exact mixtures of others.

The series are those of ``midsize``, over more weeks. A row is one week's units with what is known before:
means of the last weeks, the weeks themselves (of which most of these means are mixtures), the week one year
ago, the season of the year as Fourier terms and as four indicators (which add up to one: with an intercept
they are a mixture too). Folds are rolling origins; the first training parts have fewer rows than features.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from benchmarks.report import Bar, Row, Section, step
from benchmarks.selection.midsize import Stages, weekly_sales
from ccmtl_core import (
    ModelChoices,
    SufficientStatistics,
    TaskDataset,
    contiguous_folds,
    select,
    strength_grid,
    training_statistics,
)
from ccmtl_core.fitting.path import walk

SEED = 0
N_TASKS, N_FEATURES, N_FOLDS, N_ROWS = 3_900, 60, 5, 250
N_TASKS_QUICK = 390
YEAR = 52
WINDOWS = (1, 2, 4, 8, 13, 26, YEAR)
N_FOURIER, N_SEASONS = 4, 4
N_OTHERS = len(WINDOWS) + 1 + 2 * N_FOURIER + N_SEASONS  # features that are no lags
N_JOBS = 2
PATH_TOLERANCE, TOLERANCE = 1e-3, 1e-4  # those of select
MOST_SECONDS = 240.0  # of two processors together, for the whole selection: 120 s on two free cores
Array = NDArray[np.float64]


def measure(n_tasks: int = N_TASKS, n_features: int = N_FEATURES) -> Section:
    """Time the whole selection, then the stages of its last fold one after the other."""
    rng = np.random.default_rng(SEED)
    small, data = (rows(weekly_sales(rng, n, YEAR + N_ROWS), n_features) for n in (40, n_tasks))
    choices = ModelChoices(fit_intercept=True, metric="mahalanobis")
    select(small, folds="rolling", n_folds=2, choices=choices)  # compiles what is not compiled
    step(f"  {n_tasks} series, {n_features} features: the whole selection")
    stages = Stages()
    with stages.timed("whole selection"):
        selection = select(
            data, folds="rolling", n_folds=N_FOLDS, n_jobs=N_JOBS, choices=choices,
            path_tolerance=PATH_TOLERANCE, tolerance=TOLERANCE,
            on_progress=lambda progress: step(f"    {progress.done} of at most {progress.total} fits done"),
        )  # fmt: skip
    seconds, wall = (float(stages.rows[0][f"{clock} seconds"]) for clock in ("processor", "wall"))
    stages.rows.append(
        {
            "stage": f"final fit, in it: {selection.fit.report.rounds} rounds",
            "processor seconds": None,
            "wall seconds": selection.fit.report.seconds["solve"],
        }
    )
    step("  its last fold, stage by stage")
    _stages_of_last_fold(data, choices, stages)
    rows_of_folds: list[Row] = [
        {
            "fold": float(fold + 1),
            "largest gap": float(gaps.max()),
            "strengths beyond the tolerance": float((gaps > PATH_TOLERANCE).sum()),
        }
        for fold, gaps in enumerate(selection.gaps)
    ]
    bars = [
        Bar("processor seconds of the whole selection", seconds, MOST_SECONDS * n_tasks / N_TASKS),
        Bar("largest gap on the folds", float(selection.gaps.max()), PATH_TOLERANCE),
        Bar("gap of the final fit", selection.fit.report.gap, TOLERANCE),
    ]
    notes = [
        f"Whole selection: {wall:.0f} s by the clock of a machine whose load is said above; it walked the "
        f"{len(selection.fusion_strengths)} largest strengths of the grid, weaker ones being worse."
    ]
    title = f"{n_tasks} series, {n_features} features, {N_ROWS} rows each, {N_FOLDS} folds"
    return Section({title: stages.rows, "The folds": rows_of_folds}, bars, notes)


def _stages_of_last_fold(data: TaskDataset, choices: ModelChoices, stages: Stages) -> None:
    with stages.timed("statistics of all folds"):
        fold = contiguous_folds(data, N_FOLDS + 1)
        parts = SufficientStatistics.by_fold(data, fold, N_FOLDS + 1)
        training = training_statistics(parts, rolling=True)[-1]
    with stages.timed("last fold: metric and start"):
        prepared = choices.prepare(training)
    with stages.timed("last fold: graph"):
        graph = choices.graph(prepared)
    with stages.timed("last fold: grid of strengths"):
        strengths = strength_grid(prepared.statistics, graph)
    with stages.timed("last fold: path over the strengths"):
        points = list(walk(prepared.statistics, graph, prepared.start, strengths, tolerance=PATH_TOLERANCE))
    rounds, cg = sum(point.rounds for point in points), sum(point.cg_iterations for point in points)
    path = f"last fold: path, {len(points)} strengths in {rounds} rounds, {cg} CG iterations"
    stages.rows[-1] = {**stages.rows[-1], "stage": path}


def rows(sales: Array, n_features: int) -> TaskDataset:
    """One row for each week after the first year; ``n_features`` less ``N_OTHERS`` of them are lags."""
    n_tasks, n_weeks = sales.shape
    total = np.concatenate([np.zeros((n_tasks, 1)), np.cumsum(sales, axis=1)], axis=1)
    weeks = np.arange(YEAR, n_weeks)
    columns = [(total[:, weeks] - total[:, weeks - w]) / w for w in WINDOWS]
    columns += [sales[:, weeks - lag] for lag in [*range(1, n_features - N_OTHERS + 1), YEAR]]
    angle = 2.0 * np.pi * weeks / YEAR
    season = [wave(k * angle) for k in range(1, N_FOURIER + 1) for wave in (np.cos, np.sin)]
    season += [(weeks % YEAR) * N_SEASONS // YEAR == quarter for quarter in range(N_SEASONS)]
    columns += [np.broadcast_to(column, (n_tasks, len(weeks))) for column in season]
    n = len(weeks)
    return TaskDataset(
        np.stack(columns, axis=2).reshape(n_tasks * n, n_features),
        sales[:, weeks].ravel(),
        np.arange(n_tasks + 1) * n,
        tuple(map(str, range(n_tasks))),
        tuple(f"feature {number}" for number in range(1, n_features + 1)),
    )
