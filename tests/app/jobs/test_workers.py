from __future__ import annotations

from app.jobs import workers
from app.persistence.database import Database


def test_a_worker_counts_as_alive_until_it_ends_or_falls_silent(database: Database) -> None:
    with database.write() as session:
        workers.note_alive(session, "w1", 60)
        workers.note_alive(session, "w1", 60)
        workers.note_alive(session, "w2", 60)
        workers.note_alive(session, "silent", -1)
        assert workers.count_alive(session) == 2
        workers.note_end(session, "w2")
        assert workers.count_alive(session) == 1


def test_a_worker_that_died_long_ago_is_forgotten(database: Database) -> None:
    with database.write() as session:
        workers.note_alive(session, "dead", -2 * workers.KEPT_SECONDS)
        workers.note_alive(session, "w1", 60)
        session.flush()
        assert session.get(workers.LivingWorker, "dead") is None
        assert session.get(workers.LivingWorker, "w1") is not None
