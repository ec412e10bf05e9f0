"""Makes the database of the settings ready at a given time, as each process of the service does."""

from __future__ import annotations

import sys
import time

from app.persistence.database import Database
from app.persistence.schema import prepare
from app.settings import Settings

if __name__ == "__main__":
    time.sleep(max(0.0, float(sys.argv[1]) - time.time()))
    prepare(Database(Settings()))
