"""Turn stored data into rows for training, and decide which are held out and which fold each row is in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.datasets.stored.frames import LoadedPanel
from app.registry.publication import History
from app.training.schemas import TrainingJobRequest
from ccmtl_core import SufficientStatistics, TaskDataset, contiguous_folds, random_folds
from ccmtl_core.forecasting import lag_dataset, latest_lags, split_by_time

HOLDOUT_SEED = FOLD_SEED = 0
MAX_NAMED = 10
"""Products that a note names when they cannot be forecast."""


@dataclass(frozen=True)
class TrainingData:
    """What a fit reads.

    ``fold`` is 0 for rows to train on and 1 for held-out ones, None when nothing is held out; ``facts`` say
    how the rows came about, for the version's metrics. Series also have a ``history``, where forecasts start,
    and the ``period`` of each row's target.
    """

    dataset: TaskDataset
    fold: NDArray[np.int64] | None
    history: History | None
    facts: dict[str, Any]
    period: NDArray[np.int64] | None = None


def prepare(data: LoadedPanel | TaskDataset, request: TrainingJobRequest) -> TrainingData:
    """Make rows of series, and decide which are held out; raise ParameterError for too few periods."""
    if isinstance(data, LoadedPanel):
        return _of_series(data, request)
    fold = None if request.holdout is None else split_within_tasks(data.offsets, request.holdout)
    return TrainingData(data, fold, None, {"n_rows": len(data.y)})


def _of_series(loaded: LoadedPanel, request: TrainingJobRequest) -> TrainingData:
    panel = loaded.panel
    lagged = lag_dataset(panel, request.n_lags)
    facts: dict[str, Any] = {
        "n_rows": len(lagged.target_period),
        "n_periods_filled": loaded.n_filled,
        "n_periods_without_all_lags": lagged.n_dropped,
    }
    fold = None
    if request.holdout is not None:
        fold, cut = split_by_time(lagged, request.holdout)
        facts["first_held_out"] = panel.frequency.text(cut, "s")
    history = History(*latest_lags(panel, request.n_lags))
    return TrainingData(lagged.dataset, fold, history, facts, lagged.target_period)


def split_within_tasks(offsets: NDArray[np.int64], fraction: float) -> NDArray[np.int64]:
    """Hold out ⌊n_t · fraction⌋ rows of each task, drawn at random with a fixed seed.

    Task t owns the rows ``offsets[t]:offsets[t + 1]``; each row gets 0 to train on or 1 when held out.
    """
    sizes = np.diff(offsets)
    task = np.repeat(np.arange(len(sizes)), sizes)
    order = np.lexsort((np.random.default_rng(HOLDOUT_SEED).random(len(task)), task))
    fold = np.empty(len(task), dtype=np.int64)
    fold[order] = np.arange(len(task)) - offsets[task] < held_out_sizes(sizes, fraction)[task]
    return fold


def held_out_sizes(sizes: NDArray[np.int64], fraction: float) -> NDArray[np.int64]:
    """Return how many of each task's rows are held out."""
    whole: NDArray[np.int64] = np.floor(sizes * fraction).astype(np.int64)
    return whole


def statistics(
    data: TrainingData, request: TrainingJobRequest
) -> tuple[list[SufficientStatistics], SufficientStatistics | None]:
    """Return statistics of the rows for training, by fold where a strength is chosen, and of those held out.

    Only rows for training are put into folds, so that the held-out rows take no part in the choice. Raise
    DataError if they have too few periods for the folds.
    """
    if not request.chooses_strength:
        if data.fold is None:
            return [SufficientStatistics.from_dataset(data.dataset)], None
        training, held_out = SufficientStatistics.by_fold(data.dataset, data.fold, 2)
        return [training], held_out
    n_parts = request.n_parts(of_series=data.period is not None)
    fold = np.full(len(data.dataset.y), n_parts)
    kept = fold == n_parts if data.fold is None else data.fold == 0
    rows = _rows(data.dataset, kept)
    if data.period is None:
        fold[kept] = random_folds(rows, n_parts, np.random.default_rng(FOLD_SEED))
    else:
        fold[kept] = contiguous_folds(rows, n_parts, data.period[kept])
    parts = SufficientStatistics.by_fold(data.dataset, fold, n_parts + (data.fold is not None))
    return parts[:n_parts], None if data.fold is None else parts[-1]


def _rows(dataset: TaskDataset, kept: NDArray[np.bool_]) -> TaskDataset:
    if kept.all():
        return dataset
    counts = np.bincount(dataset.task_index[kept], minlength=dataset.n_tasks)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    return TaskDataset(dataset.X[kept], dataset.y[kept], offsets, dataset.task_ids, dataset.feature_names)


def left_out(data: TrainingData) -> tuple[dict[str, Any], list[str]]:
    """Return what a version's report says of rows that could not be used, and the same as notes in words.

    The report has ``rows``: the values there are, how many became a target, and their share; of series also
    ``not_forecast``: how many products lack the newest values that a forecast starts from, and the first ids.
    """
    used = len(data.dataset.y)
    values = used + data.facts.get("n_periods_without_all_lags", 0)
    share = used / values
    report: dict[str, Any] = {"rows": {"values": values, "used": used, "share": share}}
    notes = []
    if 2 * used < values:
        notes.append(
            f"Only {used:,} of {values:,} values ({share:.0%}) could be trained on: the others lack a value "
            "in one of the periods before them. Absent periods can be filled, or fewer lags taken."
        )
    if data.history is not None:
        lacks_history = np.isnan(data.history.lags[:, 0])
        last = f"their last {data.dataset.n_features} periods"
        report["not_forecast"], lacking = not_forecast(lacks_history, data.dataset.task_ids, last)
        notes += lacking
    return report, notes


def not_forecast(
    lacks_history: NDArray[np.bool_], unique_ids: Sequence[str], where: str
) -> tuple[dict[str, Any], list[str]]:
    """Return what a report says of products without the values that forecasts start from, also in words."""
    missing = np.flatnonzero(lacks_history)
    named = [unique_ids[t] for t in missing[:MAX_NAMED]]
    notes = []
    if named:
        more = " and others" if len(missing) > MAX_NAMED else ""
        notes.append(
            f"{len(missing):,} of {len(unique_ids):,} products cannot be forecast, for want of values in "
            f"{where}: {', '.join(map(repr, named))}{more}."
        )
    return {"count": len(missing), "examples": named}, notes
