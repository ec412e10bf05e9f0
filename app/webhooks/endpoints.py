"""Endpoints of webhooks and of what was sent to them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Response
from sqlalchemy.exc import IntegrityError

from app.access.keys import KeyHash
from app.http.access import Scope, requires
from app.http.dependencies import DatabaseDep, SettingsDep, from_state, read_form
from app.http.errors import refusals
from app.http.names import NAME, NO_NUL
from app.http.parameters import JobCursor, Limit, NameCursor
from app.http.request_body import BODY_REFUSALS, SwitchForm, checked_form, documented_body
from app.persistence.models import DeliveryState
from app.webhooks import service
from app.webhooks.schemas import DeliveryDetail, DeliveryPage, WebhookDetail, WebhookForm, WebhookPage

router = APIRouter(prefix="/v1/webhooks", tags=["webhooks"], dependencies=[requires(Scope.ADMIN)])

KeyHashDep = Annotated[KeyHash, from_state("key_hash")]
NewName = Annotated[str, Path(pattern=NAME, description="The webhook's name, of your choice.")]
WebhookName = Annotated[str, Path(max_length=200, pattern=NO_NUL, description="The webhook's name.")]
DeliveryId = Annotated[str, Path(max_length=200, pattern=NO_NUL, description="The delivery's id.")]

UNKNOWN = refusals({404: "No such webhook or delivery; near matches of names are suggested."})
SWITCH_REFUSALS = BODY_REFUSALS | refusals({422: "The request has faults; each is listed."})
DISABLED = refusals({409: "The webhook is disabled."})
PUT_ANSWERS: dict[int | str, dict[str, Any]] = {
    201: {"model": WebhookDetail, "description": "It was made; this answer alone shows its secret."},
    **BODY_REFUSALS,
    **refusals({409: "There are as many as may be.", 422: "The request has faults; each is listed."}),
}
EXAMPLES: dict[str, Any] = {
    "Failures and new versions": {
        "url": "https://shop.example/hooks",
        "events": ["job.failed", "version.published"],
    }
}


def _form(body: Annotated[bytes, Depends(read_form)]) -> WebhookForm:
    return checked_form(WebhookForm, body)


@router.put(
    "/{webhook}", responses=PUT_ANSWERS, openapi_extra=documented_body(WebhookForm, examples=EXAMPLES)
)
def put_webhook(
    webhook: NewName,
    form: Annotated[WebhookForm, Depends(_form)],
    database: DatabaseDep,
    key_hash: KeyHashDep,
    settings: SettingsDep,
    response: Response,
) -> WebhookDetail:
    """Make a webhook (201), or change the one of this name (200) and enable it, if it is to be.

    Its secret is shown when it is made, and not when it is changed.
    """
    private = settings.webhook_private_addresses
    try:
        with database.write() as session:
            put = service.put(session, webhook, form, key_hash, private=private)
    except IntegrityError:  # made by another request meanwhile
        with database.write() as session:
            put = service.put(session, webhook, form, key_hash, private=private)
    if put.secret is not None:
        response.status_code = 201
        response.headers["Location"] = f"/v1/webhooks/{webhook}"
        response.headers["Cache-Control"] = "no-store"
    return put


@router.patch(
    "/{webhook}",
    responses=UNKNOWN | SWITCH_REFUSALS,
    openapi_extra=documented_body(SwitchForm, examples={"Pause it": {"enabled": False}}),
)
def switch_webhook(
    webhook: WebhookName, body: Annotated[bytes, Depends(read_form)], database: DatabaseDep
) -> WebhookDetail:
    """Let a webhook rest, or send again; what happens meanwhile is not kept."""
    form = checked_form(SwitchForm, body)
    with database.write() as session:
        return service.switch(session, webhook, enabled=form.enabled)


@router.get("")
def list_webhooks(database: DatabaseDep, limit: Limit = 50, cursor: NameCursor = None) -> WebhookPage:
    """List the webhooks by name."""
    with database.read() as session:
        return service.list_webhooks(session, limit, cursor)


@router.get("/{webhook}", responses=UNKNOWN)
def read_webhook(webhook: WebhookName, database: DatabaseDep) -> WebhookDetail:
    """Read where a webhook sends what, and whether it works."""
    with database.read() as session:
        return service.read(session, webhook)


@router.delete("/{webhook}", status_code=204, responses=UNKNOWN)
def delete_webhook(webhook: WebhookName, database: DatabaseDep) -> None:
    """Delete a webhook with its deliveries, also those that have not arrived."""
    with database.write() as session:
        service.remove(session, webhook)


@router.post("/{webhook}/rotate-secret", responses=UNKNOWN)
def rotate_webhook_secret(
    webhook: WebhookName, database: DatabaseDep, key_hash: KeyHashDep, response: Response
) -> WebhookDetail:
    """Make a new secret and show it; for a day each delivery is signed with the one before too."""
    with database.write() as session:
        rotated = service.rotate_secret(session, webhook, key_hash)
    response.headers["Cache-Control"] = "no-store"
    return rotated


@router.post("/{webhook}/test", status_code=202, responses=UNKNOWN | DISABLED)
def test_webhook(webhook: WebhookName, database: DatabaseDep) -> DeliveryDetail:
    """Send the event `webhook.test`, once; its delivery tells what became of it.

    A test that fails is not sent again by itself, and disables nothing, also where the answer to it is 410.
    """
    with database.write() as session:
        return service.send_test(session, webhook)


@router.get("/{webhook}/deliveries", responses=UNKNOWN)
def list_webhook_deliveries(
    webhook: WebhookName,
    database: DatabaseDep,
    limit: Limit = 50,
    cursor: JobCursor = None,
    state: Annotated[DeliveryState | None, Query(description="Only deliveries in this state.")] = None,
) -> DeliveryPage:
    """List the deliveries of the last month, newest first."""
    with database.read() as session:
        return service.list_deliveries(session, webhook, limit, cursor, state)


@router.get("/{webhook}/deliveries/{delivery_id}", responses=UNKNOWN)
def read_webhook_delivery(
    webhook: WebhookName, delivery_id: DeliveryId, database: DatabaseDep
) -> DeliveryDetail:
    """Read what was sent, and what became of each attempt."""
    with database.read() as session:
        return service.read_delivery(session, webhook, delivery_id)


@router.post("/{webhook}/deliveries/{delivery_id}/redeliver", status_code=202, responses=UNKNOWN | DISABLED)
def redeliver_webhook_delivery(
    webhook: WebhookName, delivery_id: DeliveryId, database: DatabaseDep
) -> DeliveryDetail:
    """Send it again, whether it failed, arrived or waits; with the same `webhook-id`, and retries anew."""
    with database.write() as session:
        return service.redeliver(session, webhook, delivery_id)
