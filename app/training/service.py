"""Decide whether a training request can work and what a repeated one means, and tell about jobs."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from pydantic import ValidationError
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.datasets import service as datasets
from app.datasets.stored.coverage import find_coverage
from app.datasets.stored.frames import deleted
from app.http.errors import Conflict, Fault, InvalidContent, NotFound, TooManyRequests
from app.http.request_body import faults_in_body
from app.jobs import queue
from app.persistence.database import Database
from app.persistence.models import DatasetVersion, JobState, TrainingJob
from app.registry.schemas import DataUsed
from app.training import repository
from app.training.feasibility import faults_of_horizon, faults_of_one_strength, find_faults
from app.training.repository import JobRow
from app.training.schemas import (
    FINAL_STATES,
    PRIORITIES,
    TrainingJobDetail,
    TrainingJobPage,
    TrainingJobRequest,
    TrainingJobStatus,
    with_defaults,
)
from ccmtl_core.base.display import counted

RETRY_SECONDS = "30"
"""When to come again if the queue is full: jobs take minutes."""


class _Read(NamedTuple):
    """A request as far as it can be read, the names of its unsound fields, and its faults."""

    request: TrainingJobRequest
    unsound: set[str]
    faults: list[Fault]
    n_unlisted: int


def submit(
    database: Database, document: dict[str, Any], idempotency_key: str | None, max_queued: int
) -> TrainingJobDetail:
    """Queue a job, or return the one that the same request with the same key has queued before.

    A request that cannot work is refused with every reason; an unknown dataset is reported with the request's
    other faults. The worker checks data that was uploaded before coverages were stored. Where ``max_queued``
    jobs of the workspace wait already, raise TooManyRequests.
    """
    read = _read(document)
    if idempotency_key is not None and not read.faults:
        with database.read() as session:
            earlier = repository.find_by_key(session, idempotency_key)
        if earlier is not None:
            return _repeated(earlier, read.request)
    version_id = _checked_version(database, read)
    return _queue(database, read.request, version_id, idempotency_key, max_queued)


def checked(database: Database, document: dict[str, Any]) -> tuple[TrainingJobRequest, str]:
    """Return the request and the id of the dataset version that it means now, or refuse it as above."""
    read = _read(document)
    return read.request, _checked_version(database, read)


def _enqueue(
    session: Session, request: TrainingJobRequest, version_id: str, max_queued: int, **columns: Any
) -> TrainingJob:
    """Queue a checked request in the caller's transaction, with more of the job's columns; see above."""
    if repository.count_queued(session) >= max_queued:
        raise _queue_full(max_queued)
    job = TrainingJob(
        priority=PRIORITIES[request.priority],
        parallel=request.parallel,
        dataset_version_id=version_id,
        model_name=request.model,
        request=request.model_dump(mode="json"),
        **columns,
    )
    session.add(job)
    session.flush()
    return job


def enqueue_of_schedule(
    session: Session,
    request: TrainingJobRequest,
    version_id: str,
    max_queued: int,
    schedule: str,
    tick: datetime,
) -> str:
    """Queue the job of one time of a schedule, unless the one before has not ended; return its id."""
    earlier = repository.unfinished_of_schedule(session, schedule)
    if earlier is not None:
        raise Conflict(
            "earlier_run_unfinished",
            f"The job {earlier} that the schedule {schedule!r} started before has not ended yet.",
        )
    return _enqueue(session, request, version_id, max_queued, schedule=schedule, schedule_tick=tick).id


def read_job(session: Session, job_id: str) -> TrainingJobDetail:
    """Return the job with this id."""
    return _detail(_row(session, job_id))


def read_status(session: Session, job_id: str) -> TrainingJobStatus:
    """Return the job with this id, without its request."""
    return TrainingJobStatus.model_validate(_status(_row(session, job_id)))


def _row(session: Session, job_id: str) -> JobRow:
    row = repository.find_job(session, job_id)
    if row is None:
        raise NotFound("training_job_not_found", f"There is no training job {job_id!r}.")
    return row


def list_jobs(
    session: Session,
    limit: int,
    cursor: str | None,
    state: JobState | None,
    model: str | None,
    schedule: str | None,
) -> TrainingJobPage:
    """Return one page of jobs, newest first; refuse a cursor that is no job (any more)."""
    if cursor is not None and repository.find_job(session, cursor) is None:
        message = "must be `next_cursor` of the page before; if its job was deleted since, begin anew"
        fault = Fault(message=message, location="query.cursor", value=cursor)
        raise InvalidContent("invalid_request", "The request has 1 fault; see `errors`.", errors=[fault])
    rows = repository.list_jobs(session, limit + 1, cursor, state, model, schedule)
    return TrainingJobPage.of(list(map(_detail, rows)), limit, lambda job: job.id)


def cancel(session: Session, job_id: str) -> TrainingJobDetail:
    """Cancel a waiting job at once; ask the worker of a running one to stop; refuse if the job has ended.

    A job whose worker fell silent waits for another one.
    """
    state = read_job(session, job_id).state
    if state in FINAL_STATES:
        raise Conflict(
            "training_job_ended", f"The training job has ended ({state}); there is nothing to cancel."
        )
    queue.request_cancel(session, job_id)
    return read_job(session, job_id)


def _read(document: dict[str, Any]) -> _Read:
    try:
        read = _Read(TrainingJobRequest.model_validate(document), set(), [], 0)
    except ValidationError as error:
        errors = error.errors(include_url=False)
        # A fault without a place ends the validation early: then no field has been checked.
        placed = all(e["loc"] for e in errors)
        unsound = {str(e["loc"][0]) for e in errors} if placed else set(TrainingJobRequest.model_fields)
        filled = with_defaults(document)
        sound = {name: value for name, value in filled.items() if name not in unsound}
        faults = faults_in_body(TrainingJobRequest, error)
        request = TrainingJobRequest.model_construct(**sound)
        read = _Read(request, unsound, faults, len(errors) - len(faults))
    request, unsound = read.request, read.unsound
    read.faults.extend(faults_of_horizon(request, unsound) or faults_of_one_strength(request, unsound))
    return read


def _checked_version(database: Database, read: _Read) -> str:
    """Return the id of the dataset version that is asked for, or raise the error with all faults."""
    version_id, faults = "", read.faults
    if "dataset" not in read.unsound:
        with database.read() as session:
            try:
                version_id = _version_id(session, read.request.dataset, read.request.version)
            except NotFound as refusal:
                refusal.problem.errors = faults
                refusal.problem.error_count = len(faults) + read.n_unlisted
                raise
            coverage = find_coverage(session, version_id)
        if coverage is not None:
            faults = faults + find_faults(coverage, read.request, read.unsound)
    if faults:
        n_faults = len(faults) + read.n_unlisted
        raise InvalidContent(
            "invalid_training_request",
            f"The training cannot work: {counted(n_faults, 'fault')}; see `errors`.",
            errors=faults,
            error_count=n_faults,
        )
    return version_id


def _version_id(session: Session, dataset: str, version: int | None) -> str:
    """Return the id of the dataset version that is asked for; by default that of the newest."""
    if version is None:
        version = datasets.read(session, dataset).newest_version
        if version is None:
            raise NotFound(
                "dataset_version_not_found",
                f"Nothing was uploaded yet to the dataset {dataset!r}; there is nothing to train on.",
            )
    return datasets.read_version(session, dataset, version).id


def _queue(
    database: Database,
    request: TrainingJobRequest,
    version_id: str,
    idempotency_key: str | None,
    max_queued: int,
) -> TrainingJobDetail:
    try:
        with database.write() as session:
            job = _enqueue(session, request, version_id, max_queued, idempotency_key=idempotency_key)
            return read_job(session, job.id)
    except IntegrityError:
        # Meanwhile the same key came in with another request, or the dataset was deleted.
        with database.read() as session:
            earlier = None if idempotency_key is None else repository.find_by_key(session, idempotency_key)
            if earlier is not None:
                return _repeated(earlier, request)
            if session.get(DatasetVersion, version_id) is None:
                raise deleted() from None
        raise


def _queue_full(max_queued: int) -> TooManyRequests:
    return TooManyRequests(
        "queue_full",
        f"{counted(max_queued, 'job')} wait already, the most that may; send the request again when some "
        "have ended, or cancel some.",
        headers={"Retry-After": RETRY_SECONDS},
    )


def _repeated(earlier: JobRow, request: TrainingJobRequest) -> TrainingJobDetail:
    if TrainingJobRequest.model_validate(earlier.job.request) != request:
        raise Conflict(
            "idempotency_key_reused",
            f"This Idempotency-Key belongs to the training job {earlier.job.id}, whose request was another.",
        )
    if earlier.job.state == JobState.SUCCEEDED and earlier.model_version is None:
        raise Conflict(
            "idempotency_key_spent",
            f"This Idempotency-Key belongs to the training job {earlier.job.id}, whose model was deleted "
            "since; take another key to train it again.",
        )
    return _detail(earlier)


def _detail(row: JobRow) -> TrainingJobDetail:
    data = DataUsed(dataset=row.dataset_name, version=row.dataset_version, id=row.job.dataset_version_id)
    return TrainingJobDetail.model_validate({**_status(row), "request": row.job.request, "data": data})


def _status(row: JobRow) -> dict[str, Any]:
    """Return the fields that a job and its events have in common."""
    stored = TrainingJobStatus.model_fields.keys() - {"state", "jobs_ahead", "model"}
    fields = {name: getattr(row.job, name) for name in stored}
    if row.state == JobState.QUEUED:
        fields["progress"] = None  # there still is that of a run whose worker fell silent
    model = None if row.model_version is None else {"name": row.job.model_name, "version": row.model_version}
    return {**fields, "state": row.state, "jobs_ahead": row.jobs_ahead, "model": model}
