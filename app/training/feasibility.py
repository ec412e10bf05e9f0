"""A request and the data that it names go in; every reason why training cannot work comes out.

Of series only ids and times are looked at, so that a refusal costs no lag matrix.
"""

from __future__ import annotations

from collections.abc import Iterator, Set

import numpy as np
from numpy.typing import NDArray

from app.datasets.stored.frames import LoadedPanel
from app.http.errors import Fault
from app.training.schemas import MIN_FOLDS, TrainingJobRequest
from app.training.strength_choice import ROW_FOLDS, SERIES_FOLDS, chooses, folds_of, n_blocks
from app.training.task_data import held_out_sizes, n_lags
from ccmtl_core import TaskDataset
from ccmtl_core.forecasting import SeriesPanel, n_periods_held_out


def find_faults(
    data: LoadedPanel | TaskDataset, request: TrainingJobRequest, unsound: Set[str]
) -> list[Fault]:
    """Return why ``request`` cannot work on ``data``; its ``unsound`` fields are left out of account."""
    holdout = None if "holdout" in unsound else request.holdout
    of_series = not isinstance(data, TaskDataset)
    faults, parts = [], 0
    if not unsound & {"fusion_strength", "folds", "n_folds"} and chooses(request):
        faults = list(_faults_of_folds(request, of_series=of_series))
        parts = 0 if faults else n_blocks(request, of_series=of_series)
    if isinstance(data, TaskDataset):
        lags = None if "lags" in unsound else request.lags
        return faults + _naming_default(_faults_of_rows(data, lags, holdout, parts), request)
    if "lags" in unsound:
        return faults
    return faults + _naming_default(_faults_of_series(data.panel, n_lags(request), holdout, parts), request)


def _naming_default(found: Iterator[Fault], request: TrainingJobRequest) -> list[Fault]:
    """Say of ``n_folds`` whether it was asked for, and that it can be smaller."""
    whose = "" if "n_folds" in request.model_fields_set else ", the default"
    smaller = f"; `n_folds` is {request.n_folds}{whose}, and can be as small as {MIN_FOLDS}"
    return [
        fault.model_copy(update={"message": fault.message + smaller, "value": str(request.n_folds)})
        if fault.location == "body.n_folds"
        else fault
        for fault in found
    ]


def _faults_of_folds(request: TrainingJobRequest, *, of_series: bool) -> Iterator[Fault]:
    allowed = SERIES_FOLDS if of_series else ROW_FOLDS
    if folds_of(request, of_series=of_series) not in allowed:
        kind = "series" if of_series else "regression data"
        message = f"the folds of {kind} must be {' or '.join(allowed)}"
        yield Fault(message=message, location="body.folds", value=request.folds)


def _faults_of_series(panel: SeriesPanel, lags: int, holdout: float | None, parts: int) -> Iterator[Fault]:
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
    starts, ends = (first + lags)[enough], (first + length)[enough]
    n_periods = int(ends.max() - starts.min())
    if holdout is not None and n_periods < 2:
        message = f"with {lags} lags the rows span {n_periods} period, too few to hold any out"
        yield Fault(message=message, location="body.holdout", value=str(holdout))
        return
    n_kept = n_periods if holdout is None else n_periods - n_periods_held_out(n_periods, holdout)
    n_distinct = int((_covered(starts, ends)[:n_kept] > 0).sum())
    if n_distinct < parts:
        message = (
            f"with {lags} lags the rows for training have {n_distinct} different periods; "
            f"to choose a strength, {parts} are needed"
        )
        yield Fault(message=message, location="body.n_folds", value=str(parts))


def _covered(starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many of the ranges [start, end) hold each period, from the earliest on."""
    begin = starts.min()
    steps = np.zeros(int(ends.max() - begin) + 1, dtype=np.int64)
    np.add.at(steps, starts - begin, 1)
    np.subtract.at(steps, ends - begin, 1)
    covered: NDArray[np.int64] = np.cumsum(steps)
    return covered


def _runs(panel: SeriesPanel) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First period and length of each run of consecutive periods inside a series."""
    if not len(panel.period):
        return panel.period, panel.period
    same_run = (np.diff(panel.period) == 1) & (np.diff(panel.series_index) == 0)
    start = np.flatnonzero(np.concatenate([[True], ~same_run]))
    return panel.period[start], np.diff(start, append=len(panel.period))


def _faults_of_rows(
    dataset: TaskDataset, lags: int | None, holdout: float | None, parts: int
) -> Iterator[Fault]:
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
        return
    kept = largest - (0 if holdout is None else int(held_out_sizes(np.array([largest]), holdout)[0]))
    if largest > 0 and kept < parts:
        message = (
            f"the largest task has {kept} rows for training; to choose a strength, {parts} are needed, "
            "one for each fold"
        )
        yield Fault(message=message, location="body.n_folds", value=str(parts))
