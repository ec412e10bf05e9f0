"""Queue the jobs of the times that have come; workers do this again and again.

A time has one job however many workers see it: the schedule's row is held while the job is written and the
next time set, in one transaction. Times that were missed while no worker ran have one job together.
"""

from __future__ import annotations

import logging

from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.orm import Session

from app.http.errors import AppError, Conflict, Problem
from app.persistence.database import Database
from app.persistence.models import Schedule
from app.persistence.outbox import Event, announce
from app.schedules import repository
from app.schedules.repository import Due
from app.schedules.ticks import next_tick
from app.training import service as training

logger = logging.getLogger(__name__)

AT_ONCE = 20


def start_due(database: Database, max_queued: int) -> None:
    """Queue a job for each schedule whose time has come, or note why there is none."""
    with database.read() as session:
        found = repository.due(session, AT_ONCE)
    for due in found:
        try:
            _start(database.of(due.workspace), due, max_queued)
        except DBAPIError:
            raise
        except Exception:
            logger.exception("the schedule %s of the workspace %s failed", due.name, due.workspace)


def _start(database: Database, due: Due, max_queued: int) -> None:
    try:
        request, version_id = training.checked(database, due.request)
        with database.write() as session:
            schedule = repository.lock_due(session, due)
            if schedule is None:
                return
            job_id = training.enqueue_of_schedule(
                session, request, version_id, max_queued, due.name, due.tick
            )
            schedule.last_job_id, schedule.last_error = job_id, None
            _move_on(session, schedule, due)
    except AppError as refusal:
        _note_failure(database, due, refusal.problem)
    except IntegrityError:
        detail = "Its dataset was deleted meanwhile, or this time has had its job already."
        _note_failure(database, due, Conflict("schedule_overtaken", detail).problem)
    else:
        logger.info("the schedule %s of the workspace %s queued job %s", due.name, due.workspace, job_id)


def _note_failure(database: Database, due: Due, problem: Problem) -> None:
    detail = "; ".join([problem.detail, *(fault.message for fault in problem.errors)])
    error = {"code": problem.code, "detail": detail}
    with database.write() as session:
        schedule = repository.lock_due(session, due)
        if schedule is None:
            return
        schedule.last_job_id, schedule.last_error = None, error
        _move_on(session, schedule, due)
        tick = due.tick.isoformat().replace("+00:00", "Z")
        announce(
            session,
            due.workspace,
            Event.SCHEDULE_FAILED,
            {"schedule": due.name, "tick": tick, "error": error},
        )
    logger.warning("the schedule %s of the workspace %s: %s", due.name, due.workspace, detail)


def _move_on(session: Session, schedule: Schedule, due: Due) -> None:
    """Set the next time, after now: those that were missed do not come any more."""
    schedule.last_tick = due.tick
    try:
        now = repository.database_now(session)
        schedule.next_run_at = next_tick(schedule.cron, schedule.time_zone, now)
    except KeyError:
        logger.error("the schedule %s: there is no time zone %s any more", due.name, schedule.time_zone)
        schedule.next_run_at = None
