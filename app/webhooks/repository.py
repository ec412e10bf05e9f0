"""The SQL of webhooks and of what is sent to them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, and_, delete, func, or_, select, tuple_, update
from sqlalchemy.orm import Session, aliased

from app.persistence.database import DatabaseNow
from app.persistence.models import DeliveryState, Webhook, WebhookDelivery

_OTHER = aliased(WebhookDelivery)


@dataclass(frozen=True, slots=True)
class Claimed:
    """A delivery that one process sends, for the ``attempt``-th time."""

    id: str
    attempt: int
    event_id: str
    event: str
    body: str
    webhook_id: str
    workspace: str


def find_webhook(session: Session, name: str) -> Webhook | None:
    """Return the webhook of this name."""
    return session.scalars(select(Webhook).where(Webhook.name == name)).one_or_none()


def webhook_names(session: Session) -> Sequence[str]:
    """Return the names of all webhooks."""
    return session.scalars(select(Webhook.name)).all()


def list_webhooks(session: Session, limit: int, after: str | None) -> Sequence[Webhook]:
    """Return up to ``limit`` webhooks by name, those after the name ``after``."""
    query = select(Webhook).order_by(Webhook.name).limit(limit)
    if after is not None:
        query = query.where(Webhook.name > after)
    return session.scalars(query).all()


def find_delivery(session: Session, webhook_id: str, delivery_id: str) -> WebhookDelivery | None:
    """Return a delivery to this webhook."""
    query = select(WebhookDelivery).where(
        WebhookDelivery.webhook_id == webhook_id, WebhookDelivery.id == delivery_id
    )
    return session.scalars(query).one_or_none()


def list_deliveries(
    session: Session, webhook_id: str, limit: int, after_id: str | None, state: DeliveryState | None
) -> Sequence[WebhookDelivery]:
    """Return up to ``limit`` deliveries, newest first, those after the delivery ``after_id``."""
    place = tuple_(WebhookDelivery.created_at, WebhookDelivery.id)
    query = select(WebhookDelivery).where(WebhookDelivery.webhook_id == webhook_id).limit(limit)
    query = query.order_by(WebhookDelivery.created_at.desc(), WebhookDelivery.id.desc())
    if after_id is not None:
        last = select(_OTHER.created_at, _OTHER.id).where(_OTHER.id == after_id).subquery()
        query = query.join(last, place < tuple_(last.c.created_at, last.c.id))
    if state is not None:
        query = query.where(WebhookDelivery.state == state)
    return session.scalars(query).all()


def make_due(session: Session, delivery: WebhookDelivery) -> None:
    """Let a delivery be sent now, with all retries before it."""
    again = {"state": DeliveryState.PENDING, "retries": 0, "due_at": DatabaseNow()}
    session.execute(update(WebhookDelivery).where(WebhookDelivery.id == delivery.id).values(**again))
    session.refresh(delivery)


def is_due(session: Session, but_for: Collection[str] = ()) -> bool:
    """Whether a delivery could be claimed, without taking a lock."""
    return session.execute(select(WebhookDelivery.id).where(_ready(but_for)).limit(1)).first() is not None


def claim(session: Session, lease_seconds: float, but_for: Collection[str] = ()) -> Claimed | None:
    """Take the delivery that is due for longest, of no workspace in ``but_for``; None when there is none.

    To one webhook they go one after the other. If the lease runs out first, the next claim sends it again.
    """
    first = (
        select(WebhookDelivery.id)
        .where(_ready(but_for))
        .order_by(WebhookDelivery.due_at, WebhookDelivery.created_at)
        .limit(1)
        .with_for_update(skip_locked=True)
        .scalar_subquery()
    )
    statement = (
        update(WebhookDelivery)
        .where(WebhookDelivery.id == first)
        .values(attempts=WebhookDelivery.attempts + 1, lease_expires_at=DatabaseNow() + lease_seconds)
        .returning(WebhookDelivery)
    )
    options = {"synchronize_session": False, "populate_existing": True}
    row = session.scalars(statement, execution_options=options).one_or_none()
    if row is None:
        return None
    workspace = session.scalars(select(Webhook.workspace).where(Webhook.id == row.webhook_id)).one()
    return Claimed(row.id, row.attempts, row.event_id, row.event, row.body, row.webhook_id, workspace)


def locked(session: Session, claimed: Claimed) -> tuple[Webhook, WebhookDelivery] | None:
    """Return webhook and delivery, held until the transaction ends; None if the claim is no longer ours."""
    webhook = session.get(Webhook, claimed.webhook_id, with_for_update={"key_share": True})
    delivery = session.get(WebhookDelivery, claimed.id, with_for_update=True)
    if webhook is None or delivery is None or delivery.attempts != claimed.attempt:
        return None
    return webhook, delivery


def forget_before(session: Session, moment: datetime) -> None:
    """Delete deliveries of events before ``moment``."""
    session.execute(delete(WebhookDelivery).where(WebhookDelivery.created_at < moment))


def count(session: Session) -> int:
    """Return how many webhooks there are."""
    return session.scalar(select(func.count(Webhook.id))) or 0


def _ready(but_for: Collection[str]) -> ColumnElement[bool]:
    busy = (
        select(_OTHER.id)
        .where(_OTHER.webhook_id == WebhookDelivery.webhook_id, _OTHER.lease_expires_at > DatabaseNow())
        .correlate(WebhookDelivery)
        .exists()
    )
    enabled = select(Webhook.id).where(
        Webhook.id == WebhookDelivery.webhook_id, Webhook.enabled, Webhook.workspace.not_in(but_for)
    )
    lease = WebhookDelivery.lease_expires_at
    return and_(
        WebhookDelivery.state == DeliveryState.PENDING,
        WebhookDelivery.due_at <= DatabaseNow(),
        or_(lease.is_(None), lease <= DatabaseNow()),
        enabled.correlate(WebhookDelivery).exists(),
        ~busy,
    )
