"""Makes the database of the settings ready, as each process of the service does."""

from __future__ import annotations

from collections.abc import Callable

from app.persistence.database import Database
from app.persistence.schema import prepare
from app.settings import Settings


def prepare_together(wait_for_the_others: Callable[[], object]) -> None:
    """Make it ready as one of several who begin together."""
    wait_for_the_others()
    prepare(Database(Settings()))
