from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.jobs import queue
from app.jobs.queue import ClaimedJob, StaleAttempt
from app.jobs.worker import end_cancelled
from app.persistence.database import Database, DatabaseNow
from app.persistence.models import JobState
from app.settings import Settings
from tests.app.jobs.conftest import AddJob, let_lease_run_out, read_job
from tests.support.claim_all import claim_all
from tests.support.forked import run_together

LEASE, MAX = 10.0, 3

OWNERS_STATEMENTS: dict[str, Callable[[Session, str, int], object]] = {
    "load": queue.load,
    "is_cancel_requested": queue.is_cancel_requested,
    "renew_lease": lambda session, job, attempt: queue.renew_lease(session, job, attempt, LEASE),
    "report_progress": lambda session, job, attempt: queue.report_progress(session, job, attempt, {"x": 1}),
    "finish": lambda session, job, attempt: queue.finish(session, job, attempt, "mv_1"),
    "fail": lambda session, job, attempt: queue.fail(session, job, attempt, "code", "detail"),
    "mark_cancelled": queue.mark_cancelled,
    "give_back": queue.give_back,
    "lose_run": lambda session, job, attempt: queue.lose_run(session, job, attempt, "reason", MAX),
}


def claim(database: Database, worker: str = "w1") -> ClaimedJob | None:
    with database.write() as session:
        return queue.claim(session, worker, LEASE, MAX)


def do(database: Database, statement: Callable[..., Any], *arguments: object) -> Any:
    with database.write() as session:
        return statement(session, *arguments)


def columns(database: Database, job_id: str) -> dict[str, object]:
    job = read_job(database, job_id)
    return {column.key: getattr(job, column.key) for column in job.__table__.columns}


def test_database_clock_is_the_time_of_day(database: Database) -> None:
    with database.read() as session:
        assert session.execute(select(DatabaseNow())).scalar_one() == pytest.approx(time.time(), abs=2)


def test_oldest_job_first(database: Database, add_job: AddJob) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    ages = (1, 3, 2)
    ids = [add_job(created_at=now - timedelta(minutes=age), model_name=f"m{age}") for age in ages]
    claimed = [claim(database) for _ in range(4)]
    assert [job and job.id for job in claimed] == [ids[1], ids[2], ids[0], None]


def test_highest_priority_first_then_the_oldest_job(database: Database, add_job: AddJob) -> None:
    ids = [add_job(priority=priority, parallel=True) for priority in (-1, 0, 1, 0, 1)]
    claimed = [claim(database) for _ in ids]
    assert [ids.index(job.id) for job in claimed if job] == [2, 4, 1, 3, 0]


def test_one_job_of_a_model_runs_at_a_time(database: Database, add_job: AddJob) -> None:
    first, second = add_job(), add_job()
    elsewhere, other = add_job(workspace="another"), add_job(model_name="other")
    alongside = add_job(parallel=True)
    assert [job and job.id for job in (claim(database) for _ in range(5))] == [
        first,
        elsewhere,
        other,
        alongside,
        None,
    ]
    with database.read() as session:
        assert not queue.has_work(session), "idle workers would take the lock for writing at each look"
    do(database, queue.finish, first, 1, "mv_1")
    claimed = claim(database)
    assert claimed is not None
    assert claimed.id == second, "a parallel job does not make others wait"


def test_two_jobs_of_a_model_cannot_start_at_the_same_moment(database: Database, add_job: AddJob) -> None:
    add_job(state=JobState.RUNNING)
    with pytest.raises(IntegrityError):
        add_job(state=JobState.RUNNING)


def test_claim_takes_the_job_for_a_lease(
    database: Database, add_job: AddJob, dataset_version_id: str
) -> None:
    job_id = add_job({"lags": 5})
    before = time.time()
    job = claim(database, "w1")
    assert job == ClaimedJob(job_id, 1, dataset_version_id, "m", {"lags": 5}, "default")
    row = read_job(database, job_id)
    assert (row.state, row.worker, row.attempt, row.times_lost) == (JobState.RUNNING, "w1", 1, 0)
    assert row.lease_expires_at == pytest.approx(before + LEASE, abs=2)
    assert claim(database, "w2") is None


def test_has_work_sees_waiting_and_abandoned_jobs(database: Database, add_job: AddJob) -> None:
    def has_work() -> bool:
        with database.read() as session:
            return queue.has_work(session)

    assert not has_work()
    job_id = add_job()
    assert has_work()
    claim(database)
    assert not has_work()
    let_lease_run_out(database, job_id)
    assert has_work()


def test_abandoned_job_is_claimed_again_under_a_new_attempt(database: Database, add_job: AddJob) -> None:
    job_id = add_job()
    claim(database, "w1")
    do(database, queue.report_progress, job_id, 1, {"phase": "solve"})
    let_lease_run_out(database, job_id)
    again = claim(database, "w2")
    assert again is not None
    assert (again.id, again.attempt) == (job_id, 2)
    row = read_job(database, job_id)
    assert (row.worker, row.times_lost, row.times_silent, row.progress) == ("w2", 0, 1, queue.STARTING)


@pytest.mark.parametrize("statement", OWNERS_STATEMENTS.values(), ids=OWNERS_STATEMENTS)
@pytest.mark.parametrize("loss", ["taken over", "cancelled", "succeeded", "given back"])
def test_who_lost_the_job_writes_nothing(
    database: Database, add_job: AddJob, statement: Callable[..., object], loss: str
) -> None:
    job_id = add_job()
    claim(database, "w1")
    if loss == "succeeded":
        do(database, queue.finish, job_id, 1, "mv_0")
    elif loss == "given back":
        do(database, queue.give_back, job_id, 1)
    else:
        let_lease_run_out(database, job_id)
    if loss == "taken over":
        claim(database, "w2")
    elif loss == "cancelled":
        assert do(database, queue.request_cancel, job_id) == JobState.CANCELLED
    before = columns(database, job_id)
    with pytest.raises(StaleAttempt):
        do(database, statement, job_id, 1)
    assert columns(database, job_id) == before


@pytest.mark.parametrize("statement", OWNERS_STATEMENTS.values(), ids=OWNERS_STATEMENTS)
def test_who_is_late_keeps_the_job_until_another_takes_it(
    database: Database, add_job: AddJob, statement: Callable[..., object]
) -> None:
    job_id = add_job()
    claim(database, "w1")
    let_lease_run_out(database, job_id)
    do(database, statement, job_id, 1)


@pytest.mark.parametrize("late", [False, True])
def test_a_lease_is_renewed_also_when_it_is_over(database: Database, add_job: AddJob, late: bool) -> None:
    job_id = add_job()
    claim(database)
    if late:
        let_lease_run_out(database, job_id)
    do(database, queue.renew_lease, job_id, 1, 1000.0)
    row = read_job(database, job_id)
    assert row.lease_expires_at == pytest.approx(time.time() + 1000, abs=5)
    assert claim(database, "w2") is None
    assert (row.attempt, row.times_lost, row.times_silent) == (1, 0, 0)


def test_finish_stands_or_falls_with_its_transaction(database: Database, add_job: AddJob) -> None:
    job_id = add_job()
    claim(database)

    def publish_and_fail(session: Session) -> None:
        queue.finish(session, job_id, 1, "mv_1")
        raise RuntimeError("the rest of the transaction fails")

    with pytest.raises(RuntimeError):
        do(database, publish_and_fail)
    assert read_job(database, job_id).state == JobState.RUNNING
    do(database, queue.finish, job_id, 1, "mv_1")
    row = read_job(database, job_id)
    assert (row.state, row.model_version_id, row.lease_expires_at) == (JobState.SUCCEEDED, "mv_1", None)
    assert row.finished_at is not None


def test_finish_is_refused_once_cancellation_was_asked_for(database: Database, add_job: AddJob) -> None:
    job_id = add_job()
    claim(database)
    assert do(database, queue.request_cancel, job_id) == JobState.RUNNING
    with pytest.raises(StaleAttempt):
        do(database, queue.finish, job_id, 1, "mv_1")
    assert do(database, queue.is_cancel_requested, job_id, 1) is True
    do(database, queue.mark_cancelled, job_id, 1)
    assert read_job(database, job_id).state == JobState.CANCELLED


def test_fail_says_why(database: Database, add_job: AddJob) -> None:
    job_id = add_job()
    claim(database)
    do(database, queue.fail, job_id, 1, "too_short", "Series 'a' is too short.")
    row = read_job(database, job_id)
    assert (row.state, row.error) == (
        JobState.FAILED,
        {"code": "too_short", "detail": "Series 'a' is too short."},
    )


def test_given_back_job_waits_again_without_a_lost_run(database: Database, add_job: AddJob) -> None:
    job_id = add_job()
    for attempt in range(1, 6):  # more often than the limit of lost runs
        claim(database)
        do(database, queue.give_back, job_id, attempt)
    row = read_job(database, job_id)
    assert (row.state, row.attempt, row.times_lost, row.worker) == (JobState.QUEUED, 5, 0, None)


def test_given_back_job_is_cancelled_if_that_was_asked_for(database: Database, add_job: AddJob) -> None:
    job_id = add_job()
    claim(database)
    do(database, queue.request_cancel, job_id)
    do(database, queue.give_back, job_id, 1)
    row = read_job(database, job_id)
    assert row.state == JobState.CANCELLED
    assert row.finished_at is not None


def test_lost_run_is_tried_again_up_to_the_limit(database: Database, add_job: AddJob) -> None:
    job_id = add_job()
    states = []
    for attempt in range(1, MAX + 1):
        assert claim(database) is not None
        states.append(do(database, queue.lose_run, job_id, attempt, "its process was ended by SIGKILL", MAX))
    assert states == [JobState.QUEUED, JobState.QUEUED, JobState.FAILED]
    assert claim(database) is None
    error = read_job(database, job_id).error
    assert error is not None
    assert error["code"] == "run_lost"
    assert "3 times" in error["detail"]
    assert "SIGKILL" in error["detail"]


def test_silent_workers_use_up_no_attempts_of_runs_that_die(database: Database, add_job: AddJob) -> None:
    job_id = add_job()
    for _ in range(MAX):
        assert claim(database) is not None
        let_lease_run_out(database, job_id)
    assert claim(database) is not None
    assert do(database, queue.lose_run, job_id, MAX + 1, "reason", MAX) == JobState.QUEUED
    row = read_job(database, job_id)
    assert (row.times_lost, row.times_silent) == (1, MAX)


def test_job_abandoned_too_often_is_failed_and_not_claimed(database: Database, add_job: AddJob) -> None:
    job_id = add_job(times_silent=queue.SILENCES_PER_ATTEMPT * MAX - 2)
    for _ in range(2):
        assert claim(database) is not None
        let_lease_run_out(database, job_id)
    assert claim(database) is None
    closed = do(database, queue.close_abandoned, MAX)
    assert [job.id for job in closed] == [job_id]
    row = read_job(database, job_id)
    assert row.state == JobState.FAILED
    assert row.error is not None
    assert "15 times" in row.error["detail"]
    assert "silent for longer than its lease" in row.error["detail"]


def test_abandoned_job_whose_cancellation_was_asked_for_is_cancelled(
    database: Database, add_job: AddJob
) -> None:
    job_id = add_job()
    claim(database)
    do(database, queue.request_cancel, job_id)
    let_lease_run_out(database, job_id)
    assert claim(database) is None
    do(database, queue.close_abandoned, MAX)
    assert read_job(database, job_id).state == JobState.CANCELLED


def test_cancel_ends_a_job_at_once_whose_lease_is_over(database: Database, add_job: AddJob) -> None:
    job_id = add_job()
    claim(database)
    let_lease_run_out(database, job_id)
    assert do(database, queue.request_cancel, job_id) == JobState.CANCELLED
    row = read_job(database, job_id)
    assert (row.cancel_requested, row.lease_expires_at) == (True, None)
    assert row.finished_at is not None


def test_busy_workers_end_jobs_alone_that_were_to_be_cancelled_when_their_workers_died(
    database: Database, add_job: AddJob
) -> None:
    died, asked, both = (add_job(parallel=True) for _ in range(3))
    for _ in range(3):
        claim(database)
    for job_id in (asked, both):
        do(database, queue.request_cancel, job_id)
    for job_id in (died, both):
        let_lease_run_out(database, job_id)
    end_cancelled(database)
    states = [read_job(database, job_id).state for job_id in (died, asked, both)]
    assert states == [JobState.RUNNING, JobState.RUNNING, JobState.CANCELLED]


def test_a_job_whose_lease_is_over_is_counted_as_queued(database: Database, add_job: AddJob) -> None:
    job_id = add_job()
    claim(database)
    with database.read() as session:
        before = queue.count_by_state(session)
    let_lease_run_out(database, job_id)
    with database.read() as session:
        after = queue.count_by_state(session)
    assert (before[JobState.RUNNING], before[JobState.QUEUED]) == (1, 0)
    assert (after[JobState.RUNNING], after[JobState.QUEUED]) == (0, 1)


def test_close_abandoned_leaves_jobs_alone_that_may_run_again(database: Database, add_job: AddJob) -> None:
    add_job()
    job_id = add_job(state=JobState.RUNNING, attempt=1, lease_expires_at=1.0)
    assert do(database, queue.close_abandoned, MAX) == []
    assert read_job(database, job_id).state == JobState.RUNNING


def test_cancel_of_waiting_final_and_unknown_jobs(database: Database, add_job: AddJob) -> None:
    waiting, failed = add_job(), add_job(state=JobState.FAILED)
    assert do(database, queue.request_cancel, waiting) == JobState.CANCELLED
    assert do(database, queue.request_cancel, failed) == JobState.FAILED
    assert do(database, queue.request_cancel, "job_unknown") is None
    assert claim(database) is None


def test_400_jobs_are_claimed_exactly_once(
    settings: Settings, database: Database, add_job: AddJob, tmp_path: Path
) -> None:
    ids = sorted(add_job(parallel=True) for _ in range(400))
    (tmp_path / "claimed").mkdir()
    run_together(claim_all, 4, tmp_path / "claimed", environment=settings.environment())
    claimed = [file.read_text().split() for file in (tmp_path / "claimed").iterdir()]
    assert sorted(job for part in claimed for job in part) == ids
    assert sum(1 for part in claimed if part) > 1, "only one process claimed: nothing ran side by side"
