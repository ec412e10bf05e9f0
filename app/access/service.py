"""Make, list and revoke keys, and decide whether the service may start without any."""

from __future__ import annotations

import logging

from sqlalchemy import make_url
from sqlalchemy.orm import Session

from app.access import repository
from app.access.keys import KeyHash, new_key
from app.access.schemas import KeyDetail, KeyForm, KeyPage, NewKeyDetail
from app.http.errors import NotFound
from app.persistence.base import utc_now
from app.persistence.database import Database
from app.persistence.models import ApiKey
from app.processes.cannot_start import CannotStart
from app.processes.listener import is_loopback
from app.settings import Settings, variable

logger = logging.getLogger(__name__)

_KNOWN_PASSWORDS = {"ccmtl", "changeme", "change-me", "password", "postgres", "secret"}


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


def require_keys(database: Database, settings: Settings) -> None:
    """Raise CannotStart if the service could be used by whoever reaches it from another machine.

    On an address that only this machine reaches, say in the log that there are no keys.
    """
    with database.read() as session:
        has_keys = repository.has_keys(session)
    if is_loopback(settings.host):
        if not has_keys:
            logger.warning(
                "there are no API keys: whoever reaches %s on this machine may do everything; "
                "`ccmtl keys create NAME` makes the first",
                settings.host,
            )
        return
    reached = f"{variable('host')}: other machines reach {settings.host}"
    if not has_keys:
        raise CannotStart(
            f"{reached}, and there are no API keys yet: make the first with `ccmtl keys create NAME`, or "
            "listen on 127.0.0.1."
        )
    if settings.secret_key is not None and len(set(settings.secret_key.get_secret_value())) < 8:
        raise CannotStart(
            f"{reached}, and {variable('secret_key')} can be guessed: unset it, or set it to what "
            "`openssl rand -hex 32` prints, and make the keys anew."
        )
    if make_url(settings.resolved_database_url).password in _KNOWN_PASSWORDS:
        raise CannotStart(
            f"{reached}, and the password in {variable('database_url')} can be guessed: change it with "
            "`ALTER ROLE … PASSWORD …` to what `openssl rand -hex 24` prints."
        )


def _found(session: Session, key_id: str) -> ApiKey:
    key = repository.find_key(session, key_id)
    if key is None:
        raise NotFound("key_not_found", f"There is no key {key_id!r}.")
    return key


def _detail(key: ApiKey) -> KeyDetail:
    return KeyDetail.model_validate(key, from_attributes=True)
