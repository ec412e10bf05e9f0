"""Versions are numbered without gaps, also when two jobs publish under one name at the same moment."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from sqlalchemy import delete, func, select

from app.persistence.database import Database
from app.persistence.models import MatrixChunk, MatrixName, Model, ModelVersion, TaskRow
from app.registry import service
from app.registry.matrix_store import CorruptModel
from app.registry.publication import History
from tests.support.models import add_dataset_version, add_version, trained


def test_versions_count_up_within_their_model(database: Database) -> None:
    model = trained([[1.0]], ["a"])
    assert [add_version(database, model, name) for name in ("x", "y", "x", "x")] == [1, 1, 2, 3]


def test_two_first_versions_at_once_make_one_model(database: Database) -> None:
    add_dataset_version(database)
    numbers: list[int] = []
    together = threading.Barrier(4)

    def publish() -> None:
        together.wait()
        numbers.append(add_version(database, trained([[1.0]], ["a"])))

    threads = [threading.Thread(target=publish) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(numbers) == [1, 2, 3, 4]
    with database.read() as session:
        assert session.scalar(select(func.count()).select_from(Model)) == 1


def test_a_transaction_that_fails_leaves_nothing(database: Database) -> None:
    with pytest.raises(ValueError, match="shape"):
        add_version(database, trained(np.empty((1, 0)), ["a"]))
    with database.read() as session:
        for table in (Model, ModelVersion, MatrixChunk, TaskRow):
            assert session.scalar(select(func.count()).select_from(table)) == 0


def test_an_intercept_comes_back_exactly_and_is_zero_without(database: Database) -> None:
    intercept = np.random.default_rng(0).standard_normal(300)
    ids = [str(t) for t in range(300)]
    add_version(database, trained(np.ones((300, 2)), ids, intercept=intercept))
    add_version(database, trained(np.ones((300, 2)), ids))
    with database.read() as session:
        assert service.load(session, "sales", 1).intercept.tobytes() == intercept.tobytes()
        assert service.load(session, "sales", 2).intercept.tobytes() == np.zeros(300).tobytes()


def test_a_lost_intercept_is_found(database: Database) -> None:
    add_version(database, trained([[1.0]], ["a"], intercept=[2.0]))
    with database.write() as session:
        session.execute(delete(MatrixChunk).where(MatrixChunk.matrix == MatrixName.INTERCEPT))
    with database.read() as session, pytest.raises(CorruptModel, match="stored intercept"):
        service.load(session, "sales", 1)


def test_a_history_comes_back_exactly(database: Database) -> None:
    lowest = np.iinfo(np.int64).min
    history = History(lags=np.array([[0.1, -0.0], [np.nan, np.nan]]), last_period=np.array([2**40, lowest]))
    add_version(database, trained([[1.0, 2.0], [3.0, 4.0]], ["a", "b"], history=history, frequency="D"))
    with database.read() as session:
        stored = service.load(session, "sales", 1)
    assert stored.history is not None
    assert stored.history.lags.tobytes() == history.lags.tobytes()
    assert stored.history.last_period.tolist() == [2**40, lowest]
