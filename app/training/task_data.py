"""Turn stored data into rows for training, and decide which of them are held out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.datasets.stored.frames import LoadedPanel
from app.registry.publication import History
from app.training.schemas import DEFAULT_LAGS, TrainingJobRequest
from ccmtl_core import TaskDataset
from ccmtl_core.forecasting import lag_dataset, latest_lags, split_by_time

HOLDOUT_SEED = 0


@dataclass(frozen=True)
class TrainingData:
    """What a fit reads.

    Parameters
    ----------
    dataset : TaskDataset
        n rows of T tasks.
    fold : (n,) int64, optional
        0 to train, 1 held out; None when nothing is held out.
    history : History, optional
        Of series: where forecasts start.
    facts : dict
        How the rows came about, for the version's metrics.
    period : (n,) int64, optional
        Of series: the period of each row's target.
    """

    dataset: TaskDataset
    fold: NDArray[np.int64] | None
    history: History | None
    facts: dict[str, Any]
    period: NDArray[np.int64] | None = None

    @property
    def for_training(self) -> NDArray[np.bool_]:
        """(n,) Rows that are not held out."""
        if self.fold is None:
            return np.ones(len(self.dataset.y), dtype=np.bool_)
        kept: NDArray[np.bool_] = self.fold == 0
        return kept


def prepare(data: LoadedPanel | TaskDataset, request: TrainingJobRequest) -> TrainingData:
    """Make rows of series, and decide which rows are held out.

    Raises
    ------
    ParameterError
        If the rows span too few periods to hold any out.
    """
    if isinstance(data, LoadedPanel):
        return _of_series(data, request)
    fold, facts = None, {"n_rows": len(data.y)}
    if request.holdout is not None:
        fold = split_within_tasks(data.offsets, request.holdout)
    return TrainingData(data, fold, None, facts)


def n_lags(request: TrainingJobRequest) -> int:
    """Return the number of lags of a request that is about series."""
    return DEFAULT_LAGS if request.lags is None else request.lags


def _of_series(loaded: LoadedPanel, request: TrainingJobRequest) -> TrainingData:
    panel = loaded.panel
    lagged = lag_dataset(panel, n_lags(request))
    facts: dict[str, Any] = {
        "n_rows": len(lagged.target_period),
        "n_periods_filled": loaded.n_filled,
        "n_periods_without_all_lags": lagged.n_dropped,
    }
    fold = None
    if request.holdout is not None:
        fold, cut = split_by_time(lagged, request.holdout)
        facts["first_held_out"] = str(panel.frequency.to_datetime([cut]).astype("datetime64[s]")[0])
    history = History(*latest_lags(panel, n_lags(request)))
    return TrainingData(lagged.dataset, fold, history, facts, lagged.target_period)


def split_within_tasks(offsets: NDArray[np.int64], fraction: float) -> NDArray[np.int64]:
    """Hold out ⌊n_t · fraction⌋ rows of each task, drawn at random with a fixed seed.

    Parameters
    ----------
    offsets : (T + 1,) int64
        Task t owns the rows ``offsets[t]:offsets[t + 1]``.
    fraction : float
        In (0, 1); every task with rows keeps at least one.

    Returns
    -------
    (n,) int64
        0 to train, 1 held out.
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
