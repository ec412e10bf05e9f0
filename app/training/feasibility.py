"""Find every reason why a training cannot work, from the request and the coverage of the data that it names.

No row is read here: a coverage says how many rows each series or task has, and in which periods.
"""

from __future__ import annotations

from collections.abc import Iterator, Set

import numpy as np
from numpy.typing import NDArray

from app.datasets.stored.coverage import Coverage
from app.http.errors import Fault
from app.training.schemas import MIN_FOLDS, ROW_FOLDS, SERIES_FOLDS, TrainingJobRequest
from app.training.task_data import held_out_sizes
from ccmtl_core.forecasting import n_periods_held_out
from ccmtl_core.series.runs import blocks

_WITHOUT_EFFECT = {
    "lags": "chooses the features of series itself; give one of the two",
    "holdout": "trains on everything and takes the metrics from rolling origins",
    "refit": "trains on everything and takes the metrics from rolling origins",
    "folds": "chooses the strength on rolling origins",
    "n_folds": "chooses the strength on rolling origins",
    "rule": "chooses the strength of least error on rolling origins",
    "loss_scaling": "takes every series in a unit of its own",
    "accept_gaps": "makes rows of series with gaps too",
}
"""What a request with a horizon may not say, and why."""


def find_faults(coverage: Coverage, request: TrainingJobRequest, unsound: Set[str]) -> list[Fault]:
    """Return why ``request`` cannot work on data of this coverage; its ``unsound`` fields are not judged."""
    of_series = coverage.runs is not None
    if "horizon" in unsound:
        return []
    if request.horizon is not None:
        return list(_faults_of_direct_rows(coverage, request.horizon))
    request = request.model_copy(update=dict.fromkeys(unsound & {"holdout", "lags"}))
    faults, n_parts = [], 0
    if not unsound & {"fusion_strength", "folds", "n_folds"} and request.chooses_strength:
        kind, allowed = ("series", SERIES_FOLDS) if of_series else ("regression data", ROW_FOLDS)
        if request.folds_of(of_series=of_series) in allowed:
            n_parts = request.n_parts(of_series=of_series)
        else:
            message = f"the folds of {kind} must be {' or '.join(allowed)}"
            faults.append(Fault(message=message, location="body.folds", value=request.folds))
    if coverage.runs is None:
        return faults + list(_faults_of_rows(coverage.sizes, request, n_parts))
    if "lags" in unsound:
        return faults
    of_data = list(_faults_of_series(coverage.runs, request, n_parts))
    if not (of_data or request.accept_gaps or "accept_gaps" in unsound):
        of_data = list(_faults_of_gaps(coverage, request.n_lags))
    return faults + of_data


def faults_of_horizon(request: TrainingJobRequest, unsound: Set[str]) -> list[Fault]:
    """Refuse what has no effect beside a horizon."""
    if request.horizon is None and request.aim != "products" and not unsound & {"horizon", "aim"}:
        message = "`aim` is what forecasts with a `horizon` aim at: give one, or leave it out"
        return [Fault(message=message, location="body.aim", value=request.aim)]
    if request.horizon is None or "horizon" in unsound:
        return []
    faults = [
        Fault(message=f"`horizon` {reason}: leave it out", location=f"body.{name}", value=str(value))
        for name, reason in _WITHOUT_EFFECT.items()
        if name in request.model_fields_set - unsound and (value := getattr(request, name)) is not None
    ]
    if "fusion_strength" not in unsound and isinstance(request.fusion_strength, tuple | list):
        message = 'with `horizon`, the strength is one number or "auto"'
        faults.append(Fault(message=message, location="body.fusion_strength"))
    return faults


def faults_of_one_strength(request: TrainingJobRequest, unsound: Set[str]) -> list[Fault]:
    """Refuse what says how a strength is chosen of several, where ``request`` names a single one."""
    if "fusion_strength" in unsound or request.chooses_strength:
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


def _faults_of_direct_rows(coverage: Coverage, horizon: int) -> Iterator[Fault]:
    message = ""
    if coverage.runs is None:
        message = "regression data has no periods to forecast; `horizon` is for series"
    elif coverage.sizes[:, 0].max(initial=0) < 2:
        message = "no series has two values, the least that a forecast can be learnt from"
    else:
        first, length, _ = coverage.runs.T
        n_periods = int((first + length).max() - first.min())
        if horizon >= n_periods:
            message = f"the series span {n_periods} periods; a horizon must be shorter than the history"
    if message:
        yield Fault(message=message, location="body.horizon", value=str(horizon))


def _faults_of_series(runs: NDArray[np.int64], request: TrainingJobRequest, n_parts: int) -> Iterator[Fault]:
    lags, (first, length, _) = request.n_lags, runs.T
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
    n_kept = n_periods = int(ends[-1] - starts[0])
    if request.holdout is not None:
        if n_periods < 2:
            message = f"with {lags} lags the rows span {n_periods} period, too few to hold any out"
            yield Fault(message=message, location="body.holdout", value=str(request.holdout))
            return
        n_kept -= n_periods_held_out(n_periods, request.holdout)
    n_distinct = int(np.maximum(np.minimum(ends, starts[0] + n_kept) - starts, 0).sum())
    if n_distinct < n_parts:
        yield _too_few_for_folds(
            request,
            f"with {lags} lags the rows for training have {n_distinct} different periods; "
            f"to choose a strength, {n_parts} are needed",
        )


def _faults_of_gaps(coverage: Coverage, lags: int) -> Iterator[Fault]:
    """Refuse series of which less than half of the rows can be used: the others may be of another kind."""
    if _half_is_used(coverage, lags):
        return
    used, possible = coverage.rows_with(lags)
    enough = next((n for n in range(lags - 1, 0, -1) if _half_is_used(coverage, n)), 0)
    message = (
        f"with {lags} lags only {used:,} of {possible:,} rows can be used: the others lack a value in one of "
        f"the {lags} periods before them, and a model of the rest may be wrong for them. If nothing happened "
        'in the absent periods, upload to a dataset with `fill` {"method": "zero"}; if they do not count, '
        f"take {f'at most {enough} lags or ' if enough else ''}a longer `frequency`; or send "
        "`accept_gaps`: true"
    )
    yield Fault(code="too_many_gaps", message=message, location="body.lags", value=str(lags))


def _half_is_used(coverage: Coverage, lags: int) -> bool:
    used, possible = coverage.rows_with(lags)
    return 2 * used >= possible


def _faults_of_rows(sizes: NDArray[np.int64], request: TrainingJobRequest, n_parts: int) -> Iterator[Fault]:
    if request.lags is not None:
        message = "regression data has its own features; lags are for series"
        yield Fault(message=message, location="body.lags", value=str(request.lags))
    largest = int(sizes[:, 0].max(initial=0))
    n_held_out = 0 if request.holdout is None else int(held_out_sizes(np.array(largest), request.holdout))
    if not largest:
        yield Fault(message="the dataset version has no rows", location="body.dataset")
    elif request.holdout is not None and not n_held_out:
        message = (
            f"{request.holdout} of the largest task's {largest} rows is less than one: nothing would be held "
            "out"
        )
        yield Fault(message=message, location="body.holdout", value=str(request.holdout))
    elif largest - n_held_out < n_parts:
        yield _too_few_for_folds(
            request,
            f"the largest task has {largest - n_held_out} rows for training; to choose a strength, {n_parts} "
            "are needed, one for each fold",
        )


def _too_few_for_folds(request: TrainingJobRequest, reason: str) -> Fault:
    whose = "" if "n_folds" in request.model_fields_set else ", the default"
    return Fault(
        message=f"{reason}; `n_folds` is {request.n_folds}{whose}, and can be as small as {MIN_FOLDS}",
        location="body.n_folds",
        value=str(request.n_folds),
    )
