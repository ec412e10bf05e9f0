"""Run one attempt at one job in a process of its own: ``python -m app.jobs.fit_child JOB_ID ATTEMPT``.

The pipeline records success in the job's row, and this module failure. A run that can write nothing (its
job was taken over, the database is gone) ends with an exit code that tells its worker so.
"""

from __future__ import annotations

import logging
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

from app.http.errors import AppError
from app.jobs import queue
from app.jobs.exits import Exit
from app.jobs.queue import ClaimedJob, StaleAttempt
from app.persistence.database import Database
from app.persistence.storage import Storage
from app.processes.lifeline import end_with_standard_input
from app.processes.logs import configure_logging
from app.settings import Settings
from app.training import pipeline
from app.training.cluster import ClusterLost
from ccmtl_core import CCMTLError

logger = logging.getLogger("app.jobs.fit_child")  # not "__main__", which this module is when it runs

_AWAY = (OperationalError, InterfaceError)
"""Errors of a database that does not answer; others, such as of a value that it refuses, come again."""


def run(settings: Settings, job_id: str, attempt: int) -> Exit:
    """Run the attempt to its end and return the process's exit code."""
    database = Database(settings)
    try:
        with database.read() as session:
            job = queue.load(session, job_id, attempt)
        _run_and_record(database, settings, job)
    except StaleAttempt:
        logger.warning("job %s attempt %d is no longer ours: nothing was written", job_id, attempt)
        return Exit.STALE
    except _AWAY as error:
        logger.error("job %s attempt %d cannot use the database: %s", job_id, attempt, error.orig)
        return Exit.DATABASE_AWAY
    except ClusterLost as error:
        logger.error("job %s attempt %d: %s", job_id, attempt, error)
        return Exit.CLUSTER_LOST
    finally:
        database.dispose()
    return Exit.RECORDED


def _run_and_record(database: Database, settings: Settings, job: ClaimedJob) -> None:
    def store(progress: dict[str, Any]) -> None:
        try:
            with database.write() as session:
                queue.report_progress(session, job.id, job.attempt, progress)
        except DBAPIError as error:  # progress is not worth ending the fit for
            logger.warning("job %s: progress not stored: %s", job.id, error.orig)

    try:
        pipeline.run(database, Storage(settings.data_dir), job, store, settings.dask_scheduler)
    except (StaleAttempt, ClusterLost, *_AWAY):
        raise
    except AppError as error:
        _fail(database, job, error.problem.code, error.problem.detail)
    except CCMTLError as error:
        _fail(database, job, "training_failed", str(error))
    except MemoryError:
        _fail(database, job, "out_of_memory", "The training needs more memory than this machine has.")
    except Exception:
        logger.exception("job %s attempt %d met an unexpected error", job.id, job.attempt)
        _fail(database, job, "internal_error", "The training failed; the operator's log has the details.")


def _fail(database: Database, job: ClaimedJob, code: str, detail: str) -> None:
    logger.warning("job %s attempt %d failed: %s: %s", job.id, job.attempt, code, detail)
    with database.write() as session:
        queue.fail(session, job.id, job.attempt, code, detail)


def _offer_to_the_memory_killer() -> None:
    # When memory runs out the kernel should end this process, and not the API or the worker.
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("500")


if __name__ == "__main__":
    end_with_standard_input()
    _offer_to_the_memory_killer()
    settings = Settings()
    configure_logging("fit", settings.log_level, settings.log_format)
    sys.exit(run(settings, sys.argv[1], int(sys.argv[2])))
