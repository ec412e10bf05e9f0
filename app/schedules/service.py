"""Make, change and delete schedules."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.http.errors import AppError, Conflict, Fault, InvalidContent, NotFound
from app.http.parameters import cursor_after, name_before
from app.http.request_body import faults_in_body
from app.persistence.database import Database
from app.persistence.models import Schedule
from app.schedules import repository
from app.schedules.schemas import LastRun, ScheduleDetail, ScheduleForm, SchedulePage
from app.schedules.ticks import next_tick
from app.training import service as training
from ccmtl_core.base.display import counted

MOST = 100
"""Schedules of a workspace."""


def put(database: Database, name: str, document: dict[str, Any]) -> tuple[ScheduleDetail, bool]:
    """Make a schedule, or change the one of this name; return it, and whether it was made."""
    given = _checked(database, document)
    try:
        with database.write() as session:
            return _put(session, name, given)
    except IntegrityError:  # made by another request meanwhile
        with database.write() as session:
            return _put(session, name, given)


def _put(session: Session, name: str, given: dict[str, Any]) -> tuple[ScheduleDetail, bool]:
    stored = repository.find_schedule(session, name, lock=True)
    if stored is None and repository.count(session) >= MOST:
        raise Conflict("too_many_schedules", f"There are {MOST} schedules, the most that may be; delete one.")
    schedule = stored or Schedule(name=name, enabled=False)
    _change(session, schedule, given)
    session.add(schedule)
    session.flush()
    return _detail(schedule), stored is None


def _change(session: Session, schedule: Schedule, given: dict[str, Any]) -> None:
    timing = ("cron", "time_zone", "enabled")
    was_timed = [getattr(schedule, field) for field in timing]
    for field, value in given.items():
        setattr(schedule, field, value)
    if was_timed != [getattr(schedule, field) for field in timing]:  # else a time that has just come counts
        now = repository.database_now(session)
        schedule.next_run_at = next_tick(schedule.cron, schedule.time_zone, now) if schedule.enabled else None


def switch(session: Session, name: str, *, enabled: bool) -> ScheduleDetail:
    """Enable or disable a schedule, and change nothing else of it."""
    schedule = _found(session, name, lock=True)
    _change(session, schedule, {"enabled": enabled})
    return _detail(schedule)


def list_schedules(session: Session, limit: int, cursor: str | None) -> SchedulePage:
    """Return one page of schedules."""
    rows = repository.list_schedules(session, limit + 1, name_before(cursor))
    return SchedulePage.of(list(map(_detail, rows)), limit, lambda schedule: cursor_after(schedule.name))


def read(session: Session, name: str) -> ScheduleDetail:
    """Return the schedule of this name."""
    return _detail(_found(session, name))


def remove(session: Session, name: str) -> None:
    """Delete a schedule; jobs that it has started go on."""
    session.delete(_found(session, name))


def _checked(database: Database, document: dict[str, Any]) -> dict[str, Any]:
    """Return the columns that a form stands for, or raise the error with all its faults."""
    form, request = None, None
    faults: list[Fault] = []
    unlisted = 0
    try:
        form = ScheduleForm.model_validate(document)
    except ValidationError as error:
        faults = faults_in_body(ScheduleForm, error)
        unlisted = error.error_count() - len(faults)
    wanted = document.get("training")
    if isinstance(wanted, dict):
        try:
            request, _ = training.checked(database, wanted)
        except AppError as refusal:
            faults += _within_training(refusal)
            unlisted += refusal.problem.error_count - len(refusal.problem.errors)
            if isinstance(refusal, NotFound):
                refusal.problem.errors, refusal.problem.error_count = faults, len(faults) + unlisted
                raise
    if request is not None and request.version is not None:
        message = "each run takes the newest version of the dataset; leave it out"
        faults.append(Fault(message=message, location="body.training.version", value=str(request.version)))
    if form is None or request is None or faults:
        n_faults = len(faults) + unlisted
        detail = f"The request has {counted(n_faults, 'fault')}; see `errors`."
        raise InvalidContent("invalid_request", detail, errors=faults, error_count=n_faults)
    return {
        "cron": form.expression,
        "time_zone": form.time_zone,
        "enabled": form.enabled,
        "request": wanted,  # as it was given: what was filled in may have no effect, which is refused
    }


def _within_training(refusal: AppError) -> list[Fault]:
    """Return the faults of a training request as those of the field that it stands in."""
    return [
        fault.model_copy(update={"location": (fault.location or "body").replace("body", "body.training", 1)})
        for fault in refusal.problem.errors
    ]


def _found(session: Session, name: str, *, lock: bool = False) -> Schedule:
    schedule = repository.find_schedule(session, name, lock=lock)
    if schedule is None:
        raise NotFound.named("schedule", name, repository.schedule_names(session))
    return schedule


def _detail(schedule: Schedule) -> ScheduleDetail:
    stored = ScheduleDetail.model_fields.keys() - {"last_run", "training"}
    fields = {name: getattr(schedule, name) for name in stored}
    last = None
    if schedule.last_tick is not None:
        error = schedule.last_error
        last = LastRun.model_validate(
            {"tick": schedule.last_tick, "job": schedule.last_job_id, "error": error}
        )
    return ScheduleDetail.model_validate({**fields, "last_run": last, "training": schedule.request})
