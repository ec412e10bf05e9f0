"""A time that has come has one job: however many workers see it, and however many times were missed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Barrier
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select, update

from app.jobs import queue
from app.persistence.database import Database
from app.persistence.models import Schedule, TrainingJob, WebhookDelivery
from app.schedules import starting
from app.schedules.starting import start_due
from tests.support.database_kinds import quickly_on
from tests.support.training import add_series, job, n_jobs, series_csv, upload

PATH = "/v1/schedules/nightly"
MOST = 10


@pytest.fixture(autouse=True)
def _nightly(client: TestClient) -> None:
    add_series(client)
    answer = client.put(PATH, json={"daily": "02:30", "training": job()})
    assert answer.status_code == 201, answer.text


def let_it_come(database: Database, ago: timedelta = timedelta(seconds=1)) -> datetime:
    """Let the schedule's next time have come; returns it."""
    tick = datetime.now(UTC) - ago
    with database.write() as session:
        session.execute(update(Schedule).values(next_run_at=tick))
    return tick


def end_all(database: Database) -> None:
    with database.write() as session:
        session.execute(update(TrainingJob).values(state="succeeded"))


def test_a_time_that_has_come_has_a_job_and_the_next_time_is_set(
    client: TestClient, database: Database
) -> None:
    start_due(database, MOST)
    assert n_jobs(database) == 0
    let_it_come(database, timedelta(days=9))  # seven or more times were missed
    start_due(database, MOST)
    start_due(database, MOST)
    (queued,) = client.get("/v1/training-jobs", params={"schedule": "nightly"}).json()["items"]
    assert (queued["schedule"], queued["state"], queued["request"]["model"]) == ("nightly", "queued", "m")
    shown = client.get(PATH).json()
    assert shown["last_run"]["job"] == queued["id"]
    assert datetime.fromisoformat(shown["next_run_at"]) > datetime.now(UTC)
    assert client.get("/v1/training-jobs", params={"schedule": "other"}).json()["items"] == []


@quickly_on("sqlite")
def test_each_run_takes_the_newest_version(client: TestClient, database: Database) -> None:
    versions = []
    for n_days in (12, 14):
        upload(client, "sales", series_csv("a", "b", n_days=n_days))
        let_it_come(database)
        start_due(database, MOST)
        versions.append(client.get("/v1/training-jobs?limit=1").json()["items"][0]["data"]["version"])
        end_all(database)
    assert versions == [2, 3]


def test_workers_that_see_a_time_together_queue_one_job(database: Database) -> None:
    let_it_come(database)
    n_workers = 4
    ready = Barrier(n_workers)

    def work(_: int) -> None:
        with database.read() as session:
            found = starting.repository.due(session, 1)
        ready.wait(60)
        for due in found:
            starting._start(database.of(due.workspace), due, MOST)

    with ThreadPoolExecutor(n_workers) as workers:
        list(workers.map(work, range(n_workers)))
    assert n_jobs(database) == 1


def test_a_time_cannot_have_two_jobs_even_if_it_comes_again(client: TestClient, database: Database) -> None:
    """As when the database's clock was put back."""
    tick = let_it_come(database)
    start_due(database, MOST)
    end_all(database)
    with database.write() as session:
        session.execute(update(Schedule).values(next_run_at=tick))
    start_due(database, MOST)
    assert n_jobs(database) == 1
    assert client.get(PATH).json()["last_run"]["error"]["code"] == "schedule_overtaken"


def refuse_by_deletion(client: TestClient, database: Database) -> None:
    assert client.delete("/v1/datasets/sales").status_code == 204


def refuse_by_data(client: TestClient, database: Database) -> None:
    upload(client, "sales", series_csv("a", n_days=2))


def refuse_by_an_earlier_run(client: TestClient, database: Database) -> None:
    let_it_come(database)
    start_due(database, MOST)
    with database.write() as session:
        assert queue.claim(session, "worker", 60.0, 3) is not None


def refuse_by_the_queue(client: TestClient, database: Database) -> None:
    for n in range(MOST):
        assert client.post("/v1/training-jobs", json=job(model=f"m{n}")).status_code == 202


@pytest.mark.parametrize(
    ("refuse", "code"),
    [
        (refuse_by_deletion, "dataset_not_found"),
        (refuse_by_data, "invalid_training_request"),
        (refuse_by_an_earlier_run, "earlier_run_unfinished"),
        (refuse_by_the_queue, "queue_full"),
    ],
)
@quickly_on("sqlite")
def test_a_time_without_a_job_says_why_and_is_told(
    client: TestClient, database: Database, refuse: Any, code: str
) -> None:
    hook = {"url": "https://shop.example/", "events": ["schedule.failed"]}
    assert client.put("/v1/webhooks/planning", json=hook).status_code == 201
    refuse(client, database)
    before = n_jobs(database)
    let_it_come(database)
    start_due(database, MOST)
    start_due(database, MOST)
    assert n_jobs(database) == before
    shown = client.get(PATH).json()
    assert (shown["last_run"]["job"], shown["last_run"]["error"]["code"]) == (None, code)
    assert datetime.fromisoformat(shown["next_run_at"]) > datetime.now(UTC)
    with database.read() as session:
        (delivery,) = session.scalars(select(WebhookDelivery))
    assert (delivery.event, code in delivery.body, '"nightly"' in delivery.body) == (
        "schedule.failed",
        True,
        True,
    )


@quickly_on("sqlite")
def test_what_is_disabled_or_deleted_does_not_start(client: TestClient, database: Database) -> None:
    client.put(PATH, json={"daily": "02:30", "training": job(), "enabled": False})
    let_it_come(database)
    start_due(database, MOST)
    assert n_jobs(database) == 0
    enabled = client.put(PATH, json={"daily": "02:30", "training": job()}).json()
    assert datetime.fromisoformat(enabled["next_run_at"]) > datetime.now(UTC), (
        "what was missed is not made up"
    )
    let_it_come(database)
    client.delete(PATH)
    start_due(database, MOST)
    assert n_jobs(database) == 0


@quickly_on("sqlite")
def test_a_change_of_the_training_alone_leaves_a_time_that_has_come(
    client: TestClient, database: Database
) -> None:
    let_it_come(database)
    client.put(PATH, json={"daily": "02:30", "training": job(model="other")})
    start_due(database, MOST)
    assert client.get("/v1/training-jobs").json()["items"][0]["request"]["model"] == "other"


@quickly_on("sqlite")
def test_a_zone_that_is_no_more_and_an_unexpected_error_stop_no_other_schedule(
    client: TestClient, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    form = {"daily": "02:30", "training": job(model="other")}
    assert client.put("/v1/schedules/other", json=form).status_code == 201
    with database.write() as session:
        gone = update(Schedule).where(Schedule.name == "nightly")
        session.execute(gone.values(time_zone="Gone/Zone"))
    let_it_come(database)
    checked = starting.training.checked

    def fail_once(of: Database, document: dict[str, Any]) -> Any:
        monkeypatch.setattr(starting.training, "checked", checked)
        raise RuntimeError("unexpected")

    monkeypatch.setattr(starting.training, "checked", fail_once)
    start_due(database, MOST)
    assert n_jobs(database) == 1
    start_due(database, MOST)
    assert n_jobs(database) == 2
    assert client.get(PATH).json()["next_run_at"] is None
