"""What the API takes and answers about schedules."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool, WithJsonSchema, model_validator

from app.http.parameters import Page
from app.http.request_body import without_references
from app.persistence.base import utc_now
from app.schedules.ticks import fault_of_steps, fault_of_zone, next_tick
from app.training.schemas import JobError, TrainingJobRequest


def _cron(text: str) -> str:
    if next_tick(text, "UTC", utc_now()) is None:
        raise ValueError("is a time that never comes")
    fault = fault_of_steps(text)
    if fault is not None:
        raise ValueError(fault)
    return " ".join(text.split())


def _time_of_day(text: str) -> str:
    if not re.fullmatch("([01][0-9]|2[0-3]):[0-5][0-9]", text):
        raise ValueError("must be a time from 00:00 to 23:59, such as 02:30")
    return text


def _zone(name: str) -> str:
    fault = fault_of_zone(name)
    if fault is not None:
        raise ValueError(fault)
    return name


class ScheduleForm(BaseModel):
    """When to train what."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    daily: Annotated[str, AfterValidator(_time_of_day)] | None = Field(
        None, max_length=10, description="A time of each day; this or `cron` is needed.", examples=["02:30"]
    )
    cron: Annotated[str, AfterValidator(_cron)] | None = Field(
        None,
        max_length=100,
        description="Minute, hour, day, month and day of the week, as for cron.",
        examples=["30 2 * * *"],
    )
    time_zone: Annotated[str, AfterValidator(_zone)] = Field(
        "UTC", max_length=100, description="By whose clocks: an IANA name.", examples=["Europe/Berlin"]
    )
    enabled: StrictBool = Field(True, description="False: no time of it comes until it is enabled again.")
    training: Annotated[
        dict[str, Any], WithJsonSchema(without_references(TrainingJobRequest.model_json_schema()))
    ] = Field(
        description="A training request without `version`: each run takes the newest.",
        examples=[{"dataset": "shop", "model": "shop", "horizon": 7}],
    )

    @model_validator(mode="after")
    def _one_time(self) -> Self:
        if (self.daily is None) == (self.cron is None):
            raise ValueError("give one of `daily` and `cron`")
        return self

    @property
    def expression(self) -> str:
        """The cron expression, also of a time of each day."""
        if self.daily is None:
            return str(self.cron)
        hour, minute = map(int, self.daily.split(":"))
        return f"{minute} {hour} * * *"


class LastRun(BaseModel):
    """What became of the newest time that came."""

    tick: datetime = Field(description="The time; after the workers were away the first that was missed.")
    job: str | None = Field(description="Id of the job that was queued.")
    error: JobError | None = Field(description="Why none was.")


class ScheduleDetail(BaseModel):
    """A schedule as it is stored."""

    name: str
    cron: str
    time_zone: str
    enabled: bool
    next_run_at: datetime | None = Field(description="In UTC; null while it is disabled.")
    last_run: LastRun | None
    training: TrainingJobRequest
    created_at: datetime


class SchedulePage(Page[ScheduleDetail]):
    """A page of schedules, by name."""
