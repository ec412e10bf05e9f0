"""A request and the data that it names go in; every reason why training cannot work comes out.

Of series only ids and times are looked at, so that a refusal costs no lag matrix.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
from numpy.typing import NDArray

from app.datasets.frames import LoadedPanel
from app.errors import Fault
from app.training.schemas import TrainingJobRequest
from app.training.task_data import held_out_sizes, n_lags
from ccmtl_core import TaskDataset
from ccmtl_core.forecasting import SeriesPanel


def find_faults(
    data: LoadedPanel | TaskDataset, request: TrainingJobRequest, unsound: Collection[str]
) -> list[Fault]:
    """Return why ``request`` cannot work on ``data``; its ``unsound`` fields are left out of account."""
    holdout = None if "holdout" in unsound else request.holdout
    if isinstance(data, TaskDataset):
        return list(_faults_of_rows(data, None if "lags" in unsound else request.lags, holdout))
    return [] if "lags" in unsound else list(_faults_of_series(data.panel, n_lags(request), holdout))


def _faults_of_series(panel: SeriesPanel, lags: int, holdout: float | None) -> Iterator[Fault]:
    first, length = _runs(panel)
    enough = length > lags
    if not enough.any():
        message = (
            f"no series has {lags + 1} consecutive periods, which {lags} lags need; "
            f"the longest run of periods is {length.max(initial=0)}"
        )
        yield Fault(message=message, location="body.lags", value=str(lags))
        return
    # The rows' targets are the periods of each run that have all their lags before them.
    last_target = int((first + length - 1)[enough].max())
    n_periods = last_target - int((first + lags)[enough].min()) + 1
    if holdout is not None and n_periods < 2:
        message = f"with {lags} lags the rows span {n_periods} period, too few to hold any out"
        yield Fault(message=message, location="body.holdout", value=str(holdout))


def _runs(panel: SeriesPanel) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First period and length of each run of consecutive periods inside a series."""
    if not len(panel.period):
        return panel.period, panel.period
    same_run = (np.diff(panel.period) == 1) & (np.diff(panel.series_index) == 0)
    start = np.flatnonzero(np.concatenate([[True], ~same_run]))
    return panel.period[start], np.diff(start, append=len(panel.period))


def _faults_of_rows(dataset: TaskDataset, lags: int | None, holdout: float | None) -> Iterator[Fault]:
    if lags is not None:
        message = "regression data has its own features; lags are for series"
        yield Fault(message=message, location="body.lags", value=str(lags))
    largest = int(dataset.n_samples.max(initial=0))
    if not largest:
        yield Fault(message="the dataset version has no rows", location="body.dataset")
    elif holdout is not None and not held_out_sizes(np.array([largest]), holdout).any():
        message = (
            f"{holdout} of the largest task's {largest} rows is less than one: nothing would be held out"
        )
        yield Fault(message=message, location="body.holdout", value=str(holdout))
