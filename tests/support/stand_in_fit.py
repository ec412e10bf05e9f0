"""Stands in for the fit child: does what the job's request says, without any data."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from app.jobs import queue
from app.jobs.exits import Exit
from app.persistence.database import Database
from app.processes.lifeline import end_with_standard_input
from app.settings import Settings


def main(job_id: str, attempt: int) -> int:
    database = Database(Settings())
    with database.read() as session:
        request = queue.load(session, job_id, attempt).request
    if "pid_file" in request:
        Path(f"{request['pid_file']}.{attempt}").write_text(str(os.getpid()))
    if attempt in request.get("dies_at", []):
        os.kill(os.getpid(), signal.SIGKILL)
    if attempt in request.get("ends_at", []):
        return 7
    if attempt in request.get("database_is_away_at", []):
        return Exit.DATABASE_AWAY
    if attempt in request.get("suspended_while_publishing_at", []):
        with database.write() as session:
            queue.finish(session, job_id, attempt, "mv_of_a_suspended_fit")
            os.kill(os.getpid(), signal.SIGSTOP)
    if attempt not in request.get("succeeds_at", []):
        time.sleep(600)
    with database.write() as session:
        queue.finish(session, job_id, attempt, "mv_of_stand_in")
    return 0


if __name__ == "__main__":
    end_with_standard_input()
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
