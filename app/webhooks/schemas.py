"""What the API takes and answers about webhooks."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, HttpUrl, StrictBool, ValidationError

from app.http.parameters import Page
from app.persistence.models import DeliveryState
from app.persistence.outbox import Event


def _url(text: str) -> str:
    """Return the URL as it is sent to, with what stands for itself percent-encoded."""
    try:
        url = HttpUrl(text)
    except ValidationError:
        raise ValueError("must be an address such as https://shop.example/hooks") from None
    if url.username is not None or url.password is not None:
        raise ValueError("must hold no user name and no password: what is sent is signed instead")
    if url.fragment is not None:
        raise ValueError("must hold no '#'")
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
