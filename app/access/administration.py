"""What ``ccmtl keys`` does: make, list and revoke keys of any workspace, in the service's own database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from pydantic import ValidationError

from app.access import repository, service
from app.access.keys import KeyHash, secret_of
from app.access.schemas import KeyForm, NewKeyDetail
from app.http.errors import NotFound
from app.http.request_body import faults_in_body
from app.persistence.base import utc_now
from app.persistence.database import Database
from app.persistence.schema import prepare
from app.processes.cannot_start import CannotStart
from app.settings import Settings


def create(
    settings: Settings,
    name: str,
    workspace: str,
    scopes: list[str],
    days: float | None,
    requests_per_minute: int | None,
) -> NewKeyDetail:
    """Make a key; raise CannotStart with all that is wrong with what was asked for."""
    document = {
        "name": name,
        "scopes": scopes,
        "expires_at": None if days is None else utc_now() + timedelta(days=days),
        "requests_per_minute": requests_per_minute,
    }
    try:
        form = KeyForm.model_validate(document)
    except ValidationError as error:
        faults = faults_in_body(KeyForm, error)
        reasons = [f"{(fault.location or '').removeprefix('body.')}: {fault.message}" for fault in faults]
        raise CannotStart("; ".join(reasons)) from None
    with _database(settings) as database, database.of(workspace).write() as session:
        return service.create(session, form, KeyHash(secret_of(settings)))


def listed(settings: Settings, workspace: str | None) -> list[str]:
    """Return the lines of a table of keys, those of all workspaces for None; expired ones are marked."""
    with _database(settings) as database, database.of(workspace).read() as session:
        keys = repository.all_keys(session)
    rows: list[tuple[str, ...]] = [("id", "workspace", "name", "scopes", "expires", "last used", "revoked")]
    for key in sorted(keys, key=lambda key: (key.workspace, key.created_at)):
        moments = (key.expires_at, key.last_used_at, key.revoked_at)
        shown = ["" if m is None else m.isoformat(sep=" ", timespec="minutes") for m in moments]
        if key.expires_at is not None and key.expires_at <= utc_now():
            shown[0] += " (expired)"
        rows.append((key.id, key.workspace, key.name, ",".join(key.scopes), *shown))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def revoke(settings: Settings, key_id: str) -> None:
    """Revoke a key; raise CannotStart if there is none with this id."""
    with _database(settings) as database, database.write() as session:
        try:
            service.revoke(session, key_id)
        except NotFound as error:
            raise CannotStart(f"{error} `ccmtl keys list` lists them.") from None


@contextmanager
def _database(settings: Settings) -> Iterator[Database]:
    database = Database(settings)
    try:
        prepare(database)
        yield database
    finally:
        database.dispose()
