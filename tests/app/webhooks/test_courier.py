"""What ends a job or publishes a version is told to the webhooks of its workspace until they have it."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from multiprocessing import get_context
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from app.jobs import queue
from app.persistence.base import utc_now
from app.persistence.database import Database
from app.persistence.models import DeliveryState, Webhook, WebhookDelivery
from app.persistence.outbox import announce_test
from app.settings import Settings
from app.webhooks import courier as couriers
from app.webhooks import repository
from app.webhooks.courier import JITTER, RETRY_SECONDS, Courier, pause_after
from app.webhooks.sending import Answer
from tests.app.jobs.conftest import add_job, dataset_version_id
from tests.app.webhooks.conftest import Deliver, PutWebhook, let_time_pass
from tests.support.access import key_header
from tests.support.database_kinds import quickly_on
from tests.support.models import add_version, trained
from tests.support.processes import PATIENCE, wait_until
from tests.support.receiver import published_recipe, receiving

AddJob = Callable[..., str]
__all__ = ["add_job", "dataset_version_id"]

DELIVERIES = "/v1/webhooks/planning/deliveries"


def fail(session: Session, job_id: str) -> None:
    queue.fail(session, job_id, 1, "no_data", "Müll")


def give_up(session: Session, job_id: str) -> None:
    queue.lose_run(session, job_id, 1, "it died", 1)


def cancel_while_it_stops(session: Session, job_id: str) -> None:
    queue.request_cancel(session, job_id)
    queue.give_back(session, job_id, 1)


ENDS: dict[str, tuple[Callable[[Session, str], object], str]] = {
    "finish": (lambda session, job: queue.finish(session, job, 1, "mv_1"), "job.succeeded"),
    "fail": (fail, "job.failed"),
    "lose_run": (give_up, "job.failed"),
    "mark_cancelled": (lambda session, job: queue.mark_cancelled(session, job, 1), "job.cancelled"),
    "give_back": (cancel_while_it_stops, "job.cancelled"),
}


def claim(database: Database) -> None:
    with database.write() as session:
        assert queue.claim(session, "worker", 60.0, 3) is not None


def end(database: Database, add_job: AddJob, how: str = "fail") -> str:
    """Run a job to an end; returns its id."""
    job_id = add_job(model_name="shop")
    claim(database)
    with database.write() as session:
        ENDS[how][0](session, job_id)
    return job_id


def deliveries(database: Database) -> list[WebhookDelivery]:
    with database.read() as session:
        return list(session.scalars(select(WebhookDelivery).order_by(WebhookDelivery.created_at)))


@pytest.mark.parametrize("how", ENDS)
@quickly_on("sqlite")
def test_every_end_of_a_job_is_told_signed(
    database: Database, add_job: AddJob, put_webhook: PutWebhook, deliver: Deliver, how: str
) -> None:
    with receiving(200) as receiver:
        secret = put_webhook(receiver.url)
        job_id = end(database, add_job, how)
        deliver()
        ((_, headers, body),) = receiver.requests
    assert published_recipe()(secret, headers, body)
    (event,) = receiver.events
    assert event["type"] == ENDS[how][1]
    assert (event["data"]["job"], event["data"]["model"]) == (job_id, "shop")
    assert (event["data"]["error"] is not None) == (ENDS[how][1] == "job.failed")


@quickly_on("sqlite")
def test_a_waiting_job_that_is_cancelled_and_one_that_is_abandoned_are_told(
    database: Database, add_job: AddJob, put_webhook: PutWebhook, deliver: Deliver
) -> None:
    with receiving(200) as receiver:
        put_webhook(receiver.url)
        job_id = add_job()
        with database.write() as session:
            queue.request_cancel(session, job_id)
        add_job()
        claim(database)
        with database.write() as session:
            session.execute(update(queue.TrainingJob).values(lease_expires_at=1.0))
            session.execute(update(queue.TrainingJob).values(times_silent=99))
            queue.close_abandoned(session, 3)
        for _ in range(2):
            deliver()
    assert [event["type"] for event in receiver.events] == ["job.cancelled", "job.failed"]


@quickly_on("sqlite")
def test_a_published_version_is_told_and_only_what_was_asked_for(
    database: Database, client: TestClient, put_webhook: PutWebhook, deliver: Deliver
) -> None:
    with receiving(200) as receiver, receiving(200) as other:
        put_webhook(receiver.url, events=["version.published"])
        put_webhook(other.url, "failures", ["job.failed"])
        assert add_version(database, trained([[1.0]], ["a"]), "shop") == 1
        deliver()
    (event,) = receiver.events
    newest = client.get("/v1/models/shop").json()["newest"]
    told = {"model": "shop", "version": 1, "id": newest["id"], "job": newest["training_job"]}
    assert event["data"] == told
    assert other.requests == []


def test_a_receiver_that_fails_twice_gets_the_same_event_until_it_accepts(
    database: Database, client: TestClient, add_job: AddJob, put_webhook: PutWebhook, deliver: Deliver
) -> None:
    with receiving(500, 302, 204) as receiver:
        secret = put_webhook(receiver.url)
        end(database, add_job)
        deliver()
        deliver()  # it is not due yet
        waiting = client.get(DELIVERIES).json()["items"][0]
        assert (waiting["state"], waiting["attempts"]) == ("pending", 1)
        assert waiting["next_attempt_at"] > waiting["log"][0]["at"]
        for _ in range(3):
            let_time_pass(database)
            deliver()
    assert len(receiver.requests) == 3
    assert len({headers["webhook-id"] for _, headers, _ in receiver.requests}) == 1
    assert len({body for _, _, body in receiver.requests}) == 1
    assert all(published_recipe()(secret, headers, body) for _, headers, body in receiver.requests)
    (arrived,) = client.get(DELIVERIES).json()["items"]
    assert (arrived["state"], arrived["next_attempt_at"]) == ("delivered", None)
    assert [attempt["status"] for attempt in arrived["log"]] == [500, 302, 204]
    assert arrived["body"] == receiver.events[0]
    assert client.get("/v1/webhooks/planning").json()["last_delivered_at"] is not None


@quickly_on("sqlite")
def test_after_the_last_retry_it_has_failed_and_the_webhook_is_disabled(
    database: Database, client: TestClient, add_job: AddJob, put_webhook: PutWebhook, deliver: Deliver
) -> None:
    with receiving(503) as receiver:
        put_webhook(receiver.url)
        end(database, add_job)
        with database.write() as session:
            session.execute(update(WebhookDelivery).values(retries=len(RETRY_SECONDS) - 1))
        for _ in range(3):
            deliver()
            let_time_pass(database)
        assert len(receiver.requests) == 2
        (failed,) = client.get(DELIVERIES, params={"state": "failed"}).json()["items"]
        webhook = client.get("/v1/webhooks/planning").json()
        assert (webhook["enabled"], "10 attempts" in webhook["disabled_because"]) == (False, True)
        refused = client.post(f"{DELIVERIES}/{failed['id']}/redeliver")
        assert (refused.status_code, refused.json()["code"]) == (409, "webhook_disabled")
        end(database, add_job)
        assert len(deliveries(database)) == 1, "what happens while it is disabled is not kept"
        receiver.answers = [200]
        again = {"url": receiver.url, "events": ["job.failed"]}
        assert client.put("/v1/webhooks/planning", json=again).json()["disabled_because"] is None
        sent = client.post(f"{DELIVERIES}/{failed['id']}/redeliver")
        assert (sent.status_code, sent.json()["state"]) == (202, "pending")
        deliver()
    assert client.get(f"{DELIVERIES}/{failed['id']}").json()["state"] == "delivered"


@quickly_on("sqlite")
def test_one_event_that_is_never_taken_does_not_disable_a_webhook_that_takes_others(
    database: Database, client: TestClient, add_job: AddJob, put_webhook: PutWebhook, deliver: Deliver
) -> None:
    with receiving(500) as receiver:
        put_webhook(receiver.url)
        end(database, add_job)
        with database.write() as session:
            session.execute(update(WebhookDelivery).values(retries=len(RETRY_SECONDS)))
            session.execute(update(Webhook).values(last_delivered_at=utc_now()))
        deliver()
    assert [row.state for row in deliveries(database)] == [DeliveryState.FAILED]
    assert client.get("/v1/webhooks/planning").json()["enabled"]


@quickly_on("sqlite")
def test_a_receiver_that_is_gone_is_not_asked_again(
    database: Database, client: TestClient, add_job: AddJob, put_webhook: PutWebhook, deliver: Deliver
) -> None:
    with receiving(410) as receiver:
        put_webhook(receiver.url)
        end(database, add_job)
        deliver()
        let_time_pass(database)
        deliver()
    assert len(receiver.requests) == 1
    webhook = client.get("/v1/webhooks/planning").json()
    assert (webhook["enabled"], "410" in webhook["disabled_because"]) == (False, True)


def _fail_and_die(settings: Settings, job_id: str, attempt: int) -> None:
    with Database(settings).write() as session:
        queue.fail(session, job_id, attempt, "code", "detail")
        session.flush()
        if attempt == 1:
            os.kill(os.getpid(), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_what_a_killed_process_did_not_commit_is_not_told_and_what_it_did_is(
    database: Database, settings: Settings, add_job: AddJob, put_webhook: PutWebhook, deliver: Deliver
) -> None:
    """It is killed between the end of the job and the delivery, once before and once after its commit."""
    with receiving(200) as receiver:
        put_webhook(receiver.url)
        job_id = add_job()
        for attempt in (1, 2):
            claim(database)
            arguments = (settings, job_id, attempt)
            process = get_context("forkserver").Process(target=_fail_and_die, args=arguments)
            process.start()
            process.join()
            assert process.exitcode == -signal.SIGKILL
            with database.read() as session:
                state = session.get_one(queue.TrainingJob, job_id).state
            assert (state, len(deliveries(database))) == (("running", 0), ("failed", 1))[attempt - 1]
            with database.write() as session:
                session.execute(update(queue.TrainingJob).values(lease_expires_at=1.0))
        deliver()
    (event,) = receiver.events
    assert event["data"]["attempt"] == 2


@quickly_on("postgresql")
def test_a_claim_is_one_processs_until_its_lease_runs_out(
    database: Database, add_job: AddJob, put_webhook: PutWebhook, deliver: Deliver
) -> None:
    with receiving(200) as receiver:
        put_webhook(receiver.url)
        end(database, add_job)
        end(database, add_job)
        with database.write() as session:
            first = repository.claim(session, 60.0)
            assert first is not None
            assert repository.claim(session, 60.0) is None, "one at a time goes to one webhook"
        deliver()
        assert receiver.requests == []
        let_time_pass(database)  # the process has died
        deliver()
        deliver()
        assert len(receiver.requests) == 2
        with database.write() as session:
            assert repository.locked(session, first) is None, "a late outcome changes nothing"
    assert [row.attempts for row in deliveries(database)] == [2, 1]


@quickly_on("postgresql")
def test_two_couriers_send_an_event_once(
    database: Database, settings: Settings, add_job: AddJob, put_webhook: PutWebhook
) -> None:
    with receiving(200) as receiver:
        put_webhook(receiver.url)
        end(database, add_job)
        couriers = [Courier(settings, database) for _ in range(2)]
        for courier in couriers:
            courier.send_due()
        for courier in couriers:
            courier.wait(PATIENCE)
    assert len(receiver.requests) == 1


@quickly_on("sqlite")
def test_a_slow_receiver_holds_up_no_other(
    database: Database, settings: Settings, add_job: AddJob, put_webhook: PutWebhook
) -> None:
    def never(handler: Any) -> None:
        wait_until(lambda: quick.requests, "the delivery to the other")

    with receiving(never) as slow, receiving(200) as quick:
        put_webhook(slow.url)
        end(database, add_job)
        courier = Courier(settings, database)
        courier.send_due()
        wait_until(lambda: slow.requests, "the delivery to the slow one")
        put_webhook(quick.url, "quick")
        end(database, add_job)
        courier.send_due()
        wait_until(lambda: quick.requests, "the delivery to the quick one")
        courier.wait(PATIENCE)


@quickly_on("sqlite")
def test_a_workspace_with_many_slow_receivers_holds_up_no_other(
    database: Database, settings: Settings, add_job: AddJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(couriers, "AT_ONCE", 6)
    under_way: list[str] = []
    may_go_on = threading.Event()

    def post(url: str, *request: Any, **options: Any) -> Answer:
        under_way.append(url)
        may_go_on.wait(PATIENCE)
        return Answer(200, None)

    sender = Courier(settings, database, post)

    def send(workspace: str, n: int) -> None:
        with database.of(workspace).write() as session:
            for k in range(n):
                webhook = Webhook(name=f"w{k}", url=f"http://{workspace}", events=["job.failed"])
                session.add(webhook)
                session.flush()
                announce_test(session, webhook)
        sender.send_due()

    try:
        for workspace, n in (("slow", 5), ("slower", 5), ("quick", 1), ("late", 1)):
            send(workspace, n)
        wait_until(lambda: len(under_way) == 6, "the deliveries")
        assert Counter(under_way) == {"http://slow": 3, "http://slower": 2, "http://quick": 1}
    finally:
        may_go_on.set()
        sender.wait(PATIENCE)
    while len(under_way) < 12:
        sender.send_due()
        sender.wait(PATIENCE)
    assert Counter(under_way)["http://slow"] == 5


@quickly_on("sqlite")
def test_a_new_secret_signs_at_once_and_the_old_one_too_for_a_day(
    database: Database, client: TestClient, add_job: AddJob, put_webhook: PutWebhook, deliver: Deliver
) -> None:
    is_genuine = published_recipe()
    with receiving(200) as receiver:
        old = put_webhook(receiver.url)
        rotated = client.post("/v1/webhooks/planning/rotate-secret")
        assert rotated.headers["cache-control"] == "no-store"
        new = rotated.json()["secret"]
        end(database, add_job)
        deliver()
        with database.write() as session:
            session.execute(update(Webhook).values(previous_secret_until=utc_now() - timedelta(seconds=1)))
        end(database, add_job)
        deliver()
    (_, both, first), (_, alone, second) = receiver.requests
    assert is_genuine(old, both, first)
    assert is_genuine(new, both, first)
    assert not is_genuine(old, alone, second)
    assert is_genuine(new, alone, second)


@quickly_on("sqlite")
def test_events_of_a_workspace_go_to_its_webhooks_alone(
    api: FastAPI, client: TestClient, database: Database, add_job: AddJob, deliver: Deliver
) -> None:
    with receiving(200) as ours, receiving(200) as theirs:
        for receiver, workspace in ((ours, "default"), (theirs, "theirs")):
            key = key_header(api, workspace)
            form = {"url": receiver.url, "events": ["job.failed"]}
            assert client.put("/v1/webhooks/planning", json=form, headers=key).status_code == 201
        end(database, add_job)
        deliver()
    assert (len(ours.requests), len(theirs.requests)) == (1, 0)


@quickly_on("sqlite")
def test_a_test_is_sent_once_disables_nothing_and_tells_what_became_of_it(
    client: TestClient, database: Database, put_webhook: PutWebhook, deliver: Deliver
) -> None:
    with receiving(410) as receiver:
        put_webhook(receiver.url)
        sent = client.post("/v1/webhooks/planning/test")
        assert (sent.status_code, sent.json()["state"]) == (202, "pending")
        deliver()
    assert client.get("/v1/webhooks/planning").json()["enabled"]
    told = client.get(f"{DELIVERIES}/{sent.json()['id']}").json()
    assert (told["state"], told["log"][0]["status"], told["event"]) == ("failed", 410, "webhook.test")


@quickly_on("sqlite")
def test_deliveries_of_more_than_a_month_ago_are_forgotten(
    database: Database, settings: Settings, add_job: AddJob, put_webhook: PutWebhook
) -> None:
    put_webhook("http://127.0.0.1:9/")
    for _ in range(2):
        end(database, add_job)
    old, new = deliveries(database)
    with database.write() as session:
        aged = update(WebhookDelivery).where(WebhookDelivery.id == old.id)
        session.execute(aged.values(created_at=utc_now() - timedelta(days=31)))
        session.execute(update(Webhook).values(enabled=False))
    Courier(settings, database).send_due()
    assert [row.id for row in deliveries(database)] == [new.id]


def test_a_webhook_that_is_deleted_takes_its_deliveries_along(
    client: TestClient, database: Database, add_job: AddJob, put_webhook: PutWebhook, deliver: Deliver
) -> None:
    put_webhook("http://127.0.0.1:9/")
    end(database, add_job)
    assert client.delete("/v1/webhooks/planning").status_code == 204
    with database.read() as session:
        assert session.scalar(select(func.count(WebhookDelivery.id))) == 0
    deliver()


def test_pauses_are_those_of_the_standard_with_jitter_and_as_long_as_the_receiver_asks() -> None:
    for retries, seconds in enumerate(RETRY_SECONDS):
        drawn = [pause_after(retries, None) or 0.0 for _ in range(20)]
        assert all(abs(pause / seconds - 1) <= JITTER + 1e-9 for pause in drawn)
        assert len(set(drawn)) > 1
    assert sum(RETRY_SECONDS) < 76 * 3600
    assert pause_after(0, 600.0) == 600.0
    assert pause_after(0, 1e9) == 86_400
    assert pause_after(len(RETRY_SECONDS), 1.0) is None
