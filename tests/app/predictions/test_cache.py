"""Models answer from memory: loaded once, within the bound, the newest version soon after it is published."""

from __future__ import annotations

import threading
from contextlib import suppress

import numpy as np
import pytest
from sqlalchemy.exc import OperationalError

from app.http.errors import NotFound
from app.persistence.base import DEFAULT_WORKSPACE as HOME
from app.persistence.database import Database
from app.predictions.cache import REFRESH_SECONDS, ModelCache, ModelsOfWorkspace
from app.registry import service as registry
from app.registry.publication import History
from ccmtl_core.forecasting import Frequency
from tests.support.clock import Clock
from tests.support.models import add_version, trained
from tests.support.processes import PATIENCE


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cache(database: Database, clock: Clock) -> ModelsOfWorkspace:
    return ModelCache(database, 10**9, clock=clock).of(HOME)


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """The versions read from the database so far."""
    seen: list[tuple[str, int]] = []
    load = registry.load

    def counting(session, name, number, files):  # type: ignore[no-untyped-def]
        seen.append((name, number))
        return load(session, name, number, files)

    monkeypatch.setattr(registry, "load", counting)
    return seen


def test_a_version_is_served_as_it_was_published(database: Database, cache: ModelsOfWorkspace) -> None:
    history = History(np.array([[1.0, 2.0]]), np.array([7]))
    add_version(database, trained([[3.0, 4.0]], ["0001"], history=history, frequency="W"))
    model = cache.get("sales", None)
    assert (model.name, model.version) == ("sales", 1)
    assert model.weights.tolist() == [[3.0, 4.0]]
    assert model.rows == {"0001": 0}
    assert model.frequency is Frequency.WEEK
    assert model.history is not None
    assert model.history.lags.tolist() == [[1.0, 2.0]]
    assert model.n_bytes > 5 * 8


def test_a_version_is_loaded_once(
    database: Database, cache: ModelsOfWorkspace, loads: list[tuple[str, int]]
) -> None:
    add_version(database, trained([[1.0]], ["a"]))
    assert cache.peek("sales", None) is None
    first = cache.get("sales", None)
    assert cache.get("sales", None) is cache.get("sales", 1) is cache.peek("sales", None) is first
    assert loads == [("sales", 1)]


def test_many_who_ask_at_once_share_one_load(
    database: Database, cache: ModelsOfWorkspace, loads: list[tuple[str, int]]
) -> None:
    add_version(database, trained(np.ones((1000, 5)), [str(t) for t in range(1000)]))
    together = threading.Barrier(8)

    def ask() -> None:
        together.wait()
        cache.get("sales", None)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert loads == [("sales", 1)]


def test_a_new_version_answers_after_the_refresh_interval(
    database: Database, cache: ModelsOfWorkspace, clock: Clock
) -> None:
    add_version(database, trained([[1.0]], ["a"]))
    assert cache.get("sales", None).version == 1
    add_version(database, trained([[2.0]], ["a"]))
    clock.now += REFRESH_SECONDS * 0.9
    peeked = cache.peek("sales", None)
    assert peeked is not None
    assert peeked.version == 1
    clock.now += REFRESH_SECONDS * 0.2
    assert cache.peek("sales", None) is None
    assert cache.get("sales", None).version == 2
    assert cache.get("sales", 1).weights.tolist() == [[1.0]]


def test_whether_a_named_version_is_still_there_is_looked_up_again(
    database: Database, cache: ModelsOfWorkspace, clock: Clock, loads: list[tuple[str, int]]
) -> None:
    add_version(database, trained([[1.0]], ["a"]))
    cache.get("sales", 1)
    clock.now += REFRESH_SECONDS * 1.1
    assert cache.peek("sales", 1) is None
    assert cache.get("sales", 1) is cache.peek("sales", 1)
    assert loads == [("sales", 1)]
    with database.write() as session:
        registry.remove(session, "sales")
    clock.now += REFRESH_SECONDS * 0.9
    assert cache.peek("sales", 1) is not None
    clock.now += REFRESH_SECONDS * 0.2
    for _ in range(2):
        with pytest.raises(NotFound):
            cache.get("sales", 1)
        assert cache.peek("sales", 1) is None


@pytest.mark.parametrize("version", [None, 2])
def test_what_is_forgotten_is_not_in_memory_and_the_rest_is(
    database: Database, cache: ModelsOfWorkspace, version: int | None
) -> None:
    for name in ("sales", "sales", "other"):
        add_version(database, trained([[1.0]], ["a"]), name)
    for name, number in [("sales", None), ("sales", 1), ("sales", 2), ("other", None)]:
        cache.get(name, number)
    cache.forget("sales", version)
    assert cache.peek("sales", None) is cache.peek("sales", 2) is None
    assert (cache.peek("sales", 1) is None) == (version is None)
    assert cache.peek("other", None) is not None


def test_the_least_used_is_dropped_when_memory_is_full(
    database: Database, clock: Clock, loads: list[tuple[str, int]]
) -> None:
    for name in "abc":
        add_version(database, trained(np.ones((100, 5)), [str(t) for t in range(100)]), name)
    size = ModelCache(database, 1).of(HOME).get("a", 1).n_bytes
    loads.clear()
    cache = ModelCache(database, 2 * size, clock=clock).of(HOME)
    for name in "abacab":
        cache.get(name, 1)
    assert loads == [("a", 1), ("b", 1), ("c", 1), ("b", 1)]
    assert cache.peek("c", 1) is None


def test_a_model_larger_than_the_bound_still_answers(database: Database) -> None:
    add_version(database, trained([[1.0]], ["a"]))
    cache = ModelCache(database, 1).of(HOME)
    assert cache.get("sales", None) is cache.peek("sales", None)


def test_an_unknown_model_is_looked_up_again_each_time(database: Database, cache: ModelsOfWorkspace) -> None:
    for unknown in (None, 1):
        with pytest.raises(NotFound):
            cache.get("sales", unknown)
    add_version(database, trained([[1.0]], ["a"]))
    assert cache.get("sales", None).version == 1
    with pytest.raises(NotFound, match="no version 2"):
        cache.get("sales", 2)


def test_memory_answers_while_the_database_does_not(
    database: Database,
    cache: ModelsOfWorkspace,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    add_version(database, trained([[1.0]], ["a"]))
    served = cache.get("sales", None)
    clock.now += 10 * REFRESH_SECONDS

    def gone(*args: object) -> int:
        raise OperationalError("SELECT", {}, Exception("the server is gone"))

    monkeypatch.setattr(registry, "require_version", gone)
    assert cache.get("sales", None) is cache.get("sales", 1) is served
    assert "sales stays at version 1" in caplog.text
    with pytest.raises(OperationalError):
        cache.get("never asked for", None)


def test_no_one_waits_for_a_look_that_another_takes(
    database: Database, cache: ModelsOfWorkspace, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_version(database, trained([[1.0]], ["a"]))
    served = cache.get("sales", None)
    looking, answer = threading.Event(), threading.Event()

    def silent(*args: object) -> int:
        looking.set()
        answer.wait(PATIENCE)
        return 1

    monkeypatch.setattr(registry, "require_version", silent)
    clock.now += 2 * REFRESH_SECONDS
    one = threading.Thread(target=cache.get, args=("sales", None))
    one.start()
    assert looking.wait(PATIENCE)
    clock.now += 1000
    assert cache.peek("sales", None) is served
    assert cache.get("sales", None) is served
    answer.set()
    one.join()
    assert cache.peek("sales", None) is served
    clock.now += 2 * REFRESH_SECONDS
    assert cache.peek("sales", None) is None


def test_a_look_that_fails_is_taken_again(
    database: Database, cache: ModelsOfWorkspace, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_version(database, trained([[1.0]], ["a"]))
    cache.get("sales", None)
    add_version(database, trained([[2.0]], ["a"]))
    require_version = registry.require_version
    for error in (OperationalError("SELECT", {}, Exception("gone")), ZeroDivisionError()):

        def fail(*args: object, error: Exception = error) -> int:
            raise error

        monkeypatch.setattr(registry, "require_version", fail)
        clock.now += 2 * REFRESH_SECONDS
        with suppress(ZeroDivisionError):
            assert cache.get("sales", None).version == 1
    monkeypatch.setattr(registry, "require_version", require_version)
    clock.now += 2 * REFRESH_SECONDS
    assert cache.get("sales", None).version == 2


def _delete(database: Database, number: int) -> None:
    with database.write() as session:
        registry.remove_version(session, "sales", number)


def test_who_asks_for_the_newest_gets_one_after_another_process_deleted_it(
    database: Database, clock: Clock
) -> None:
    for name in ("sales", "sales", "other"):
        add_version(database, trained([[1.0]], ["a"]), name)
    cache = ModelCache(database, 1, clock=clock).of(HOME)
    assert cache.get("sales", None).version == 2
    cache.get("other", None)  # there is room for one: version 2 leaves
    _delete(database, 2)
    assert cache.get("sales", None).version == 1
    with pytest.raises(NotFound, match="no version 2"):
        cache.get("sales", 2)
    _delete(database, 1)
    cache.get("other", None)
    with pytest.raises(NotFound, match="sales"):
        cache.get("sales", None)


@pytest.mark.parametrize("step", ["require_version", "load"])
@pytest.mark.parametrize("asked", [None, 2])
def test_what_is_deleted_while_it_is_read_is_not_kept(
    database: Database,
    cache: ModelsOfWorkspace,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    asked: int | None,
) -> None:
    for _ in range(2):
        add_version(database, trained([[1.0]], ["a"]))
    if step == "require_version":
        cache.get("sales", 1)
    read = getattr(registry, step)

    def deleted_meanwhile(session, name, number, *files):  # type: ignore[no-untyped-def]
        found = read(session, name, number, *files)
        session.rollback()
        monkeypatch.setattr(registry, step, read)
        _delete(database, 2)
        cache.forget("sales", 2)
        return found

    monkeypatch.setattr(registry, step, deleted_meanwhile)
    with suppress(NotFound):  # either answer is right to who asked before the deletion
        cache.get("sales", asked)
    assert cache.peek("sales", 2) is None
    assert cache.get("sales", None).version == 1
    with pytest.raises(NotFound, match="no version 2"):
        cache.get("sales", 2)
