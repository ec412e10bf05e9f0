"""What the fit child does with each way that a run can end; the pipeline itself is stood in for."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy.exc import IntegrityError, OperationalError

from app.http.errors import InvalidContent
from app.jobs import fit_child, queue
from app.jobs.exits import Exit
from app.jobs.queue import ClaimedJob, StaleAttempt
from app.persistence.database import Database
from app.persistence.models import JobState
from app.persistence.storage import Storage
from app.settings import Settings
from app.training import pipeline
from app.training.cluster import ClusterLost
from ccmtl_core.base.exceptions import DataError
from tests.app.jobs.conftest import AddJob, let_lease_run_out, read_job

Pipeline = Callable[[Database, Storage, ClaimedJob, Callable[[dict[str, Any]], None], str | None], None]


@pytest.fixture
def job_id(database: Database, add_job: AddJob) -> str:
    job_id = add_job()
    with database.write() as session:
        queue.claim(session, "w", 60.0, 3)
    return job_id


@pytest.fixture
def run(settings: Settings, job_id: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[Pipeline], int]:
    def run(stand_in: Pipeline) -> int:
        monkeypatch.setattr(pipeline, "run", stand_in)
        return fit_child.run(settings, job_id, 1)

    return run


def take_over(database: Database, job_id: str) -> None:
    let_lease_run_out(database, job_id)
    with database.write() as session:
        assert queue.claim(session, "another", 60.0, 3) is not None


def raising(error: BaseException) -> Pipeline:
    def stand_in(*arguments: object) -> None:
        raise error

    return stand_in


@pytest.mark.parametrize(
    ("error", "code", "detail"),
    [
        (DataError(["task 'a' is empty"]), "training_failed", "task 'a' is empty"),
        (
            InvalidContent("too_short", "Every series is too short."),
            "too_short",
            "Every series is too short.",
        ),
        (MemoryError(), "out_of_memory", "more memory than this machine has"),
        (RuntimeError("a secret"), "internal_error", "the operator's log has the details"),
        (
            IntegrityError("UPDATE", {}, Exception("a secret")),
            "internal_error",
            "the operator's log has the details",
        ),
    ],
)
def test_a_failed_run_says_why(
    database: Database,
    job_id: str,
    run: Callable[[Pipeline], int],
    error: Exception,
    code: str,
    detail: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert run(raising(error)) == Exit.RECORDED
    row = read_job(database, job_id)
    assert row.state == JobState.FAILED
    assert row.error is not None
    assert row.error["code"] == code
    assert detail in row.error["detail"]
    assert "a secret" not in row.error["detail"]
    with database.write() as session:
        assert queue.claim(session, "another", 60.0, 3) is None, "it would fail in the same way again"
    assert any(record.levelno >= logging.WARNING and job_id in record.message for record in caplog.records)


@pytest.mark.parametrize(
    ("error", "exit_code"),
    [
        (StaleAttempt("lost"), Exit.STALE),
        (
            OperationalError("UPDATE", {}, Exception("server closed the connection")),
            Exit.DATABASE_AWAY,
        ),
        (ClusterLost("the scheduler went away"), Exit.CLUSTER_LOST),
    ],
)
def test_a_run_that_cannot_record_its_end_tells_its_worker(
    database: Database, job_id: str, run: Callable[[Pipeline], int], error: Exception, exit_code: int
) -> None:
    assert run(raising(error)) == exit_code
    assert read_job(database, job_id).state == JobState.RUNNING


def test_progress_is_stored(database: Database, job_id: str, run: Callable[[Pipeline], int]) -> None:
    def stand_in(
        database: Database,
        storage: Storage,
        job: ClaimedJob,
        on_progress: Callable[[dict[str, Any]], None],
        scheduler: str | None,
    ) -> None:
        on_progress({"phase": "solve"})

    run(stand_in)
    assert read_job(database, job_id).progress == {"phase": "solve"}


def test_progress_of_a_run_whose_job_was_taken_over_ends_it(
    database: Database, job_id: str, run: Callable[[Pipeline], int]
) -> None:
    def stand_in(
        database: Database,
        storage: Storage,
        job: ClaimedJob,
        on_progress: Callable[[dict[str, Any]], None],
        scheduler: str | None,
    ) -> None:
        take_over(database, job.id)
        on_progress({"phase": "solve"})
        pytest.fail("the run went on")

    assert run(stand_in) == Exit.STALE
    assert read_job(database, job_id).progress == queue.STARTING


def test_an_attempt_that_lost_its_job_before_it_began(
    database: Database, job_id: str, run: Callable[[Pipeline], int]
) -> None:
    take_over(database, job_id)
    assert run(raising(AssertionError("the pipeline began"))) == Exit.STALE
