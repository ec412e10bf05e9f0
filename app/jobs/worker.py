"""The worker process: claims one job after another, runs each in a child process, and renews its lease.

At the same time a thread queues the jobs of schedules, sends to webhooks what is due, and ends the jobs whose
workers died before they could cancel them.

``python -m app.jobs.worker`` is a worker that ends with the supervisor that started it.
"""

from __future__ import annotations

import logging
import os
import secrets
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.orm import Session

from app.jobs import queue, workers
from app.jobs.exits import Exit
from app.jobs.limits import exceeded, memory_of
from app.jobs.queue import ClaimedJob, StaleAttempt
from app.persistence.database import Database
from app.persistence.models import TrainingJob
from app.persistence.schema import prepare
from app.processes.errands import STOP_SECONDS, Errands
from app.processes.extras import require_extras
from app.processes.lifeline import Signals, end_with_standard_input, is_stopped, kill, spawn_module
from app.processes.logs import configure_logging
from app.schedules.watch import Watch
from app.settings import Settings
from app.webhooks.courier import Courier

logger = logging.getLogger("app.jobs.worker")  # not "__main__", which this module is when it runs

FIT_CHILD = "app.jobs.fit_child"
ALIVE_SECONDS = 60.0
"""How long, or for three polls of the queue if they take longer, a silent worker still counts as alive."""
WATCH_SECONDS = 1.0
"""At least this often a run's limits are checked, and whether its cancellation was asked for."""


class Worker:
    """Runs jobs until it is told to stop; keeps no transaction open while a job runs.

    ``fit_child`` is the module that runs a job, given its id and attempt.
    """

    def __init__(
        self, settings: Settings, database: Database, signals: Signals, fit_child: str = FIT_CHILD
    ) -> None:
        self.name = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(3)}"
        self._settings = settings
        self._database = database
        self._signals = signals
        self._fit_child = fit_child
        self._alive_seconds = max(ALIVE_SECONDS, 3 * settings.job_poll_seconds)
        self._sign_due = 0.0

    def run(self) -> None:
        """Work until told to stop."""
        logger.info("worker %s waits for jobs", self.name)
        while not self._signals.stop:
            try:
                self._say_alive()
                job = self._claim()
                if job is not None:
                    self._run(job)
                    continue
            except DBAPIError as error:
                self._warn(error)
            self._signals.wait(self._settings.job_poll_seconds)
        with suppress(DBAPIError), self._database.write() as session:
            workers.note_end(session, self.name)
        logger.info("worker %s ends", self.name)

    def _say_alive(self) -> None:
        """Say that this worker is alive, whether it has a job or not, three times in ``_alive_seconds``."""
        if time.monotonic() >= self._sign_due:
            self._sign_due = time.monotonic() + self._alive_seconds / 3
            with self._database.write() as session:
                workers.note_alive(session, self.name, self._alive_seconds)

    def _claim(self) -> ClaimedJob | None:
        with self._database.read() as session:
            if not queue.has_work(session):
                return None
        max_attempts = self._settings.job_max_attempts
        try:
            with self._database.write() as session:
                closed = queue.close_abandoned(session, max_attempts)
                job = queue.claim(session, self.name, self._settings.job_lease_seconds, max_attempts)
        except IntegrityError:  # at the same moment another worker has started a job of the same model
            return None
        for abandoned in closed:
            logger.warning("job %s was abandoned and is now %s", abandoned.id, abandoned.state)
        if job is not None:
            logger.info("worker %s claimed job %s attempt %d", self.name, job.id, job.attempt)
        return job

    def _run(self, job: ClaimedJob) -> None:
        child = spawn_module(self._fit_child, job.id, str(job.attempt))
        try:
            self._look_after(job, child)
        except StaleAttempt as error:
            # Another worker has the job, or the child has just recorded its end: the outcome says which.
            logger.debug("worker %s job %s: %s", self.name, job.id, error)
        finally:
            kill(child)
        self._log_outcome(job)

    def _look_after(self, job: ClaimedJob, child: subprocess.Popen[bytes]) -> None:
        """Wait for the child's end; end it when the job is cancelled or lost, or when this worker stops."""
        lease = self._settings.job_lease_seconds
        began = awake = renewed = time.monotonic()
        while child.poll() is None:
            now = time.monotonic()
            if not is_stopped(child):
                awake = now
            elif now > awake + lease:
                kill(child)
                self._lose(job, "its process was suspended for longer than the lease")
                return
            record = None
            try:
                record = self._reason_to_end(job, child, now - began)
                # A suspended child may hold a lock that a renewal would wait for.
                if record is None and now >= renewed + lease / 3 and not is_stopped(child):
                    renewed = now
                    self._renew(job)
            except DBAPIError as error:
                self._warn(error)
            if record is not None:
                self._end_run(job, child, record)
                return
            self._signals.wait(min(self._settings.job_poll_seconds, lease / 3, WATCH_SECONDS))
        self._note_exit(job, child.returncode)

    def _reason_to_end(
        self, job: ClaimedJob, child: subprocess.Popen[bytes], seconds: float
    ) -> Callable[[Session, str, int], None] | None:
        """Return what records the end of a run that must not go on after ``seconds``; None if it may."""
        if self._signals.stop:
            return queue.give_back
        excess = exceeded(self._settings, seconds, memory_of(child.pid))
        if excess is not None:
            code, detail = excess
            return partial(queue.fail, code=code, detail=detail)
        with self._database.read() as session:
            is_cancelled = queue.is_cancel_requested(session, job.id, job.attempt)
        return queue.mark_cancelled if is_cancelled else None

    def _renew(self, job: ClaimedJob) -> None:
        """Give both signs of life: renew the lease of the job, and say that this worker is alive."""
        with self._database.write() as session:
            queue.renew_lease(session, job.id, job.attempt, self._settings.job_lease_seconds)
        self._say_alive()

    def _note_exit(self, job: ClaimedJob, code: int) -> None:
        if code == Exit.DATABASE_AWAY:
            # The job is not to blame, so the run counts as silent and not as lost, once its lease runs out.
            logger.warning("job %s attempt %d ended while the database was away", job.id, job.attempt)
        else:
            self._lose(job, _describe_exit(code))

    def _lose(self, job: ClaimedJob, reason: str) -> None:
        """Count the run as lost, unless the child recorded an outcome: then this raises StaleAttempt."""
        with self._database.write() as session:
            queue.lose_run(session, job.id, job.attempt, reason, self._settings.job_max_attempts)
        logger.warning("job %s attempt %d was lost: %s", job.id, job.attempt, reason)

    def _end_run(
        self, job: ClaimedJob, child: subprocess.Popen[bytes], record: Callable[[Session, str, int], None]
    ) -> None:
        kill(child)
        with self._database.write() as session:
            record(session, job.id, job.attempt)

    def _log_outcome(self, job: ClaimedJob) -> None:
        with self._database.read() as session:
            row = session.get(TrainingJob, job.id)
        if row is None or row.attempt != job.attempt:
            logger.warning("worker %s lost job %s attempt %d to another", self.name, job.id, job.attempt)
        else:
            logger.info("job %s attempt %d is %s", job.id, job.attempt, row.state)

    def _warn(self, error: DBAPIError) -> None:
        logger.warning("worker %s cannot use the database: %s", self.name, error.orig)


def _describe_exit(code: int) -> str:
    if code == Exit.CLUSTER_LOST:
        return "the Dask scheduler or its workers went away while they fitted folds"
    if code >= 0:
        return f"its process ended with code {code}"
    name = signal.Signals(-code).name
    hint = ", as happens when the machine runs out of memory" if code == -signal.SIGKILL else ""
    return f"its process was ended by {name}{hint}"


def end_cancelled(database: Database) -> None:
    """End the jobs whose workers died before they could cancel them."""
    with database.read() as session:
        if not queue.has_cancelled(session):
            return
    with database.write() as session:
        ended = queue.close_cancelled(session)
    for job in ended:
        logger.warning("job %s was abandoned and is now %s", job.id, job.state)


def run_worker(settings: Settings) -> None:
    """Be a worker until SIGTERM or SIGINT; a job that runs then goes back to the queue."""
    require_extras(settings)
    configure_logging("worker", settings.log_level, settings.log_format)
    signals = Signals()
    database = Database(settings)
    try:
        prepare(database)
        courier = Courier(settings, database)
        errands: list[Callable[[], None]] = [
            partial(end_cancelled, database),
            Watch(database).start_due,
            courier.send_due,
        ]
        with Errands(settings.job_poll_seconds, errands):
            Worker(settings, database, signals).run()
        courier.wait(STOP_SECONDS)
    finally:
        database.dispose()


if __name__ == "__main__":
    end_with_standard_input()
    run_worker(Settings())
