"""Endpoints of schedules."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Response

from app.http.access import Scope, requires
from app.http.dependencies import DatabaseDep, read_form
from app.http.errors import refusals
from app.http.names import NAME, NO_NUL
from app.http.parameters import Limit, NameCursor
from app.http.request_body import BODY_REFUSALS, SwitchForm, checked_form, documented_body, parse_json_object
from app.schedules import service
from app.schedules.schemas import ScheduleDetail, ScheduleForm, SchedulePage

router = APIRouter(prefix="/v1/schedules", tags=["schedules"], dependencies=[requires(Scope.TRAIN)])

NewName = Annotated[str, Path(pattern=NAME, description="The schedule's name, of your choice.")]
ScheduleName = Annotated[str, Path(max_length=200, pattern=NO_NUL, description="The schedule's name.")]

UNKNOWN = refusals({404: "No such schedule; near matches are suggested."})
PUT_ANSWERS: dict[int | str, dict[str, Any]] = {
    201: {"model": ScheduleDetail, "description": "It was made."},
    **BODY_REFUSALS,
    **refusals(
        {
            404: "No such dataset, or nothing was uploaded to it yet.",
            409: "There are as many as may be.",
            422: "The request has faults, or the training cannot work; each reason is listed.",
        }
    ),
}
SWITCH_REFUSALS = BODY_REFUSALS | refusals({422: "The request has faults; each is listed."})
EXAMPLES: dict[str, Any] = {
    "Each night": {
        "daily": "02:30",
        "time_zone": "Europe/Berlin",
        "training": {"dataset": "shop", "model": "shop", "horizon": 7},
    },
    "Each Monday at four, by the clocks of UTC": {
        "cron": "0 4 * * MON",
        "training": {"dataset": "shop", "model": "shop", "horizon": 7},
    },
}


@router.put(
    "/{schedule}", responses=PUT_ANSWERS, openapi_extra=documented_body(ScheduleForm, examples=EXAMPLES)
)
def put_schedule(
    schedule: NewName,
    body: Annotated[bytes, Depends(read_form)],
    database: DatabaseDep,
    response: Response,
) -> ScheduleDetail:
    """Make a schedule (201), or change the one of this name (200), unless its training cannot work."""
    put, is_new = service.put(database, schedule, parse_json_object(body))
    if is_new:
        response.status_code = 201
        response.headers["Location"] = f"/v1/schedules/{schedule}"
    return put


@router.patch(
    "/{schedule}",
    responses=UNKNOWN | SWITCH_REFUSALS,
    openapi_extra=documented_body(SwitchForm, examples={"Pause it": {"enabled": False}}),
)
def switch_schedule(
    schedule: ScheduleName, body: Annotated[bytes, Depends(read_form)], database: DatabaseDep
) -> ScheduleDetail:
    """Let a schedule rest, or go on from its next time; what came meanwhile is not made up for."""
    form = checked_form(SwitchForm, body)
    with database.write() as session:
        return service.switch(session, schedule, enabled=form.enabled)


@router.get("")
def list_schedules(database: DatabaseDep, limit: Limit = 50, cursor: NameCursor = None) -> SchedulePage:
    """List the schedules by name."""
    with database.read() as session:
        return service.list_schedules(session, limit, cursor)


@router.get("/{schedule}", responses=UNKNOWN)
def read_schedule(schedule: ScheduleName, database: DatabaseDep) -> ScheduleDetail:
    """Read what a schedule trains, when it does next, and what became of the last time."""
    with database.read() as session:
        return service.read(session, schedule)


@router.delete("/{schedule}", status_code=204, responses=UNKNOWN)
def delete_schedule(schedule: ScheduleName, database: DatabaseDep) -> None:
    """Delete a schedule; jobs that it has started go on."""
    with database.write() as session:
        service.remove(session, schedule)
