"""The SQL of API keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from app.persistence.models import ApiKey


def all_keys(session: Session) -> Sequence[ApiKey]:
    """Return all keys, revoked and expired ones too."""
    return session.scalars(select(ApiKey)).all()


def list_keys(session: Session, limit: int, after_id: str | None) -> Sequence[ApiKey]:
    """Return up to ``limit`` keys by id, those after ``after_id``."""
    query = select(ApiKey).order_by(ApiKey.id).limit(limit)
    if after_id is not None:
        query = query.where(ApiKey.id > after_id)
    return session.scalars(query).all()


def find_key(session: Session, key_id: str) -> ApiKey | None:
    """Return the key with this id."""
    return session.scalars(select(ApiKey).where(ApiKey.id == key_id)).one_or_none()


def has_keys(session: Session) -> bool:
    """Whether a key was ever made."""
    return session.execute(select(ApiKey.id).limit(1)).first() is not None


def note_uses(session: Session, used: Mapping[str, datetime]) -> None:
    """Store when keys were last used, by their ids."""
    for key_id, moment in used.items():
        session.execute(update(ApiKey).where(ApiKey.id == key_id).values(last_used_at=moment))
