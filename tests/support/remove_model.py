"""Deletes the model that is named, says so, and waits before the commit: to be killed there."""

from __future__ import annotations

import sys

from app.persistence.database import Database
from app.registry import service
from app.settings import Settings

if __name__ == "__main__":
    with Database(Settings()).write() as session:
        service.remove(session, sys.argv[1])
        print("deleted", flush=True)  # noqa: T201 - the test reads it
        sys.stdin.read()
