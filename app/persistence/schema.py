"""Bring the database's tables up to date, or say that they are not.

SQLite is migrated at every start; PostgreSQL by ``ccmtl migrate``, so that an operator chooses the moment.
"""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text

import migrations
from app.persistence.database import Database
from app.processes.cannot_start import CannotStart
from app.processes.logs import configure_logging
from app.settings import Settings

_LOCK_KEY = 0x63636D746C  # "ccmtl": any fixed number that only this program locks


class SchemaOutOfDate(CannotStart):
    """The database's schema is not the one that this program was written for."""


def migration_config() -> Config:
    """Return the alembic configuration of the packaged migrations."""
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    return config


def upgrade(database: Database) -> None:
    """Apply every missing migration in one transaction; processes that start together wait for each other."""
    with database.altering() as connection:
        if not database.is_sqlite:  # there it holds the file's lock already
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK_KEY})
        config = migration_config()
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def run_migrations(settings: Settings) -> None:
    """Apply every missing migration to the database of ``settings``."""
    configure_logging("migrate", settings.log_level, settings.log_format)
    database = Database(settings)
    try:
        upgrade(database)
    finally:
        database.dispose()


def require_current(database: Database) -> None:
    """Raise :class:`SchemaOutOfDate` unless the newest migration known here is the last one applied."""
    present, known = _revision(database), _known_revisions()
    if present == known[0]:
        return
    if present is not None and present not in known:
        raise SchemaOutOfDate(
            f"The database's schema ({present}) is newer than this program: start a newer version of ccmtl."
        )
    raise SchemaOutOfDate(
        f"The database's schema ({present or 'empty'}) is older than this program ({known[0]}): "
        "run `ccmtl migrate` with the same CCMTL_DATABASE_URL."
    )


def prepare(database: Database) -> None:
    """Make the database ready for a process that starts: migrate SQLite, only check PostgreSQL."""
    if database.is_sqlite and _revision(database) in (None, *_known_revisions()[1:]):
        upgrade(database)
    require_current(database)


def _revision(database: Database) -> str | None:
    with database.read() as session:
        return MigrationContext.configure(session.connection()).get_current_revision()


def _known_revisions() -> list[str]:
    """Return the revisions of the packaged migrations, newest first."""
    script = ScriptDirectory.from_config(migration_config())
    return [revision.revision for revision in script.walk_revisions()]
