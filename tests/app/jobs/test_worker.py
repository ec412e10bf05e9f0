"""A worker process with a stand-in for the fit: each test on one kind of database, on both among the slow."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from app.jobs import queue, workers
from app.persistence.database import Database
from app.persistence.models import JobState
from app.settings import Settings
from tests.app.jobs.conftest import AddJob, read_job
from tests.support.database_kinds import quickly_on
from tests.support.forked import forked
from tests.support.processes import PATIENCE, is_running, wait_until
from tests.support.stand_in_worker import be_busy, work

LEASE = 3.0

StartWorker = Callable[..., BaseProcess]


@pytest.fixture
def start_worker(settings: Settings) -> Iterator[StartWorker]:
    timing = {"CCMTL_JOB_LEASE_SECONDS": str(LEASE), "CCMTL_JOB_POLL_SECONDS": "0.1"}
    started = []

    def start(**variables: str) -> BaseProcess:
        started.append(forked(work, environment={**settings.environment(), **timing, **variables}))
        return started[-1]

    yield start
    for worker in started:
        worker.kill()
        worker.join()


@pytest.fixture
def pid_file(tmp_path: Path) -> str:
    return str(tmp_path / "fit_pid")


def fit_pid(pid_file: str, attempt: int) -> int:
    """Wait for the start of the attempt's fit child and return its pid."""
    path = Path(f"{pid_file}.{attempt}")
    return int(wait_until(lambda: path.exists() and path.read_text(), f"the start of attempt {attempt}"))


def wait_for_state(database: Database, job_id: str, state: JobState) -> None:
    wait_until(lambda: read_job(database, job_id).state == state, f"state {state}")


def n_alive(database: Database) -> int:
    with database.read() as session:
        return workers.count_alive(session)


def test_job_succeeds_and_the_next_one_follows(
    database: Database, add_job: AddJob, start_worker: StartWorker
) -> None:
    jobs = [add_job({"succeeds_at": [1]}) for _ in range(2)]
    start_worker()
    for job_id in jobs:
        wait_for_state(database, job_id, JobState.SUCCEEDED)
        row = read_job(database, job_id)
        assert (row.attempt, row.times_lost, row.model_version_id) == (1, 0, "mv_of_stand_in")


@quickly_on("postgresql")
def test_killed_workers_child_is_gone_and_another_worker_takes_over(
    database: Database, add_job: AddJob, start_worker: StartWorker, pid_file: str
) -> None:
    job_id = add_job({"pid_file": pid_file, "succeeds_at": [2]})
    worker = start_worker()
    child = fit_pid(pid_file, 1)
    start_worker()
    worker.kill()
    wait_until(lambda: not is_running(child), "the end of the fit child")
    wait_for_state(database, job_id, JobState.SUCCEEDED)
    row = read_job(database, job_id)
    assert (row.attempt, row.times_lost, row.times_silent) == (2, 0, 1)


@quickly_on("sqlite")
def test_ended_worker_gives_its_job_back_at_once(
    database: Database, add_job: AddJob, start_worker: StartWorker, pid_file: str
) -> None:
    job_id = add_job({"pid_file": pid_file})
    worker = start_worker()
    child = fit_pid(pid_file, 1)
    assert n_alive(database) == 1
    worker.terminate()
    worker.join(PATIENCE)
    assert worker.exitcode == 0
    assert n_alive(database) == 0
    assert not is_running(child)
    row = read_job(database, job_id)
    assert (row.state, row.attempt, row.times_lost) == (JobState.QUEUED, 1, 0)


@quickly_on("sqlite")
def test_cancelled_jobs_child_is_ended(
    database: Database, add_job: AddJob, start_worker: StartWorker, pid_file: str
) -> None:
    job_id = add_job({"pid_file": pid_file})
    start_worker()
    child = fit_pid(pid_file, 1)
    with database.write() as session:
        queue.request_cancel(session, job_id)
    wait_for_state(database, job_id, JobState.CANCELLED)
    wait_until(lambda: not is_running(child), "the end of the fit child")


@quickly_on("sqlite")
def test_a_busy_worker_ends_the_job_that_another_was_to_cancel_when_it_died(
    settings: Settings, database: Database, add_job: AddJob
) -> None:
    job_id = add_job(state=JobState.RUNNING, attempt=1, lease_expires_at=1.0, cancel_requested=True)
    busy = forked(be_busy, environment=settings.environment())
    try:
        wait_for_state(database, job_id, JobState.CANCELLED)
    finally:
        busy.kill()
        busy.join()


@pytest.mark.slow
def test_cancelled_jobs_child_is_ended_within_two_seconds_however_seldom_idle_workers_look(
    database: Database, add_job: AddJob, start_worker: StartWorker, pid_file: str
) -> None:
    job_id = add_job({"pid_file": pid_file})
    start_worker(CCMTL_JOB_POLL_SECONDS="60")
    child = fit_pid(pid_file, 1)
    began = time.monotonic()
    with database.write() as session:
        queue.request_cancel(session, job_id)
    wait_until(lambda: not is_running(child), "the end of the fit child")
    assert time.monotonic() - began < 2.0


@pytest.mark.parametrize(
    ("limit", "value", "code"),
    [("CCMTL_JOB_MAX_SECONDS", "0.5", "time_limit"), ("CCMTL_JOB_MAX_MEMORY_MB", "1", "memory_limit")],
)
@quickly_on("sqlite")
def test_run_over_a_limit_is_ended_and_not_tried_again(
    database: Database,
    add_job: AddJob,
    start_worker: StartWorker,
    limit: str,
    value: str,
    code: str,
) -> None:
    job_id = add_job()
    start_worker(**{limit: value})
    wait_for_state(database, job_id, JobState.FAILED)
    row = read_job(database, job_id)
    assert row.error is not None
    assert (row.error["code"], row.attempt) == (code, 1)


@pytest.mark.parametrize(
    ("request_", "reason"), [({"dies_at": [1, 2, 3]}, "SIGKILL"), ({"ends_at": [1, 2, 3]}, "code 7")]
)
@quickly_on("sqlite")
def test_fit_that_dies_every_time_fails_its_job_and_says_how(
    database: Database,
    add_job: AddJob,
    start_worker: StartWorker,
    request_: dict[str, list[int]],
    reason: str,
) -> None:
    job_id = add_job(request_)
    start_worker()
    wait_for_state(database, job_id, JobState.FAILED)
    row = read_job(database, job_id)
    assert row.error is not None
    assert reason in row.error["detail"]
    assert row.attempt == 3


@quickly_on("sqlite")
def test_fit_that_ends_while_the_database_is_away_does_not_count_as_lost(
    database: Database, add_job: AddJob, start_worker: StartWorker
) -> None:
    job_id = add_job({"database_is_away_at": [1], "succeeds_at": [2]})
    start_worker(CCMTL_JOB_MAX_ATTEMPTS="1", CCMTL_JOB_LEASE_SECONDS="1")
    wait_for_state(database, job_id, JobState.SUCCEEDED)
    row = read_job(database, job_id)
    assert (row.attempt, row.times_lost) == (2, 0)


@quickly_on("postgresql")
def test_fit_that_dies_once_is_run_again(
    database: Database, add_job: AddJob, start_worker: StartWorker
) -> None:
    job_id = add_job({"dies_at": [1], "succeeds_at": [2]})
    start_worker()
    wait_for_state(database, job_id, JobState.SUCCEEDED)
    assert read_job(database, job_id).times_lost == 1


@quickly_on("sqlite")
def test_long_job_keeps_its_lease(
    database: Database, add_job: AddJob, start_worker: StartWorker, pid_file: str
) -> None:
    job_id = add_job({"pid_file": pid_file})
    start_worker()
    start_worker()
    fit_pid(pid_file, 1)
    first = read_job(database, job_id).lease_expires_at
    assert first is not None
    wait_until(lambda: (read_job(database, job_id).lease_expires_at or 0) > first + LEASE, "renewals")
    assert read_job(database, job_id).attempt == 1


@pytest.mark.landing
@quickly_on("postgresql")
def test_worker_suspended_past_its_lease_ends_its_run_when_it_wakes(
    database: Database, add_job: AddJob, start_worker: StartWorker, pid_file: str
) -> None:
    job_id = add_job({"pid_file": pid_file})
    sleeper = start_worker()
    old_child = fit_pid(pid_file, 1)
    assert sleeper.pid is not None
    os.kill(sleeper.pid, signal.SIGSTOP)
    start_worker()
    new_child = fit_pid(pid_file, 2)
    os.kill(sleeper.pid, signal.SIGCONT)
    wait_until(lambda: not is_running(old_child), "the end of the stale fit child")
    row = read_job(database, job_id)
    assert (row.state, row.attempt) == (JobState.RUNNING, 2)
    assert is_running(new_child)


@pytest.mark.landing
@quickly_on("sqlite")
def test_suspended_fit_child_is_ended_and_the_job_is_run_again(
    database: Database, add_job: AddJob, start_worker: StartWorker, pid_file: str
) -> None:
    job_id = add_job({"pid_file": pid_file, "succeeds_at": [2]})
    start_worker()
    child = fit_pid(pid_file, 1)
    os.kill(child, signal.SIGSTOP)
    wait_for_state(database, job_id, JobState.SUCCEEDED)
    assert not is_running(child)
    assert read_job(database, job_id).attempt == 2


@pytest.mark.landing
def test_fit_suspended_in_the_middle_of_publishing_blocks_nobody_for_long(
    database: Database, add_job: AddJob, start_worker: StartWorker
) -> None:
    """It holds a lock on its job's row, on SQLite on the whole database, until its worker ends it."""
    job_id = add_job({"suspended_while_publishing_at": [1], "succeeds_at": [2]})
    start_worker()
    start_worker()
    wait_for_state(database, job_id, JobState.SUCCEEDED)
    row = read_job(database, job_id)
    assert (row.attempt, row.model_version_id) == (2, "mv_of_stand_in")
