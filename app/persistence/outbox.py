"""Events for webhooks: written in the transaction that makes them true, so that none is lost or made up."""

from __future__ import annotations

import json
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.persistence.base import new_id, utc_now
from app.persistence.database import DatabaseNow
from app.persistence.models import Webhook, WebhookDelivery


class Event(StrEnum):
    """What webhooks are told of."""

    JOB_SUCCEEDED = "job.succeeded"
    JOB_FAILED = "job.failed"
    JOB_CANCELLED = "job.cancelled"
    VERSION_PUBLISHED = "version.published"
    SCHEDULE_FAILED = "schedule.failed"


TEST = "webhook.test"
"""An event that is sent when a user asks for it, and to one webhook alone."""


def announce(
    session: Session, workspace: str, event: Event, data: dict[str, Any], moment: datetime | None = None
) -> None:
    """Write an event for each enabled webhook of the workspace that wants it; sent once this is committed.

    Parameters
    ----------
    session
        A session that writes; the event happens with its transaction, or not at all.
    workspace
        Whose event it is.
    event
        What happened.
    data
        What is told of it: names, ids and little else.
    moment
        When it happened; now by default.
    """
    wanted = select(Webhook).where(Webhook.workspace == workspace, Webhook.enabled)
    # Whoever deletes one meanwhile waits for this transaction, instead of making it fail.
    webhooks = session.scalars(wanted.with_for_update(read=True, key_share=True))
    _add(session, [webhook for webhook in webhooks if event in webhook.events], event, data, moment)


def announce_test(session: Session, webhook: Webhook) -> WebhookDelivery:
    """Write an event that tells nothing, for one webhook, and return its delivery."""
    return _add(session, [webhook], TEST, {"webhook": webhook.name}, None)[0]


def _add(
    session: Session, webhooks: list[Webhook], event: str, data: dict[str, Any], moment: datetime | None
) -> list[WebhookDelivery]:
    timestamp = (moment or utc_now()).isoformat().replace("+00:00", "Z")
    body = json.dumps({"type": str(event), "timestamp": timestamp, "data": data}, separators=(",", ":"))
    event_id = new_id("evt")
    added = [
        WebhookDelivery(webhook_id=w.id, event_id=event_id, event=str(event), body=body, due_at=DatabaseNow())
        for w in webhooks
    ]
    session.add_all(added)
    return added
