"""Queue the jobs of the times that have come: ``python -m app.schedules.starting``, which workers run then.

A time has one job however many workers see it: the schedule's row is held while the job is written and the
next time set, in one transaction. Times that were missed while no worker ran have one job together.
"""

from __future__ import annotations

import logging
import sys

from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.orm import Session

from app.http.errors import AppError, Conflict, Problem
from app.persistence.database import Database
from app.persistence.models import Schedule
from app.persistence.outbox import Event, announce
from app.processes.lifeline import end_with_standard_input
from app.processes.logs import configure_logging
from app.schedules import repository
from app.schedules.repository import Due
from app.schedules.ticks import next_tick
from app.settings import Settings
from app.training import service as training

logger = logging.getLogger("app.schedules.starting")  # not "__main__", which this module is when it runs

AT_ONCE = 20


def start_due(database: Database, max_queued: int) -> bool:
    """Queue a job for each schedule whose time has come, or note why there is none.

    Returns whether that was done for all; the log has the errors of the others, which stay due.
    """
    with database.read() as session:
        found = repository.due(session, AT_ONCE)
    done = True
    for due in found:
        try:
            _start(database.of(due.workspace), due, max_queued)
        except DBAPIError:
            raise
        except Exception:
            logger.exception("the schedule %s of the workspace %s failed", due.name, due.workspace)
            done = False
    return done


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


def main() -> int:
    """Start what is due by the settings of the environment, and return the process's exit code."""
    settings = Settings()
    configure_logging("schedules", settings.log_level, settings.log_format)
    database = Database(settings)
    try:
        return 0 if start_due(database, settings.max_queued_jobs) else 1
    finally:
        database.dispose()


if __name__ == "__main__":
    end_with_standard_input()
    sys.exit(main())
