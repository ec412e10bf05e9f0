"""Claims jobs until none is left and prints their ids, one a line."""

from __future__ import annotations

import os
import sys
import time

from app.jobs import queue
from app.persistence.database import Database
from app.settings import Settings

if __name__ == "__main__":
    database = Database(Settings())
    time.sleep(max(0.0, float(sys.argv[1]) - time.time()))  # all claimers begin together
    while True:
        with database.write() as session:
            job = queue.claim(session, f"claimer {os.getpid()}", 600.0, 3)
        if job is None:
            break
        print(job.id)  # noqa: T201 - the test reads it
