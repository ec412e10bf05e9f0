from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Select, delete, func, select, text, update
from sqlalchemy.orm import aliased

from app.persistence.database import Database
from app.persistence.models import Dataset, DatasetVersion
from app.settings import Settings


def _names(database: Database) -> list[str]:
    with database.read() as session:
        return list(session.scalars(select(Dataset.name).order_by(Dataset.name)))


def _dataset(name: str) -> Dataset:
    return Dataset(name=name, kind="series", definition={})


def test_write_commits_when_the_block_ends_well(database: Database) -> None:
    with database.write() as session:
        session.add(_dataset("a"))
    assert _names(database) == ["a"]


def test_write_rolls_back_when_the_block_raises(database: Database) -> None:
    def fail() -> None:
        with database.write() as session:
            session.add(_dataset("a"))
            session.flush()
            raise LookupError("stop")

    with pytest.raises(LookupError, match="stop"):
        fail()
    assert _names(database) == []


def test_a_new_file_that_another_process_begins_to_write_is_waited_for(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path)
    with closing(
        sqlite3.connect(tmp_path / "ccmtl.db", check_same_thread=False, isolation_level=None)
    ) as other:
        other.execute("BEGIN IMMEDIATE")  # before the change to a log of writes, for which nothing waits
        release = threading.Timer(0.3, other.execute, ["ROLLBACK"])
        release.start()
        database = Database(settings)
        with database.read() as session:
            assert session.execute(text("PRAGMA journal_mode")).scalar() == "wal"
        database.dispose()
        release.join()


def test_read_never_writes(database: Database) -> None:
    with database.read() as session:
        session.add(_dataset("a"))
        session.flush()
    assert _names(database) == []


def test_writers_that_read_first_wait_for_each_other(database: Database) -> None:
    """On SQLite a transaction that begins as a reader could not be upgraded: one of them would fail."""
    errors = []

    def add(name: str) -> None:
        try:
            with database.write() as session:
                session.scalars(select(Dataset)).all()
                time.sleep(0.05)
                session.add(_dataset(name))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=add, args=(f"d{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(_names(database)) == 8


@pytest.mark.parametrize("database_kind", ["postgresql"])
def test_a_server_that_is_gone_without_a_word_is_given_up_in_time(database: Database) -> None:
    with database.engine.connect() as connection:
        driver = connection.connection.driver_connection
        assert driver is not None
        in_use = driver.info.get_parameters()
    assert in_use["tcp_user_timeout"] == "10000"
    assert (in_use["keepalives_idle"], in_use["keepalives_interval"]) == ("5", "5")


@pytest.fixture
def two_workspaces(database: Database) -> Database:
    """Each has a dataset called "same" with one version, and one called as itself."""
    for workspace in ("ours", "theirs"):
        with database.of(workspace).write() as session:
            session.add(DatasetVersion(dataset=_dataset("same"), number=1, report={}))
            session.add(_dataset(workspace))
    return database


OTHER = aliased(Dataset)
WAYS_TO_NAMES = {
    "entity": select(Dataset.name),
    "alias": select(OTHER.name),
    "joined from": select(Dataset.name).join(DatasetVersion, DatasetVersion.dataset_id == Dataset.id),
    "joined to": select(Dataset.name).select_from(DatasetVersion).join(Dataset),
    "function": select(func.max(Dataset.name)),
    "subquery": select(select(Dataset.name).subquery().c.name),
    "scalar subquery": select(select(func.min(Dataset.name)).scalar_subquery()),
    "in a condition": select(Dataset.name).where(Dataset.id.in_(select(OTHER.id))),
    "by its name": select(Dataset.name).where(Dataset.name == "theirs"),
    "union": select(Dataset.name).union(select(OTHER.name)),
    "common table expression": select(select(Dataset.name).cte().c.name),
}


@pytest.mark.parametrize("way", WAYS_TO_NAMES)
def test_a_workspace_sees_nothing_of_another(two_workspaces: Database, way: str) -> None:
    query: Select[tuple[str]] = WAYS_TO_NAMES[way]  # type: ignore[assignment]
    with two_workspaces.of("ours").read() as session:
        names = set(session.scalars(query))
    assert names <= {"ours", "same"}
    with two_workspaces.read() as session:
        assert session.scalars(select(func.count(Dataset.id))).one() == 4


def test_a_workspace_counts_and_gets_its_own(two_workspaces: Database) -> None:
    with two_workspaces.read() as session:
        of_theirs = session.scalars(select(Dataset.id).where(Dataset.name == "theirs")).one()
    with two_workspaces.of("ours").read() as session:
        assert session.scalars(select(func.count()).select_from(Dataset)).one() == 2
        assert session.get(Dataset, of_theirs) is None
        version = session.scalars(select(DatasetVersion).join(Dataset)).one()
        assert version.dataset.workspace == "ours"


def test_a_workspace_changes_nothing_of_another(two_workspaces: Database) -> None:
    with two_workspaces.of("ours").write() as session:
        session.execute(update(Dataset).values(kind="regression"))
        session.execute(delete(Dataset).where(Dataset.name == "same"))
    with two_workspaces.read() as session:
        rows = session.execute(select(Dataset.workspace, Dataset.name, Dataset.kind)).all()
    assert sorted(map(tuple, rows)) == [
        ("ours", "ours", "regression"),
        ("theirs", "same", "series"),
        ("theirs", "theirs", "series"),
    ]


def test_what_a_workspace_adds_is_its_own_whatever_it_says(database: Database) -> None:
    with database.of("ours").write() as session:
        session.add(Dataset(name="a", kind="series", definition={}, workspace="theirs"))
    with database.read() as session:
        assert session.scalars(select(Dataset.workspace)).one() == "ours"
