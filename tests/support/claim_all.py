"""Claims jobs until none is left, as a process that competes with others."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from app.jobs import queue
from app.persistence.database import Database
from app.settings import Settings


def claim_all(wait_for_the_others: Callable[[], object], folder: Path) -> None:
    """Claim as one of several who begin together; leave a file in the folder with the jobs' ids."""
    database, name = Database(Settings()), f"claimer-{os.getpid()}"
    wait_for_the_others()
    ids = []
    while True:
        with database.write() as session:
            job = queue.claim(session, name, 600.0, 3)
        if job is None:
            break
        ids.append(job.id)
    (folder / name).write_text("\n".join(ids))
