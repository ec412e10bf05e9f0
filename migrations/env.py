"""What alembic runs: the migrations, on a given connection or on the settings' database."""

from __future__ import annotations

from alembic import context
from sqlalchemy import Connection

from app.persistence.database import Database
from app.persistence.models import Base
from app.settings import Settings


def run(connection: Connection) -> None:
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        transactional_ddl=True,
        render_as_batch=True,
        compare_type=True,
        compare_server_default=True,
    )
    with context.begin_transaction():
        context.run_migrations()


given = context.config.attributes.get("connection")
if given is not None:
    run(given)
else:
    with Database(Settings()).altering() as connection:
        run(connection)
