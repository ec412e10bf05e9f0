"""The job queue: claim jobs, keep them with a lease, and record how they end, all in SQL on ``training_job``.

Each claim of a job raises its ``attempt``, and the worker that knows the newest attempt owns the job. Every
statement of an owner has the attempt in its WHERE; if no row matches it raises :class:`StaleAttempt` and
changes nothing. When a lease has run out any worker may claim the job, and a cancellation ends it at once;
until one of these happens the owner may renew the lease. The database's clock alone measures leases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, and_, case, func, or_, select, update
from sqlalchemy.orm import Session, aliased

from app.persistence.base import utc_now
from app.persistence.database import DatabaseNow
from app.persistence.models import JobState, TrainingJob
from app.persistence.outbox import Event, announce

SILENCES_PER_ATTEMPT = 5
"""For each lost run that a job is allowed, it is allowed this many workers that fell silent.

A silent worker may be dead, but it may also have been late on a busy machine, which is not the job's fault.
"""

_EVENTS = {
    JobState.SUCCEEDED: Event.JOB_SUCCEEDED,
    JobState.FAILED: Event.JOB_FAILED,
    JobState.CANCELLED: Event.JOB_CANCELLED,
}
"""What webhooks are told of the end of a job."""
_OTHER = aliased(TrainingJob)


class StaleAttempt(Exception):
    """Someone else owns the job by now, or it has ended: the caller must stop and write nothing."""


@dataclass(frozen=True, slots=True)
class ClaimedJob:
    """One attempt at one job: all that a run needs to know. ``attempt`` proves who owns the job."""

    id: str
    attempt: int
    dataset_version_id: str
    model_name: str
    request: dict[str, Any]
    workspace: str


def has_work(session: Session) -> bool:
    """Whether a job may start or was abandoned, without taking a lock."""
    rows = select(TrainingJob.id).where(or_(_ready(), _abandoned()))
    return session.execute(rows.limit(1)).first() is not None


STARTING: dict[str, Any] = {
    "phase": "starting",
    "round": 0,
    "objective": None,
    "gap": None,
    "elapsed_seconds": 0.0,
    "phases": {},
}
"""The progress of a claimed job until its process, which imports for seconds, reports its own."""


def told_state(job: type[TrainingJob]) -> ColumnElement[str]:
    """Return the state that users are told: a job whose lease is over is queued, as it waits for a worker."""
    return case((_abandoned(job), JobState.QUEUED.value), else_=job.state)


def count_by_state(session: Session) -> dict[str, int]:
    """Return how many jobs there are in each state, as users are told."""
    counts = dict.fromkeys(map(str, JobState), 0)
    abandoned = select(func.count(_OTHER.id)).where(_abandoned(_OTHER)).scalar_subquery()
    stored = select(TrainingJob.state, func.count(TrainingJob.id), abandoned).group_by(TrainingJob.state)
    for state, count, n_abandoned in session.execute(stored).all():
        counts[state] += count
        if state == JobState.RUNNING:
            counts[JobState.RUNNING] -= n_abandoned
            counts[JobState.QUEUED] += n_abandoned
    return counts


def claim(session: Session, worker: str, lease_seconds: float, max_attempts: int) -> ClaimedJob | None:
    """Take the first job that may start or was abandoned by its worker; ``None`` when there is none.

    PostgreSQL skips rows that another claim has locked; on SQLite only one session can write at a time. Where
    two claims start jobs of one model at the same moment, a unique index refuses the second: IntegrityError.
    """
    again = and_(_abandoned(), ~TrainingJob.cancel_requested, ~_is_last_silence(max_attempts))
    first = (
        select(TrainingJob.id)
        .where(or_(_ready(), again))
        .order_by(*place_in_queue(TrainingJob))
        .limit(1)
        .with_for_update(skip_locked=True)
        .scalar_subquery()
    )
    rows = _update(
        session,
        TrainingJob.id == first,
        state=JobState.RUNNING,
        attempt=TrainingJob.attempt + 1,
        times_silent=TrainingJob.times_silent + case((TrainingJob.state == JobState.RUNNING, 1), else_=0),
        worker=worker,
        lease_expires_at=DatabaseNow() + lease_seconds,
        started_at=utc_now(),
        progress=STARTING,
    )
    return _claimed(rows[0]) if rows else None


def close_abandoned(session: Session, max_attempts: int) -> list[TrainingJob]:
    """End the abandoned jobs that must not run again, and return them.

    Those are the ones whose cancellation was asked for, and those whose workers fell silent too often.
    """
    cancelled = close_cancelled(session)
    last = and_(_abandoned(), _is_last_silence(max_attempts))
    error = _lost(SILENCES_PER_ATTEMPT * max_attempts, "its worker was silent for longer than its lease")
    return [*cancelled, *_update(session, last, **_final(JobState.FAILED, error))]


def has_cancelled(session: Session) -> bool:
    """Whether there is a job for :func:`close_cancelled`, without taking a lock."""
    return session.execute(select(TrainingJob.id).where(_cancel_unanswered()).limit(1)).first() is not None


def close_cancelled(session: Session) -> list[TrainingJob]:
    """End the jobs whose cancellation was asked for and whose workers fell silent before they obeyed."""
    return _update(session, _cancel_unanswered(), **_cancelled())


def load(session: Session, job_id: str, attempt: int) -> ClaimedJob:
    """Return the job that this attempt owns."""
    return _claimed(_one(session.scalars(select(TrainingJob).where(_owned(job_id, attempt))).all()))


def is_cancel_requested(session: Session, job_id: str, attempt: int) -> bool:
    """Whether someone asked to cancel the job; does not renew the lease."""
    mine = select(TrainingJob).where(_owned(job_id, attempt))
    return _one(session.scalars(mine).all()).cancel_requested


def renew_lease(session: Session, job_id: str, attempt: int, lease_seconds: float) -> None:
    """Renew the lease of a job, also one that has run out, unless someone has claimed the job since.

    The lease is a job's sign of life; :func:`app.jobs.workers.note_alive` gives that of a worker.
    """
    _write(session, job_id, attempt, lease_expires_at=DatabaseNow() + lease_seconds)


def report_progress(session: Session, job_id: str, attempt: int, progress: dict[str, Any]) -> None:
    """Store how far the run has come."""
    _write(session, job_id, attempt, progress=progress)


def finish(session: Session, job_id: str, attempt: int, model_version_id: str) -> None:
    """Mark the job succeeded, inside the transaction that publishes ``model_version_id``.

    A StaleAttempt (taken over, or cancellation asked for) must roll that whole transaction back.
    """
    mine = and_(_owned(job_id, attempt), ~TrainingJob.cancel_requested)
    _one(_update(session, mine, **_final(JobState.SUCCEEDED), model_version_id=model_version_id))


def fail(session: Session, job_id: str, attempt: int, code: str, detail: str) -> None:
    """Mark the job failed, with a stable ``code`` and a sentence for the user."""
    _write(session, job_id, attempt, **_final(JobState.FAILED, {"code": code, "detail": detail}))


def mark_cancelled(session: Session, job_id: str, attempt: int) -> None:
    """Mark the job cancelled, after its run was stopped."""
    _write(session, job_id, attempt, **_cancelled())


def give_back(session: Session, job_id: str, attempt: int) -> None:
    """Put the job back into the queue because its worker stops; the run does not count as lost."""
    _write(session, job_id, attempt, **_queued_again())


def lose_run(session: Session, job_id: str, attempt: int, reason: str, max_attempts: int) -> JobState:
    """Count a run that died for ``reason``; queue the job again or, after its last allowed run, fail it."""
    last = and_(_owned(job_id, attempt), _is_last_run(max_attempts))
    if _update(session, last, **_final(JobState.FAILED, _lost(max_attempts, reason))):
        return JobState.FAILED
    job = _write(session, job_id, attempt, **_queued_again(), times_lost=TrainingJob.times_lost + 1)
    return JobState(job.state)


def request_cancel(session: Session, job_id: str) -> JobState | None:
    """Cancel a waiting job at once, or ask for a running one to be stopped; return the state, if any.

    A final state is returned as it is; a running job stays ``running`` until its worker has stopped it. A job
    whose lease is over counts as waiting; if its worker was only late, it finds out that it lost the job.
    """
    waiting = and_(TrainingJob.id == job_id, or_(TrainingJob.state == JobState.QUEUED, _abandoned()))
    running = and_(TrainingJob.id == job_id, TrainingJob.state == JobState.RUNNING)
    if not _update(session, waiting, **_cancelled()):
        _update(session, running, cancel_requested=True)
    state = session.scalar(select(TrainingJob.state).where(TrainingJob.id == job_id))
    return None if state is None else JobState(state)


def place_in_queue(job: type[TrainingJob]) -> tuple[ColumnElement[Any], ...]:
    """Return the order in which jobs are claimed: the highest priority first, then the oldest."""
    return -job.priority, job.created_at.expression, job.id.expression


def _ready() -> ColumnElement[bool]:
    """Whether the job is queued and need not wait until another job of its model ends."""
    running = (
        select(_OTHER.id)
        .where(
            _OTHER.workspace == TrainingJob.workspace,
            _OTHER.model_name == TrainingJob.model_name,
            _OTHER.state == JobState.RUNNING,
            ~_OTHER.parallel,
        )
        .correlate(TrainingJob)
        .exists()
    )
    return and_(TrainingJob.state == JobState.QUEUED, or_(TrainingJob.parallel, ~running))


def _abandoned(job: type[TrainingJob] = TrainingJob) -> ColumnElement[bool]:
    return and_(job.state == JobState.RUNNING, job.lease_expires_at <= DatabaseNow())


def _cancel_unanswered() -> ColumnElement[bool]:
    return and_(_abandoned(), TrainingJob.cancel_requested)


def _owned(job_id: str, attempt: int) -> ColumnElement[bool]:
    return and_(
        TrainingJob.id == job_id,
        TrainingJob.attempt == attempt,
        TrainingJob.state == JobState.RUNNING,
    )


def _is_last_run(max_attempts: int) -> ColumnElement[bool]:
    return TrainingJob.times_lost + 1 >= max_attempts


def _is_last_silence(max_attempts: int) -> ColumnElement[bool]:
    return TrainingJob.times_silent + 1 >= SILENCES_PER_ATTEMPT * max_attempts


def _final(state: JobState, error: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"state": state, "error": error, "lease_expires_at": None, "finished_at": utc_now()}


def _cancelled() -> dict[str, Any]:
    return {**_final(JobState.CANCELLED), "cancel_requested": True}


def _queued_again() -> dict[str, Any]:
    # A job whose cancellation was asked for meanwhile is cancelled, not run again.
    asked = TrainingJob.cancel_requested
    return {
        "state": case((asked, JobState.CANCELLED), else_=JobState.QUEUED),
        "finished_at": case((asked, utc_now()), else_=None),
        "lease_expires_at": None,
        "worker": None,
        "progress": None,
    }


def _lost(times: int, reason: str) -> dict[str, Any]:
    tried = "1 time" if times == 1 else f"{times} times"
    detail = f"The run ended without a result {tried}, the most that is tried; last: {reason}."
    return {"code": "run_lost", "detail": detail}


def _update(session: Session, where: ColumnElement[bool], **values: Any) -> list[TrainingJob]:
    statement = update(TrainingJob).where(where).values(**values).returning(TrainingJob)
    options = {"synchronize_session": False, "populate_existing": True}
    rows = list(session.scalars(statement, execution_options=options))
    if "state" in values:
        for row in rows:
            _announce_end(session, row)
    return rows


def _announce_end(session: Session, job: TrainingJob) -> None:
    event = _EVENTS.get(JobState(job.state))
    if event is not None:
        told = {"job": job.id, "model": job.model_name, "schedule": job.schedule, "attempt": job.attempt}
        data = {**told, "error": job.error}
        announce(session, job.workspace, event, data, job.finished_at)


def _write(session: Session, job_id: str, attempt: int, **values: Any) -> TrainingJob:
    return _one(_update(session, _owned(job_id, attempt), **values))


def _one(rows: Sequence[TrainingJob]) -> TrainingJob:
    if not rows:
        raise StaleAttempt("the job was taken over, or is final")
    return rows[0]


def _claimed(row: TrainingJob) -> ClaimedJob:
    return ClaimedJob(row.id, row.attempt, row.dataset_version_id, row.model_name, row.request, row.workspace)
