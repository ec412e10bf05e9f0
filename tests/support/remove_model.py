"""Deletes a model, and is killed before the commit."""

from __future__ import annotations

import os
import signal

from app.persistence.database import Database
from app.registry import service
from app.settings import Settings


def remove_and_die(model: str) -> None:
    """Delete it as far as to its last statement."""
    with Database(Settings()).write() as session:
        service.remove(session, model)
        session.flush()
        os.kill(os.getpid(), signal.SIGKILL)
