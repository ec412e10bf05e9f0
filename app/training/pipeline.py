"""Run a claimed job: train, evaluate, and publish the next version of its model, or nothing.

read → rows → statistics → [selection] → [fit on the earlier part → evaluation] → fit → publication. What is
published and the job's success stand in one transaction, which the job's attempt must still own.
"""

from __future__ import annotations

from contextlib import suppress
from functools import reduce
from operator import add
from typing import Any

from pydantic_core import from_json, to_json
from sqlalchemy.exc import IntegrityError

from app.datasets.stored.coverage import coverage_of, find_coverage, save_coverage
from app.datasets.stored.frames import LoadedPanel, load
from app.http.errors import InvalidContent
from app.jobs import queue
from app.jobs.queue import ClaimedJob
from app.persistence.base import new_id
from app.persistence.database import Database
from app.persistence.storage import Storage
from app.registry.publication import TrainedModel, publish
from app.reports import POINTER_TO_NOTES, described, rival_notes
from app.training import repository
from app.training.cluster import folds_on
from app.training.evaluation import evaluate
from app.training.feasibility import find_faults
from app.training.forecaster import train_forecaster
from app.training.progress import ProgressLog, Send
from app.training.schemas import TrainingJobRequest
from app.training.task_data import TrainingData, left_out, prepare, statistics
from ccmtl_core import FitResult, SufficientStatistics, TaskDataset, fit, select
from ccmtl_core.kernels.compiled import compilation_told


def run(
    database: Database,
    storage: Storage,
    job: ClaimedJob,
    on_progress: Send,
    dask_scheduler: str | None = None,
) -> None:
    """Train and publish; ``on_progress`` gets a record now and then, and ends the run by raising.

    Nothing is published if this raises: StaleAttempt when the attempt lost the job or it was cancelled,
    AppError when the stored data cannot be read, CCMTLError when the data or the solver is at fault,
    ClusterLost when the Dask scheduler that fits the folds went away.
    """
    database = database.of(job.workspace)
    request = TrainingJobRequest.model_validate(job.request)
    log = ProgressLog(on_progress)
    with log.phase("read"):
        stored = load(database, storage, job.dataset_version_id)
        _check(database, job, stored, request)
    has_folds = request.chooses_strength or request.horizon is not None
    with compilation_told(log.compiling), folds_on(dask_scheduler if has_folds else None):
        if isinstance(stored, LoadedPanel) and request.horizon is not None:
            trained = train_forecaster(stored, request, log)
        else:
            with log.phase("rows"):
                data = prepare(stored, request)
            trained = _train(data, request, _configuration(stored, request), log)
    _publish(database, job, trained, log)


def _check(
    database: Database, job: ClaimedJob, stored: LoadedPanel | TaskDataset, request: TrainingJobRequest
) -> None:
    """Check a request that had no coverage to be checked against, and store the coverage for later ones."""
    with database.read() as session:
        if find_coverage(session, job.dataset_version_id) is not None:
            return
    coverage = coverage_of(stored.panel if isinstance(stored, LoadedPanel) else stored)
    with suppress(IntegrityError), database.write() as session:  # another worker may be quicker
        save_coverage(session, job.dataset_version_id, coverage)
    faults = find_faults(coverage, request, set())
    if faults:
        reasons = "; ".join(fault.message for fault in faults)
        raise InvalidContent("invalid_training_request", f"The training cannot work: {reasons}.")


def _train(
    data: TrainingData, request: TrainingJobRequest, configuration: dict[str, Any], log: ProgressLog
) -> TrainedModel:
    with log.phase("statistics"):
        folds, held_out = statistics(data, request)
        training = used = reduce(add, folds)
    result: FitResult | None = None
    report, notes = left_out(data)
    metrics: dict[str, Any] = {}
    shrinkages = None
    of_series = data.period is not None
    if isinstance(request.fusion_strength, float):
        strength = request.fusion_strength
    else:
        with log.phase("selection"):
            selection = select(
                folds,
                None if request.fusion_strength == "auto" else request.fusion_strength,
                folds=request.folds_of(of_series=of_series),
                rule=request.rule,
                choices=request.choices,
                tolerance=request.tolerance,
                n_jobs=-1,
                on_progress=log.selection,
            )
        result, strength, shrinkages = selection.fit, selection.fusion_strength, selection.shrinkages
        report["selection"] = {**described(selection), "order": "time" if of_series else None}
    report["fusion_strength"] = strength
    if held_out is not None:
        if result is None:
            result = _fit(training, strength, request, log, "holdout_")
        with log.phase("evaluation"):
            errors = evaluate(result.model, training, held_out, request.choices, shrinkages)
            metrics = {**errors, **data.facts}
        if request.refit:
            used = training + held_out
            result = _fit(used, strength, request, log, "")
    if result is None:
        result = _fit(training, strength, request, log, "")
    notes += rival_notes(request.choices, metrics, report.get("selection"), of_series=of_series)
    solve = plain(result.report)
    solve["advice"] = result.report.advice + (POINTER_TO_NOTES if notes else "")
    solve["notes"] = [*notes, *solve["notes"]]
    return TrainedModel(
        weights=result.model.weights,
        intercept=result.model.intercept,
        task_ids=result.model.task_ids,
        feature_names=result.model.feature_names,
        history=data.history,
        configuration=configuration,
        metrics=metrics,
        report={**solve, **plain(report)},
        n_samples=used.n_samples,
        graph=result.graph,
    )


def _fit(
    rows: SufficientStatistics,
    fusion_strength: float,
    request: TrainingJobRequest,
    log: ProgressLog,
    prefix: str,
) -> FitResult:
    return fit(
        rows,
        fusion_strength,
        choices=request.choices,
        tolerance=request.tolerance,
        on_progress=log.solver_phases(prefix),
    )


def _configuration(stored: LoadedPanel | TaskDataset, request: TrainingJobRequest) -> dict[str, Any]:
    of_the_job = {"dataset", "version", "model", "priority", "parallel"}
    asked = request.model_dump(mode="json", exclude={*of_the_job, "horizon", "lags"})
    if isinstance(stored, TaskDataset):
        return {"kind": "regression", **asked}
    series = stored.definition.model_dump(mode="json", include={"kind", "frequency", "duplicates", "fill"})
    return {**series, "lags": request.n_lags, **asked}


def _publish(database: Database, job: ClaimedJob, trained: TrainedModel, log: ProgressLog) -> None:
    version_id = new_id("mv")
    with log.phase("publication"), database.write() as session:
        # First, as it locks the job's row: then no other worker can take the job while the rest is written.
        queue.finish(session, job.id, job.attempt, version_id)
        publish(
            session,
            trained,
            version_id=version_id,
            model_name=job.model_name,
            training_job_id=job.id,
            dataset_version_id=job.dataset_version_id,
        )
        repository.set_progress(session, job.id, log.record())


def plain(value: Any) -> Any:
    """Return ``value`` in JSON's own types: records as objects, NaN and infinities as null."""
    return from_json(to_json(value, inf_nan_mode="null"))
