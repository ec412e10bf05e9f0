"""Look whether times of schedules have come, and let a process of its own queue their jobs.

Checking a training request needs the whole library, which a worker that waits would otherwise hold in memory.
"""

from __future__ import annotations

import logging
import subprocess
import time

from app.persistence.database import Database
from app.processes.lifeline import kill, spawn_module
from app.schedules import repository

logger = logging.getLogger(__name__)

STARTING = "app.schedules.starting"
MOST_SECONDS = 120.0
PAUSE_SECONDS = 30.0
"""So long a time that has come waits again where its job could not be queued."""


class Watch:
    """Starts what is due; ``module`` is the program that queues the jobs."""

    def __init__(self, database: Database, module: str = STARTING) -> None:
        self._database = database
        self._module = module
        self._paused_until = 0.0

    def start_due(self) -> None:
        """Run the program if there is work for it, and wait for its end."""
        if time.monotonic() < self._paused_until:
            return
        with self._database.read() as session:
            if not repository.due(session, 1):
                return
        if not self._has_run():
            self._paused_until = time.monotonic() + PAUSE_SECONDS

    def _has_run(self) -> bool:
        child = spawn_module(self._module)
        try:
            code = child.wait(MOST_SECONDS)
        except subprocess.TimeoutExpired:
            logger.error("queueing the jobs of schedules took more than %.0f seconds", MOST_SECONDS)
            return False
        finally:
            kill(child)
        if code:
            logger.error("the process that queues the jobs of schedules ended with code %d", code)
        return code == 0
