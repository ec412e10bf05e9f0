"""A real worker whose fit child is the stand-in."""

from __future__ import annotations

from app.jobs.worker import Worker
from app.persistence.database import Database
from app.processes.lifeline import Signals
from app.processes.logs import configure_logging
from app.settings import Settings


def work() -> None:
    """Be that worker until told to stop."""
    configure_logging("worker", "info")
    settings = Settings()
    Worker(settings, Database(settings), Signals(), fit_child="tests.support.stand_in_fit").run()
