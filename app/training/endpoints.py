"""Endpoints of training jobs: queue, list, watch and cancel."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.sse import EventSourceResponse

from app.http.access import Scope, is_still_let_in, requires
from app.http.dependencies import DatabaseDep, read_form
from app.http.errors import refusals
from app.http.names import NO_NUL
from app.http.parameters import IdempotencyKey, JobCursor, Limit
from app.http.request_body import BODY_REFUSALS, documented_body, parse_json_object
from app.persistence.database import Database
from app.persistence.models import JobState
from app.training import service
from app.training.schemas import (
    FINAL_STATES,
    TrainingJobDetail,
    TrainingJobPage,
    TrainingJobRequest,
    TrainingJobStatus,
)

router = APIRouter(prefix="/v1/training-jobs", tags=["training"], dependencies=[requires(Scope.TRAIN)])

EVENT_SECONDS = 0.25

JobId = Annotated[str, Path(max_length=200, pattern=NO_NUL, description="The job's id.")]

UNKNOWN = refusals({404: "No such training job."})
CREATED: dict[int | str, dict[str, Any]] = {
    202: {
        "description": "The job is queued, or was queued before with the same Idempotency-Key.",
        "headers": {"Location": {"description": "Path of the job.", "schema": {"type": "string"}}},
    },
    **BODY_REFUSALS,
    **refusals(
        {
            404: "No such dataset or version; near matches are suggested.",
            409: "The Idempotency-Key belongs to another request, or to a job whose model was deleted.",
            422: "The training cannot work; every reason is listed.",
            429: "As many jobs wait as may; `Retry-After` says when to come again. Or the key sends too many "
            "requests.",
        }
    ),
}
CANCELLED: dict[int | str, dict[str, Any]] = {
    202: {"model": TrainingJobDetail, "description": "The job's worker was asked to stop."},
    **refusals({404: "No such training job.", 409: "The job has ended."}),
}
EXAMPLES: dict[str, Any] = {
    "Series; all is chosen": {"dataset": "shop", "model": "shop", "horizon": 7},
    "Series, forecast from lags; the strength is chosen": {
        "dataset": "shop",
        "model": "shop",
        "lags": 7,
        "holdout": 0.5,
        "fusion_strength": "auto",
        "fit_intercept": True,
        "loss_scaling": "spread",
    },
    "Regression data; the strength is chosen": {
        "dataset": "stores",
        "model": "stores",
        "fusion_strength": "auto",
        "fit_intercept": True,
        "loss_scaling": "spread",
        "metric": "mahalanobis",
    },
    "One strength": {"dataset": "shop", "model": "shop", "lags": 7, "fusion_strength": 10},
}


def _status(database: Database, job_id: str) -> TrainingJobStatus:
    with database.read() as session:
        return service.read_status(session, job_id)


def news(job: TrainingJobStatus, seen: TrainingJobStatus | None) -> TrainingJobStatus:
    """Return the status with those errors of strengths alone that an earlier one did not have."""
    if seen is None or seen.progress is None or job.progress is None:
        return job
    before, now = seen.progress.selection, job.progress.selection
    if before is None or now is None:
        return job
    told = set(zip(before.fusion_strengths, before.errors, strict=True))
    fresh = [pair for pair in zip(now.fusion_strengths, now.errors, strict=True) if pair not in told]
    lists = {"fusion_strengths": [s for s, _ in fresh], "errors": [error for _, error in fresh]}
    progress = job.progress.model_copy(update={"selection": now.model_copy(update=lists)})
    return job.model_copy(update={"progress": progress})


def _known_job_id(job_id: JobId, database: DatabaseDep) -> str:
    return _status(database, job_id).id


@router.post(
    "",
    status_code=202,
    responses=CREATED,
    openapi_extra=documented_body(TrainingJobRequest, examples=EXAMPLES),
)
def create_training_job(
    body: Annotated[bytes, Depends(read_form)],
    request: Request,
    response: Response,
    database: DatabaseDep,
    idempotency_key: Annotated[
        IdempotencyKey | None,
        Header(description="The same key with the same request returns the job that it created before."),
    ] = None,
) -> TrainingJobDetail:
    """Queue a training job, unless it cannot work."""
    job = service.submit(
        database, parse_json_object(body), idempotency_key, request.app.state.settings.max_queued_jobs
    )
    response.headers["Location"] = request.url_for("read_training_job", job_id=job.id).path
    return job


@router.get("")
def list_training_jobs(
    database: DatabaseDep,
    limit: Limit = 50,
    cursor: JobCursor = None,
    state: Annotated[JobState | None, Query(description="Only jobs in this state.")] = None,
    model: Annotated[
        str | None,
        Query(max_length=200, pattern=NO_NUL, description="Only jobs that publish under this name."),
    ] = None,
    schedule: Annotated[
        str | None,
        Query(max_length=200, pattern=NO_NUL, description="Only jobs that this schedule has started."),
    ] = None,
) -> TrainingJobPage:
    """List training jobs, newest first."""
    with database.read() as session:
        return service.list_jobs(session, limit, cursor, state, model, schedule)


@router.get("/{job_id}", responses=UNKNOWN)
def read_training_job(job_id: JobId, database: DatabaseDep) -> TrainingJobDetail:
    """Read a training job: its state, how far it has come, and what came of it."""
    with database.read() as session:
        return service.read_job(session, job_id)


@router.get("/{job_id}/events", response_class=EventSourceResponse, responses=UNKNOWN)
async def watch_training_job(
    job_id: Annotated[str, Depends(_known_job_id)], database: DatabaseDep, request: Request
) -> AsyncIterator[TrainingJobStatus]:
    """Follow a training job by server-sent events: its status now and after each change, until it ends.

    Of the errors of strengths each event holds those that are new. The stream also ends when this API process
    stops: if the last event is not of a job that has ended, follow it again.
    """
    seen = None
    while await is_still_let_in(request):
        is_last = request.app.state.is_stopping  # what a worker that stops hands back is told before the end
        job = await run_in_threadpool(_status, database, job_id)
        if job != seen:
            yield news(job, seen)
        if is_last or job.state in FINAL_STATES:
            return
        seen = job
        await asyncio.sleep(EVENT_SECONDS)


@router.post("/{job_id}/cancel", responses=CANCELLED)
def cancel_training_job(job_id: JobId, response: Response, database: DatabaseDep) -> TrainingJobDetail:
    """Cancel a training job: 200 when it is cancelled, 202 when its worker was asked to stop."""
    with database.write() as session:
        job = service.cancel(session, job_id)
    response.status_code = 200 if job.state == JobState.CANCELLED else 202
    return job
