"""Claims jobs until none is left and prints their ids, one a line, once it is told to begin."""

from __future__ import annotations

import os

from app.jobs import queue
from app.persistence.database import Database
from app.settings import Settings
from tests.support.processes import wait_for_the_others

if __name__ == "__main__":
    database = Database(Settings())
    wait_for_the_others()
    while True:
        with database.write() as session:
            job = queue.claim(session, f"claimer {os.getpid()}", 600.0, 3)
        if job is None:
            break
        print(job.id)  # noqa: T201 - the test reads it
