"""Make, change and delete webhooks, and tell what was sent to them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from sqlalchemy.orm import Session

from app.access.keys import KeyHash
from app.http.errors import Conflict, Fault, InvalidContent, NotFound
from app.http.parameters import cursor_after, name_before
from app.persistence.base import utc_now
from app.persistence.models import DeliveryState, Webhook, WebhookDelivery
from app.persistence.outbox import announce_test
from app.webhooks import repository
from app.webhooks.schemas import DeliveryDetail, DeliveryPage, WebhookDetail, WebhookForm, WebhookPage
from app.webhooks.sending import fault_of_url
from app.webhooks.signing import secret_of_webhook

MOST = 20
"""Webhooks of a workspace."""
OVERLAP = timedelta(days=1)
"""How long the secret before the newest signs too."""


def put(session: Session, name: str, form: WebhookForm, key_hash: KeyHash, *, private: bool) -> WebhookDetail:
    """Make a webhook, whose secret the answer holds, or change the one of this name."""
    fault = fault_of_url(form.url, private=private)
    if fault is not None:
        faults = [Fault(code="address_refused", message=fault, location="body.url", value=form.url[:200])]
        raise InvalidContent("invalid_request", "The request has 1 fault; see `errors`.", errors=faults)
    webhook = repository.find_webhook(session, name)
    given = {"url": form.url, "events": sorted(form.events), "enabled": form.enabled}
    if webhook is not None:
        for field, value in given.items():
            setattr(webhook, field, value)
        webhook.disabled_because = None
        return _detail(webhook)
    if repository.count(session) >= MOST:
        raise Conflict("too_many_webhooks", f"There are {MOST} webhooks, the most that may be; delete one.")
    webhook = Webhook(name=name, secret_number=1, **given)
    session.add(webhook)
    session.flush()
    return _detail(webhook, key_hash)


def switch(session: Session, name: str, *, enabled: bool) -> WebhookDetail:
    """Enable or disable a webhook, and change nothing else of it."""
    webhook = _found(session, name)
    webhook.enabled, webhook.disabled_because = enabled, None
    return _detail(webhook)


def list_webhooks(session: Session, limit: int, cursor: str | None) -> WebhookPage:
    """Return one page of webhooks."""
    rows = repository.list_webhooks(session, limit + 1, name_before(cursor))
    return WebhookPage.of(list(map(_detail, rows)), limit, lambda webhook: cursor_after(webhook.name))


def read(session: Session, name: str) -> WebhookDetail:
    """Return the webhook of this name."""
    return _detail(_found(session, name))


def remove(session: Session, name: str) -> None:
    """Delete a webhook, and what was to be sent to it."""
    session.delete(_found(session, name))


def rotate_secret(session: Session, name: str, key_hash: KeyHash) -> WebhookDetail:
    """Give a webhook a new secret; for a day the one before signs too."""
    webhook = _found(session, name)
    webhook.secret_number += 1
    webhook.previous_secret_until = utc_now() + OVERLAP
    session.flush()
    return _detail(webhook, key_hash)


def send_test(session: Session, name: str) -> DeliveryDetail:
    """Let an event be sent that tells nothing."""
    delivery = announce_test(session, _enabled(session, name))
    session.flush()
    session.refresh(delivery)
    return _delivery(delivery)


def list_deliveries(
    session: Session, name: str, limit: int, cursor: str | None, state: DeliveryState | None
) -> DeliveryPage:
    """Return one page of what was sent to a webhook; refuse a cursor that is no delivery (any more)."""
    webhook = _found(session, name)
    if cursor is not None and repository.find_delivery(session, webhook.id, cursor) is None:
        message = "must be `next_cursor` of the page before; after a month begin anew"
        fault = Fault(message=message, location="query.cursor", value=cursor)
        raise InvalidContent("invalid_request", "The request has 1 fault; see `errors`.", errors=[fault])
    rows = repository.list_deliveries(session, webhook.id, limit + 1, cursor, state)
    return DeliveryPage.of(list(map(_delivery, rows)), limit, lambda delivery: delivery.id)


def read_delivery(session: Session, name: str, delivery_id: str) -> DeliveryDetail:
    """Return what became of one delivery."""
    return _delivery(_found_delivery(session, _found(session, name), delivery_id))


def redeliver(session: Session, name: str, delivery_id: str) -> DeliveryDetail:
    """Let a delivery be sent again, whatever became of it."""
    delivery = _found_delivery(session, _enabled(session, name), delivery_id)
    repository.make_due(session, delivery)
    return _delivery(delivery)


def _found(session: Session, name: str) -> Webhook:
    webhook = repository.find_webhook(session, name)
    if webhook is None:
        raise NotFound.named("webhook", name, repository.webhook_names(session))
    return webhook


def _enabled(session: Session, name: str) -> Webhook:
    webhook = _found(session, name)
    if not webhook.enabled:
        raise Conflict("webhook_disabled", f"The webhook {name!r} is disabled; enable it first, by PATCH.")
    return webhook


def _found_delivery(session: Session, webhook: Webhook, delivery_id: str) -> WebhookDelivery:
    delivery = repository.find_delivery(session, webhook.id, delivery_id)
    if delivery is None:
        raise NotFound("delivery_not_found", f"There is no delivery {delivery_id!r} to {webhook.name!r}.")
    return delivery


def _detail(webhook: Webhook, key_hash: KeyHash | None = None) -> WebhookDetail:
    """Return a webhook, with its secret where ``key_hash`` is given."""
    stored = WebhookDetail.model_fields.keys() - {"secret"}
    number = webhook.secret_number
    secret = None if key_hash is None else secret_of_webhook(key_hash, webhook.id, number)
    return WebhookDetail.model_validate({**{n: getattr(webhook, n) for n in stored}, "secret": secret})


def _delivery(row: WebhookDelivery) -> DeliveryDetail:
    stored = DeliveryDetail.model_fields.keys() - {"next_attempt_at", "body"}
    due = datetime.fromtimestamp(row.due_at, UTC) if row.state == DeliveryState.PENDING else None
    fields = {name: getattr(row, name) for name in stored}
    return DeliveryDetail.model_validate({**fields, "next_attempt_at": due, "body": json.loads(row.body)})
