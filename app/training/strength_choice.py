"""Choose the strength of a training job by cross-validation, and describe how.

Only rows that are not held out take part: the metrics of the version stay honest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from app.training.progress import ProgressLog
from app.training.schemas import TrainingJobRequest
from app.training.task_data import TrainingData
from ccmtl_core import (
    Selection,
    SufficientStatistics,
    TaskDataset,
    contiguous_folds,
    random_folds,
    select,
)
from ccmtl_core.fitting.selection import Folds

FOLD_SEED = 0
SERIES_FOLDS: tuple[Folds, ...] = ("rolling", "contiguous")
ROW_FOLDS: tuple[Folds, ...] = ("random",)


def chooses(request: TrainingJobRequest) -> bool:
    """Whether the request leaves the strength to cross-validation."""
    return not isinstance(request.fusion_strength, int | float)


def folds_of(request: TrainingJobRequest, *, of_series: bool) -> Folds:
    """Return the way of folding that is asked for, or the default."""
    return request.folds or (SERIES_FOLDS if of_series else ROW_FOLDS)[0]


def n_blocks(request: TrainingJobRequest, *, of_series: bool) -> int:
    """Return the parts that the rows are cut into: rolling origins have a first that is never forecast."""
    return request.n_folds + (folds_of(request, of_series=of_series) == "rolling")


def parts(data: TrainingData, request: TrainingJobRequest) -> list[SufficientStatistics]:
    """Return the statistics of each fold of the rows for training and, last, of the held-out rows, if any.

    Raises
    ------
    DataError
        If there are too few periods.
    """
    count = n_blocks(request, of_series=data.period is not None)
    fold = np.full(len(data.dataset.y), count)
    kept = data.for_training
    rows = _rows(data.dataset, kept)
    if data.period is None:
        fold[kept] = random_folds(rows, count, np.random.default_rng(FOLD_SEED))
    else:
        fold[kept] = contiguous_folds(rows, count, data.period[kept])
    return SufficientStatistics.by_fold(data.dataset, fold, count + (data.fold is not None))


def choose(
    folds: Sequence[SufficientStatistics], request: TrainingJobRequest, log: ProgressLog, *, of_series: bool
) -> Selection:
    """Choose the strength and fit the rows for training with it, on all cores."""
    strengths = None if request.fusion_strength == "auto" else request.fusion_strength
    selection = select(
        folds,
        strengths,
        folds=folds_of(request, of_series=of_series),
        rule=request.rule,
        choices=request.choices,
        tolerance=request.tolerance,
        n_jobs=-1,
        on_progress=log.selection,
    )
    # Of statistics the library knows their order alone; those of series were parted by time.
    return replace(selection, order="time" if of_series else None)


def _rows(dataset: TaskDataset, kept: NDArray[np.bool_]) -> TaskDataset:
    if kept.all():
        return dataset
    counts = np.bincount(dataset.task_index[kept], minlength=dataset.n_tasks)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    return TaskDataset(dataset.X[kept], dataset.y[kept], offsets, dataset.task_ids, dataset.feature_names)
