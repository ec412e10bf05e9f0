"""What the API takes and answers about keys."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field

from app.http.access import Scope
from app.http.names import NAME
from app.http.parameters import Page
from app.persistence.base import utc_now

MAX_REQUESTS_PER_MINUTE = 10_000_000


def _future(moment: datetime) -> datetime:
    if moment <= utc_now():
        raise ValueError("must be in the future")
    return moment


class KeyForm(BaseModel):
    """A key to be made."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=NAME, description="Whom or what the key is for.", examples=["tills"])
    scopes: frozenset[Scope] = Field(
        min_length=1,
        description="What it allows: `data` for datasets; `train` for training jobs and schedules, and to "
        "change and delete models; `predict` to read models, predict and forecast; `admin` for keys and "
        "webhooks.",
        examples=[["predict"]],
    )
    expires_at: Annotated[AwareDatetime, AfterValidator(_future)] | None = Field(
        None, description="When it ends, with a time zone; null: never."
    )
    requests_per_minute: int | None = Field(
        None,
        ge=1,
        le=MAX_REQUESTS_PER_MINUTE,
        description="Requests that each API process answers it in a minute; null: the service's default.",
    )


class KeyDetail(BaseModel):
    """A key as it is stored, without its secret part."""

    id: str = Field(description="Stands in the key, after `ccmtl_`.")
    workspace: str = Field(description="What it shows and changes; the things of others do not exist for it.")
    name: str
    scopes: list[Scope]
    requests_per_minute: int | None
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None = Field(description="Stored once a minute.")


class NewKeyDetail(KeyDetail):
    """A key that was just made."""

    key: str = Field(description="All of it. It is shown this once: only its keyed hash is stored.")


class KeyPage(Page[KeyDetail]):
    """A page of keys, by their ids."""
