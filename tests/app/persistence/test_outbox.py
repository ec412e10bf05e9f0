"""An event is written with the transaction that makes it true, and never stands in its way."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import delete, func, select

from app.persistence.database import Database
from app.persistence.models import Webhook, WebhookDelivery
from app.persistence.outbox import Event, announce
from tests.support.database_kinds import quickly_on


@pytest.fixture(autouse=True)
def _webhook(database: Database) -> None:
    with database.write() as session:
        session.add(Webhook(name="planning", url="https://shop.example/", events=["job.failed"]))


def n_deliveries(database: Database) -> int:
    with database.read() as session:
        return session.scalar(select(func.count(WebhookDelivery.id))) or 0


@quickly_on("sqlite")
def test_what_is_rolled_back_is_not_told(database: Database) -> None:
    with database.read() as session:
        announce(session, "default", Event.JOB_FAILED, {})
        session.flush()
    assert n_deliveries(database) == 0


@quickly_on("sqlite")
def test_an_event_of_another_workspace_or_kind_is_not_told(database: Database) -> None:
    with database.write() as session:
        announce(session, "another", Event.JOB_FAILED, {})
        announce(session, "default", Event.JOB_SUCCEEDED, {})
    assert n_deliveries(database) == 0


@quickly_on("postgresql")
def test_a_webhook_that_is_deleted_meanwhile_does_not_make_the_end_of_a_job_fail(database: Database) -> None:
    def remove() -> None:
        with database.write() as session:
            session.execute(delete(Webhook))

    with ThreadPoolExecutor(1) as other:
        with database.write() as session:
            announce(session, "default", Event.JOB_FAILED, {})
            removed = other.submit(remove)
            with pytest.raises(TimeoutError):  # it waits
                removed.result(0.5)
            session.flush()
        removed.result(60)
    assert n_deliveries(database) == 0
