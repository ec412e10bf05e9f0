"""A worker starts the process that queues jobs when a time has come, and only then."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from app.persistence.database import Database
from app.schedules import watch
from app.schedules.watch import Watch
from app.settings import Settings
from tests.app.schedules.test_starting import PATH, let_it_come
from tests.support.database_kinds import quickly_on
from tests.support.training import add_series, job, n_jobs


@pytest.fixture(autouse=True)
def _nightly(client: TestClient) -> None:
    add_series(client)
    assert client.put(PATH, json={"daily": "02:30", "training": job()}).status_code == 201


@quickly_on("sqlite")
def test_a_process_of_its_own_queues_the_job(
    database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CCMTL_DATA_DIR", str(settings.data_dir))
    monkeypatch.setenv("CCMTL_DATABASE_URL", settings.database_url or "")
    let_it_come(database)
    Watch(database).start_due()
    assert n_jobs(database) == 1


@quickly_on("sqlite")
def test_no_process_is_started_before_a_time_has_come(database: Database) -> None:
    Watch(database, "there.is.no.such.module").start_due()
    assert n_jobs(database) == 0


@quickly_on("sqlite")
def test_a_process_that_fails_is_told_and_is_started_again_after_a_pause(
    database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    let_it_come(database)
    failing = Watch(database, "there.is.no.such.module")
    failing.start_due()
    failing.start_due()
    assert [record.message for record in caplog.records] == [
        "the process that queues the jobs of schedules ended with code 1"
    ]
    monkeypatch.setattr(watch, "PAUSE_SECONDS", 0.0)
    again = Watch(database, "there.is.no.such.module")
    again.start_due()
    again.start_due()
    assert len(caplog.records) == 3
