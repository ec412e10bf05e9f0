"""Makes the database of the settings ready, as each process of the service does, once it is told to begin."""

from __future__ import annotations

from app.persistence.database import Database
from app.persistence.schema import prepare
from app.settings import Settings
from tests.support.processes import wait_for_the_others

if __name__ == "__main__":
    wait_for_the_others()
    prepare(Database(Settings()))
