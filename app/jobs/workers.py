"""Which workers are alive: each says in the database until when it is to be counted, and says so again."""

from __future__ import annotations

from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from app.persistence.database import DatabaseNow
from app.persistence.models import LivingWorker

KEPT_SECONDS = 86_400.0
"""So long after its end a worker that died without a word is removed."""


def note_alive(session: Session, name: str, seconds: float) -> None:
    """Count the worker as alive for the next ``seconds``."""
    until = DatabaseNow() + seconds
    known = update(LivingWorker).where(LivingWorker.name == name).values(alive_until=until)
    if session.execute(known.returning(LivingWorker.name)).first() is None:
        session.execute(delete(LivingWorker).where(LivingWorker.alive_until < DatabaseNow() - KEPT_SECONDS))
        session.add(LivingWorker(name=name, alive_until=until))


def note_end(session: Session, name: str) -> None:
    """Count the worker no longer."""
    session.execute(delete(LivingWorker).where(LivingWorker.name == name))


def count_alive(session: Session) -> int:
    """Return how many workers are alive."""
    alive = select(func.count(LivingWorker.name)).where(LivingWorker.alive_until > DatabaseNow())
    return session.scalars(alive).one()
