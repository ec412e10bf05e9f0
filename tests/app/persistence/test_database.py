from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import select, text

from app.persistence.database import Database
from app.persistence.models import Dataset
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
