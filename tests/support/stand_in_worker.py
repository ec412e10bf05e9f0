"""A real worker whose fit child is the stand-in, and one that is busy."""

from __future__ import annotations

import time
from unittest.mock import patch

from app.jobs.worker import Worker, run_worker
from app.persistence.database import Database
from app.processes.lifeline import Signals
from app.processes.logs import configure_logging
from app.settings import Settings


def work() -> None:
    """Be that worker until told to stop."""
    configure_logging("worker", "info")
    settings = Settings()
    Worker(settings, Database(settings), Signals(), fit_child="tests.support.stand_in_fit").run()


def be_busy() -> None:
    """Be a worker that takes no job, as while a long one runs."""
    with patch.object(Worker, "run", lambda worker: time.sleep(600)):
        run_worker(Settings())
