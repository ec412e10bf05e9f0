"""The SQL of schedules."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.persistence.database import DatabaseNow
from app.persistence.models import Schedule


class Due(NamedTuple):
    """A time of a schedule that has come."""

    id: str
    name: str
    workspace: str
    tick: datetime
    request: dict[str, Any]


def find_schedule(session: Session, name: str, *, lock: bool = False) -> Schedule | None:
    """Return the schedule of this name, if need be held until the transaction ends."""
    query = select(Schedule).where(Schedule.name == name)
    return session.scalars(query.with_for_update() if lock else query).one_or_none()


def schedule_names(session: Session) -> Sequence[str]:
    """Return the names of all schedules."""
    return session.scalars(select(Schedule.name)).all()


def list_schedules(session: Session, limit: int, after: str | None) -> Sequence[Schedule]:
    """Return up to ``limit`` schedules by name, those after the name ``after``."""
    query = select(Schedule).order_by(Schedule.name).limit(limit)
    if after is not None:
        query = query.where(Schedule.name > after)
    return session.scalars(query).all()


def count(session: Session) -> int:
    """Return how many schedules there are."""
    return session.scalar(select(func.count(Schedule.id))) or 0


def database_now(session: Session) -> datetime:
    """Return the time by the database's clock, the only one that all workers share."""
    return datetime.fromtimestamp(session.execute(select(DatabaseNow())).scalar_one(), UTC)


def due(session: Session, limit: int) -> list[Due]:
    """Return up to ``limit`` times that have come, the earliest first."""
    columns = (Schedule.id, Schedule.name, Schedule.workspace, Schedule.next_run_at, Schedule.request)
    come = select(*columns).where(Schedule.enabled, Schedule.next_run_at <= database_now(session))
    return [Due(*row) for row in session.execute(come.order_by(Schedule.next_run_at).limit(limit))]


def lock_due(session: Session, found: Due) -> Schedule | None:
    """Return the schedule, held until the transaction ends; None if another has it, or it is due no more."""
    query = select(Schedule).where(
        Schedule.id == found.id, Schedule.enabled, Schedule.next_run_at == found.tick
    )
    return session.scalars(query.with_for_update(skip_locked=True)).one_or_none()
