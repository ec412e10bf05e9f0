"""Webhooks that lead to receivers in this process, and a courier that brings what is due."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import update

from app.persistence.database import Database
from app.persistence.models import WebhookDelivery
from app.settings import Settings
from app.webhooks.courier import Courier
from tests.support.processes import PATIENCE

ALL = ["job.succeeded", "job.failed", "job.cancelled", "version.published"]

PutWebhook = Callable[..., str]
Deliver = Callable[[], None]


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"webhook_private_addresses": True})


@pytest.fixture
def put_webhook(client: TestClient) -> PutWebhook:
    """Make a webhook; returns its secret."""

    def put(url: str, name: str = "planning", events: list[str] = ALL) -> str:
        answer = client.put(f"/v1/webhooks/{name}", json={"url": url, "events": events})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["secret"])

    return put


@pytest.fixture
def deliver(database: Database, settings: Settings) -> Deliver:
    """Send all that is due, and wait until the outcomes are stored."""
    courier = Courier(settings, database)

    def run() -> None:
        courier.send_due()
        courier.wait(PATIENCE)

    return run


def let_time_pass(database: Database) -> None:
    """Let all retries be due, and all leases run out."""
    with database.write() as session:
        session.execute(update(WebhookDelivery).values(due_at=1.0, lease_expires_at=None))
