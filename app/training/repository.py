"""The SQL of training jobs as users see them; what their workers do with them is in ``app.jobs.queue``."""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import case, func, or_, select, tuple_, update
from sqlalchemy.orm import Session, aliased

from app.jobs.queue import place_in_queue, told_state
from app.persistence.models import Dataset, DatasetVersion, JobState, ModelVersion, TrainingJob


class JobRow(NamedTuple):
    """A job, the state that is told of it, and the names of what it reads and of what it published."""

    job: TrainingJob
    state: str
    dataset_name: str
    dataset_version: int
    model_version: int | None
    jobs_ahead: int | None


_OTHER = aliased(TrainingJob)
_AHEAD = (
    select(func.count(_OTHER.id))
    .where(
        _OTHER.workspace == TrainingJob.workspace,
        _OTHER.state.in_([JobState.QUEUED, JobState.RUNNING]),
        or_(
            told_state(_OTHER) == JobState.RUNNING,
            tuple_(*place_in_queue(_OTHER)) < tuple_(*place_in_queue(TrainingJob)),
        ),
    )
    .correlate(TrainingJob)
    .scalar_subquery()
)
_JOBS = (
    select(
        TrainingJob,
        told_state(TrainingJob),
        Dataset.name,
        DatasetVersion.number,
        ModelVersion.number,
        case((told_state(TrainingJob) == JobState.QUEUED, _AHEAD)),
    )
    .join(DatasetVersion, TrainingJob.dataset_version_id == DatasetVersion.id)
    .join(Dataset, DatasetVersion.dataset_id == Dataset.id)
    .outerjoin(ModelVersion, TrainingJob.model_version_id == ModelVersion.id)
)


def find_job(session: Session, job_id: str) -> JobRow | None:
    """Return the job with this id."""
    row = session.execute(_JOBS.where(TrainingJob.id == job_id)).one_or_none()
    return None if row is None else JobRow(*row)


def find_by_key(session: Session, idempotency_key: str) -> JobRow | None:
    """Return the job that was created with this idempotency key."""
    row = session.execute(_JOBS.where(TrainingJob.idempotency_key == idempotency_key)).one_or_none()
    return None if row is None else JobRow(*row)


def count_queued(session: Session) -> int:
    """Return how many jobs wait."""
    queued = select(func.count(TrainingJob.id)).where(TrainingJob.state == JobState.QUEUED)
    return session.scalar(queued) or 0


def unfinished_of_schedule(session: Session, schedule: str) -> str | None:
    """Return the id of a job of this schedule that waits or runs."""
    unfinished = TrainingJob.state.in_([JobState.QUEUED, JobState.RUNNING])
    return session.scalar(select(TrainingJob.id).where(TrainingJob.schedule == schedule, unfinished).limit(1))


def list_jobs(
    session: Session,
    limit: int,
    after_id: str | None,
    state: JobState | None,
    model_name: str | None,
    schedule: str | None,
) -> list[JobRow]:
    """Return up to ``limit`` jobs, newest first, those after the job ``after_id``."""
    query = _JOBS.order_by(TrainingJob.created_at.desc(), TrainingJob.id.desc()).limit(limit)
    if after_id is not None:
        place = select(TrainingJob.created_at, TrainingJob.id).where(TrainingJob.id == after_id).subquery()
        query = query.join(
            place, tuple_(TrainingJob.created_at, TrainingJob.id) < tuple_(place.c.created_at, place.c.id)
        )
    if state is not None:
        stored = [JobState.QUEUED, JobState.RUNNING] if state == JobState.QUEUED else [state]
        query = query.where(TrainingJob.state.in_(stored), told_state(TrainingJob) == state)
    if model_name is not None:
        query = query.where(TrainingJob.model_name == model_name)
    if schedule is not None:
        query = query.where(TrainingJob.schedule == schedule)
    return [JobRow(*row) for row in session.execute(query)]


def set_progress(session: Session, job_id: str, progress: dict[str, Any]) -> None:
    """Store the last word of a run whose job this transaction already holds."""
    session.execute(update(TrainingJob).where(TrainingJob.id == job_id).values(progress=progress))
