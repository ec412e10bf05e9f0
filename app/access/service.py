"""Make, list and revoke keys."""

from __future__ import annotations

from sqlalchemy.orm import Session

from app.access import repository
from app.access.keys import KeyHash, new_key
from app.access.schemas import KeyDetail, KeyForm, KeyPage, NewKeyDetail
from app.http.errors import NotFound
from app.persistence.base import utc_now
from app.persistence.models import ApiKey


def create(session: Session, form: KeyForm, key_hash: KeyHash) -> NewKeyDetail:
    """Store a new key of the session's workspace, and return it for the one time that it is shown."""
    made = new_key()
    key = ApiKey(
        id=made.id,
        name=form.name,
        digest=key_hash(made.text),
        scopes=sorted(form.scopes),
        expires_at=form.expires_at,
        requests_per_minute=form.requests_per_minute,
    )
    session.add(key)
    session.flush()
    return NewKeyDetail(key=made.text, **_detail(key).model_dump())


def list_keys(session: Session, limit: int, cursor: str | None) -> KeyPage:
    """Return one page of keys."""
    rows = repository.list_keys(session, limit + 1, cursor)
    return KeyPage.of(list(map(_detail, rows)), limit, lambda key: key.id)


def read(session: Session, key_id: str) -> KeyDetail:
    """Return the key with this id."""
    return _detail(_found(session, key_id))


def revoke(session: Session, key_id: str) -> None:
    """Let a key be refused from now on; one that is revoked already stays so."""
    key = _found(session, key_id)
    key.revoked_at = key.revoked_at or utc_now()


def _found(session: Session, key_id: str) -> ApiKey:
    key = repository.find_key(session, key_id)
    if key is None:
        raise NotFound("key_not_found", f"There is no key {key_id!r}.")
    return key


def _detail(key: ApiKey) -> KeyDetail:
    return KeyDetail.model_validate(key, from_attributes=True)
