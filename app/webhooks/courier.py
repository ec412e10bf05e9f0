"""Send the deliveries that are due, from a worker, until their receivers have taken them.

A delivery is claimed with a lease, and sent at least once: if a process dies between the answer and the note
of it, another sends it again, with the same ``webhook-id``.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from sqlalchemy.exc import DBAPIError

from app.access.keys import KeyHash, secret_of
from app.persistence.base import utc_now
from app.persistence.database import Database, DatabaseNow
from app.persistence.models import DeliveryState, Webhook, WebhookDelivery
from app.persistence.outbox import TEST
from app.settings import Settings
from app.version import VERSION
from app.webhooks import repository, sending
from app.webhooks.repository import Claimed
from app.webhooks.signing import secret_of_webhook, signature

logger = logging.getLogger(__name__)

RETRY_SECONDS = (5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)
"""Pauses after each failure, those of the standard: ten times within 76 hours."""
JITTER = 0.2
MAX_RETRY_SECONDS = 86_400.0
AT_ONCE = 40
"""Deliveries that a worker sends at a time: twice as many as a workspace may have webhooks."""
LEASE_SECONDS = 120.0
"""More than a request takes, with its name to be resolved."""
KEPT = timedelta(days=30)
FORGET_SECONDS = 3600.0
LOGGED = 20
"""Attempts that a delivery remembers, the newest."""
GONE = 410


class Courier:
    """Sends deliveries, each in a thread of its own, so that one slow receiver holds up no other.

    Nor does a workspace hold up others: of what is sent at a time, it never has more than what is left free.
    ``post`` sends a request; tests give another.
    """

    def __init__(
        self, settings: Settings, database: Database, post: Callable[..., sending.Answer] = sending.post
    ) -> None:
        self._database = database
        self._service = KeyHash(secret_of(settings))
        self._private = settings.webhook_private_addresses
        self._post = post
        self._under_way: dict[threading.Thread, str] = {}  # each with its workspace
        self._forget_at = time.monotonic()

    def send_due(self) -> None:
        """Begin to send what is due, and return."""
        self._forget_old()
        self._under_way = {thread: owner for thread, owner in self._under_way.items() if thread.is_alive()}
        taken = Counter(self._under_way.values())
        with self._database.read() as session:
            if taken.total() >= AT_ONCE or not repository.is_due(session, _served(taken)):
                return
        claims = []
        with self._database.write() as session:
            while taken.total() < AT_ONCE:
                claimed = repository.claim(session, LEASE_SECONDS, _served(taken))
                if claimed is None:
                    break
                claims.append(claimed)
                taken[claimed.workspace] += 1
        for claimed in claims:
            thread = threading.Thread(target=self._deliver, args=(claimed,), name="courier", daemon=True)
            thread.start()
            self._under_way[thread] = claimed.workspace

    def wait(self, seconds: float) -> None:
        """Wait for what is under way; what is not done by then is sent again after its lease."""
        deadline = time.monotonic() + seconds
        for thread in self._under_way:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _deliver(self, claimed: Claimed) -> None:
        try:
            with self._database.read() as session:
                webhook = session.get(Webhook, claimed.webhook_id)
            if webhook is not None:
                self._record(claimed, *self._send(claimed, webhook))
        except DBAPIError as error:
            logger.warning("delivery %s: its outcome is not stored: %s", claimed.id, error.orig)
        except Exception:
            logger.exception("delivery %s met an unexpected error", claimed.id)

    def _send(self, claimed: Claimed, webhook: Webhook) -> tuple[dict[str, Any], float | None]:
        """Send it, and return what the log shall say, and the seconds that the receiver asks to wait."""
        body, timestamp, began = claimed.body.encode(), int(time.time()), time.monotonic()
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"ccmtl/{VERSION}",
            "webhook-id": claimed.event_id,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": " ".join(
                signature(secret, claimed.event_id, timestamp, body) for secret in self._secrets(webhook)
            ),
        }
        entry: dict[str, Any] = {"at": utc_now().isoformat(), "status": None, "error": None}
        retry_after = None
        try:
            entry["status"], retry_after = self._post(webhook.url, headers, body, private=self._private)
        except sending.NotSent as error:
            entry["error"] = str(error)
        entry["seconds"] = round(time.monotonic() - began, 3)
        return entry, retry_after

    def _secrets(self, webhook: Webhook) -> list[str]:
        numbers = [webhook.secret_number]
        if webhook.previous_secret_until is not None and webhook.previous_secret_until > utc_now():
            numbers.append(webhook.secret_number - 1)
        return [secret_of_webhook(self._service, webhook.id, number) for number in numbers]

    def _record(self, claimed: Claimed, entry: dict[str, Any], retry_after: float | None) -> None:
        with self._database.write() as session:
            found = repository.locked(session, claimed)
            if found is None:  # deleted, or sent by another since our lease ran out
                return
            webhook, delivery = found
            delivery.lease_expires_at = None
            delivery.log = [*delivery.log, entry][-LOGGED:]
            status = entry["status"]
            if status is not None and 200 <= status < 300:
                delivery.state, webhook.last_delivered_at = DeliveryState.DELIVERED, utc_now()
            else:
                _note_failure(webhook, delivery, status, retry_after)
            state = delivery.state
        outcome = entry["error"] or f"answered {status}"
        logger.info("delivery %s attempt %d: %s; it is %s", claimed.id, claimed.attempt, outcome, state)

    def _forget_old(self) -> None:
        if time.monotonic() >= self._forget_at:
            self._forget_at = time.monotonic() + FORGET_SECONDS
            with self._database.write() as session:
                repository.forget_before(session, utc_now() - KEPT)


def _served(taken: Counter[str]) -> list[str]:
    """Return the workspaces that get no further place now, as they have no fewer than are free."""
    free = AT_ONCE - taken.total()
    return [workspace for workspace, n in taken.items() if n >= free]


def pause_after(retries: int, retry_after: float | None) -> float | None:
    """Return the seconds before the next attempt after so many retries that failed; None after the last."""
    if retries >= len(RETRY_SECONDS):
        return None
    planned = RETRY_SECONDS[retries] * random.uniform(1 - JITTER, 1 + JITTER)
    return max(planned, min(retry_after or 0.0, MAX_RETRY_SECONDS))


def _note_failure(
    webhook: Webhook, delivery: WebhookDelivery, status: int | None, retry_after: float | None
) -> None:
    pause = pause_after(delivery.retries, retry_after)
    if delivery.event == TEST:
        delivery.state = DeliveryState.FAILED
    elif status == GONE:
        delivery.state = DeliveryState.FAILED
        _disable(webhook, "The receiver answered 410 Gone.")
    elif pause is None:
        delivery.state = DeliveryState.FAILED
        arrived = webhook.last_delivered_at
        if arrived is None or arrived < delivery.created_at:
            _disable(webhook, f"Nothing arrived in {len(RETRY_SECONDS) + 1} attempts over three days.")
    else:
        delivery.retries += 1
        delivery.due_at = DatabaseNow() + pause


def _disable(webhook: Webhook, reason: str) -> None:
    webhook.enabled, webhook.disabled_because = False, reason
    logger.warning(
        "the webhook %s of the workspace %s is disabled: %s", webhook.name, webhook.workspace, reason
    )
