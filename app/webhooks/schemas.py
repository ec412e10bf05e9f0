"""What the API takes and answers about webhooks."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, HttpUrl, StrictBool, ValidationError

from app.http.parameters import Page
from app.persistence.models import DeliveryState
from app.persistence.outbox import Event

_BEGINNING = re.compile("https?://([^/?#]+)", re.IGNORECASE)
_PART_OF_NAME = re.compile("[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_LONGEST_NAME = 253


def _url(text: str) -> str:
    """Return the URL as it is sent to, with what is not ASCII encoded."""
    for place, letter in enumerate(text, 1):
        if letter in " \\" or not letter.isprintable():
            raise ValueError(f"must not hold {letter!a} (character {place}), except percent-encoded")
    beginning = _BEGINNING.match(text)
    try:
        url = HttpUrl(text)
    except ValidationError:
        beginning = None
    if beginning is None:
        raise ValueError("must be an address such as https://shop.example/hooks")
    if "@" in beginning[1]:
        raise ValueError("must hold no user name and no password: what is sent is signed instead")
    if "#" in text:
        raise ValueError("must hold no '#'")
    if url.port == 0:
        raise ValueError("must not name port 0, on which nothing can listen")
    host = url.host or ""
    is_name = len(host) <= _LONGEST_NAME and all(map(_PART_OF_NAME.fullmatch, host.split(".")))
    if not is_name and not host.startswith("["):
        raise ValueError(
            f"must name a host: {host[:100]!r} cannot be one; each part between dots has 1 to 63 letters, "
            f"digits, dashes and underscores, no dash first or last, and all have up to {_LONGEST_NAME}"
        )
    return str(url)


class WebhookForm(BaseModel):
    """Where to send which events."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: Annotated[str, AfterValidator(_url)] = Field(
        max_length=2000,
        description="Where to send them, by POST: an https address of the internet; of a private network, "
        "or with http, if the operator allows that.",
        examples=["https://shop.example/hooks"],
    )
    events: frozenset[Event] = Field(
        min_length=1, description="What to send.", examples=[["job.failed", "version.published"]]
    )
    enabled: StrictBool = Field(
        True, description="False: nothing is sent, and what happens meanwhile is not kept."
    )


class WebhookDetail(BaseModel):
    """A webhook as it is stored."""

    name: str
    url: str
    events: list[Event]
    enabled: bool
    disabled_because: str | None = Field(description="Why the service has disabled it; null if it has not.")
    secret: str | None = Field(
        description="What it is signed with, base64 after `whsec_`. It is shown when it is made, and null "
        "from then on."
    )
    previous_secret_until: datetime | None = Field(description="Until then the secret before signs too.")
    last_delivered_at: datetime | None
    created_at: datetime


class WebhookPage(Page[WebhookDetail]):
    """A page of webhooks, by name."""


class AttemptDetail(BaseModel):
    """One attempt to deliver."""

    at: datetime
    status: int | None = Field(description="Of the answer; null without one.")
    error: str | None = Field(description="Why there was no answer.")
    seconds: float


class DeliveryDetail(BaseModel):
    """An event on its way to a webhook."""

    id: str
    event_id: str = Field(description="What is sent as `webhook-id`; the same for each attempt and webhook.")
    event: str
    state: DeliveryState
    attempts: int
    next_attempt_at: datetime | None = Field(description="Null of one that has arrived or failed.")
    log: list[AttemptDetail] = Field(description="The newest attempts, the last of them at the end.")
    body: dict[str, Any] = Field(description="What is sent: `type`, `timestamp` and `data`.")
    created_at: datetime


class DeliveryPage(Page[DeliveryDetail]):
    """A page of deliveries, newest first."""
