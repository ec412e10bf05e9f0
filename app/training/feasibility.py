"""Find every reason why a training cannot work, from the request and the coverage of the data that it names.

No row is read here: a coverage says how many there are for whom, and in which periods.
"""

from __future__ import annotations

from collections.abc import Iterator, Set

import numpy as np
from numpy.typing import NDArray

from app.datasets.stored.coverage import Coverage
from app.datasets.stored.runs import blocks
from app.http.errors import Fault
from app.training.schemas import MIN_FOLDS, TrainingJobRequest
from app.training.strength_choice import ROW_FOLDS, SERIES_FOLDS, chooses, folds_of, n_blocks
from app.training.task_data import held_out_sizes, n_lags
from ccmtl_core.forecasting import n_periods_held_out


def find_faults(coverage: Coverage, request: TrainingJobRequest, unsound: Set[str]) -> list[Fault]:
    """Return why ``request`` cannot work on data of this coverage; its ``unsound`` fields are not judged."""
    holdout = None if "holdout" in unsound else request.holdout
    of_series = coverage.runs is not None
    faults, parts = [], 0
    if not unsound & {"fusion_strength", "folds", "n_folds"} and chooses(request):
        faults = list(_faults_of_folds(request, of_series=of_series))
        parts = 0 if faults else n_blocks(request, of_series=of_series)
    if coverage.runs is None:
        lags = None if "lags" in unsound else request.lags
        return faults + _naming_default(_faults_of_rows(coverage.sizes, lags, holdout, parts), request)
    if "lags" in unsound:
        return faults
    lags = n_lags(request)
    of_data = _naming_default(_faults_of_series(coverage.runs, lags, holdout, parts), request)
    if not (of_data or request.accept_gaps or "accept_gaps" in unsound):
        of_data = list(_faults_of_gaps(coverage, lags))
    return faults + of_data


def faults_of_one_strength(request: TrainingJobRequest, unsound: Set[str]) -> list[Fault]:
    """Refuse what says how a strength is chosen of several, where ``request`` names a single one."""
    if "fusion_strength" in unsound or chooses(request):
        return []
    given = {name: getattr(request, name) for name in ("folds", "n_folds", "rule") if name not in unsound}
    message = (
        "says how one of several strengths is chosen, and `fusion_strength` is one: leave it out, or give a "
        'list of strengths, or "auto"'
    )
    return [
        Fault(message=message, location=f"body.{name}", value=str(value))
        for name, value in given.items()
        if name in request.model_fields_set and value is not None
    ]


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


def _faults_of_series(
    runs: NDArray[np.int64], lags: int, holdout: float | None, parts: int
) -> Iterator[Fault]:
    first, length, _ = runs.T
    enough = length > lags
    if not enough.any():
        message = (
            f"no series has {lags + 1} consecutive periods, which {lags} lags need; "
            f"the longest run of periods is {length.max(initial=0)}"
        )
        yield Fault(message=message, location="body.lags", value=str(lags))
        return
    # The rows' targets are the periods of each run that have all their lags before them.
    starts, ends = blocks((first + lags)[enough], (length - lags)[enough])
    n_periods = int(ends[-1] - starts[0])
    if holdout is not None and n_periods < 2:
        message = f"with {lags} lags the rows span {n_periods} period, too few to hold any out"
        yield Fault(message=message, location="body.holdout", value=str(holdout))
        return
    n_kept = n_periods if holdout is None else n_periods - n_periods_held_out(n_periods, holdout)
    n_distinct = int(np.maximum(np.minimum(ends, starts[0] + n_kept) - starts, 0).sum())
    if n_distinct < parts:
        message = (
            f"with {lags} lags the rows for training have {n_distinct} different periods; "
            f"to choose a strength, {parts} are needed"
        )
        yield Fault(message=message, location="body.n_folds", value=str(parts))


def _faults_of_gaps(coverage: Coverage, lags: int) -> Iterator[Fault]:
    """Refuse series of which less than half of the rows can be used: the others may be of another kind."""
    if _half_is_used(coverage, lags):
        return
    used, possible = coverage.rows_with(lags)
    enough = next((n for n in range(lags - 1, 0, -1) if _half_is_used(coverage, n)), 0)
    message = (
        f"with {lags} lags only {used} of {possible} rows can be used: the others lack a value in one of the "
        f"{lags} periods before them, and a model of the rest may be wrong for them. If nothing happened in "
        'the absent periods, upload to a dataset with `fill` {"method": "zero"}; if they do not count, take '
        f"{f'at most {enough} lags or ' if enough else ''}a longer `frequency`; or send `accept_gaps`: true"
    )
    yield Fault(code="too_many_gaps", message=message, location="body.lags", value=str(lags))


def _half_is_used(coverage: Coverage, lags: int) -> bool:
    used, possible = coverage.rows_with(lags)
    return 2 * used >= possible


def _faults_of_rows(
    sizes: NDArray[np.int64], lags: int | None, holdout: float | None, parts: int
) -> Iterator[Fault]:
    if lags is not None:
        message = "regression data has its own features; lags are for series"
        yield Fault(message=message, location="body.lags", value=str(lags))
    largest = int(sizes[:, 0].max(initial=0))
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
