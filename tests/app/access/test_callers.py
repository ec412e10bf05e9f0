"""Keys are known in memory, no longer than they may be, and go on working while the database is away."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from sqlalchemy import select, update
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from app.access import service
from app.access.callers import EVERYBODY, REFRESH_SECONDS, KnownCallers
from app.access.keys import KeyHash
from app.access.schemas import KeyForm
from app.http.access import Caller, Scope
from app.http.errors import Unauthorized
from app.persistence.base import utc_now
from app.persistence.database import Database
from app.persistence.models import ApiKey
from tests.support.clock import Clock

HASH = KeyHash(b"secret")


@pytest.fixture(scope="module", params=["sqlite"])
def database_kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def callers(database: Database, clock: Clock) -> KnownCallers:
    return KnownCallers(database, HASH, open_without_keys=True, clock=clock)


def create(database: Database, workspace: str = "default") -> str:
    form = KeyForm(name="till", scopes=frozenset({Scope.PREDICT}))
    with database.of(workspace).write() as session:
        return f"Bearer {service.create(session, form, HASH).key}"


def key_id(header: str) -> str:
    return header.split("_")[1]


@contextmanager
def away(database: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    @contextmanager
    def fail() -> Iterator[Session]:
        raise OperationalError(None, None, ConnectionError("gone"))
        yield

    with monkeypatch.context() as patch:
        patch.setattr(database, "read", fail)
        yield


def test_without_keys_callers_are_everybody_where_that_is_allowed(database: Database) -> None:
    here = KnownCallers(database, HASH, open_without_keys=True)
    assert here.find(None) == here.peek("Bearer anything") == EVERYBODY
    reached = KnownCallers(database, HASH, open_without_keys=False)
    with pytest.raises(Unauthorized):
        reached.find(None)


def test_a_key_names_workspace_and_scopes(callers: KnownCallers, database: Database) -> None:
    header = create(database, "north")
    assert callers.find(header) == Caller("north", frozenset({"predict"}), key_id(header))
    assert callers.peek(header) == callers.peek(header.replace("Bearer", "bearer")) == callers.find(header)


def test_one_wrong_letter_is_an_unknown_key(callers: KnownCallers, database: Database) -> None:
    header = create(database)
    wrong = header[:-1] + ("A" if header[-1] != "A" else "B")
    for sent in (wrong, header.removeprefix("Bearer "), "Basic eDp5", "Bearer", "", "Bearer ccmtl_é"):
        with pytest.raises(Unauthorized) as refused:
            callers.find(sent)
        assert refused.value.problem.code == "key_invalid"
    with pytest.raises(Unauthorized) as refused:
        callers.find(None)
    assert refused.value.problem.code == "key_missing"


def test_known_keys_ask_the_database_once_a_second(
    callers: KnownCallers, database: Database, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = create(database)
    callers.find(header)
    with away(database, monkeypatch):
        clock.now += REFRESH_SECONDS
        assert callers.peek(header) is not None
    clock.now += 0.1
    assert callers.peek(header) is None
    assert callers.find(header) == callers.peek(header)


def test_a_key_made_elsewhere_works_at_once_and_a_revoked_one_ends_within_a_second(
    callers: KnownCallers, database: Database, clock: Clock
) -> None:
    callers.find(create(database))
    clock.now += 0.2
    header = create(database)
    assert callers.find(header).key_id == key_id(header)
    with database.write() as session:
        service.revoke(session, key_id(header))
    assert callers.peek(header) is not None
    clock.now += REFRESH_SECONDS + 0.1
    with pytest.raises(Unauthorized):
        callers.find(header)


def test_once_there_was_a_key_nobody_comes_without(
    callers: KnownCallers, database: Database, clock: Clock
) -> None:
    with database.write() as session:
        service.revoke(session, key_id(create(database)))
    with pytest.raises(Unauthorized):
        callers.find(None)


def test_an_expired_key_ends_by_itself(callers: KnownCallers, database: Database) -> None:
    header = create(database)
    with database.write() as session:
        session.execute(update(ApiKey).values(expires_at=utc_now() - timedelta(seconds=1)))
    with pytest.raises(Unauthorized):
        callers.find(header)


def test_keys_stay_known_while_the_database_is_away(
    callers: KnownCallers, database: Database, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with away(database, monkeypatch), pytest.raises(OperationalError):
        callers.find(None)
    header = create(database)
    callers.find(header)
    with away(database, monkeypatch):
        clock.now += 60.0
        assert callers.find(header).key_id == key_id(header)


def test_the_last_use_is_stored_when_it_is_asked_for(callers: KnownCallers, database: Database) -> None:
    header = create(database)
    before = utc_now()
    callers.find(header)
    with database.read() as session:
        assert session.scalars(select(ApiKey.last_used_at)).one() is None
    callers.note_uses()
    with database.read() as session:
        used = session.scalars(select(ApiKey.last_used_at)).one()
    assert used is not None
    assert before <= used <= utc_now()
