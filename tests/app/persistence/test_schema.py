from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Executable, inspect, select, text, update

from app.persistence.database import Database
from app.persistence.models import Base, TrainingJob
from app.persistence.schema import SchemaOutOfDate, migration_config, prepare, require_current, upgrade
from app.settings import Settings
from tests.support.forked import run_together
from tests.support.prepare_database import prepare_together

FIRST_SCHEMA_ROWS = [
    "INSERT INTO dataset VALUES ('ds', 'sales', 'series', '{}', '2025-01-01')",
    "INSERT INTO dataset_version VALUES ('dsv', 'ds', 1, '{}', '2025-01-01')",
    "INSERT INTO model VALUES ('mdl', 'sales', '2025-01-01'), ('mdl2', 'without', '2025-01-01')",
    *(
        "INSERT INTO training_job (id, dataset_version_id, model_name, request, state, attempt, times_lost, "
        f"cancel_requested, created_at) VALUES ('job{n}', 'dsv', 'sales', '{{}}', 'succeeded', 1, 0, false, "
        "'2025-01-01')"
        for n in (1, 3)
    ),
    *(
        f"INSERT INTO model_version VALUES ('mv{n}', 'mdl', {n}, 'job{n}', 'dsv', '[]', 1, '{{}}', '{{}}', "
        "'{}', '2025-01-01')"
        for n in (1, 3)
    ),
]


@pytest.fixture
def empty_database(empty_database_url: str) -> Iterator[Database]:
    database = Database(Settings(database_url=empty_database_url))
    yield database
    database.dispose()


def test_migrations_equal_the_models(empty_database: Database) -> None:
    upgrade(empty_database)
    with empty_database.read() as session:
        options = {"compare_type": True, "compare_server_default": True}
        context = MigrationContext.configure(session.connection(), opts=options)
        assert compare_metadata(context, Base.metadata) == []


def test_constraint_names_equal_the_models(empty_database: Database) -> None:
    upgrade(empty_database)
    inspector = inspect(empty_database.engine)
    for name, table in Base.metadata.tables.items():
        assert inspector.get_pk_constraint(name)["name"] == table.primary_key.name
        keys = {key["name"]: key["options"].get("ondelete") for key in inspector.get_foreign_keys(name)}
        assert keys == {key.name: key.ondelete for key in table.foreign_key_constraints}


def test_downgrade_leaves_no_table_behind(empty_database: Database) -> None:
    upgrade(empty_database)
    with empty_database.altering() as connection:
        config = migration_config()
        config.attributes["connection"] = connection
        command.downgrade(config, "base")
    assert inspect(empty_database.engine).get_table_names() == ["alembic_version"]


def upgrade_from_the_first_schema(database: Database, *changes: Executable) -> None:
    """Fill the tables of the first schema, change some rows, and upgrade."""
    config = migration_config()
    with database.write() as session:
        config.attributes["connection"] = session.connection()
        command.upgrade(config, "0001")
        for statement in (*map(text, FIRST_SCHEMA_ROWS), *changes):
            session.execute(statement)
    upgrade(database)


def test_numbers_go_on_from_the_versions_of_a_database_of_the_first_schema(empty_database: Database) -> None:
    upgrade_from_the_first_schema(empty_database)
    with empty_database.read() as session:
        rows = session.execute(text("SELECT name, last_number FROM model ORDER BY name")).all()
        assert [tuple(row) for row in rows] == [("sales", 3), ("without", 0)]
        assert session.execute(text("SELECT number FROM model_version ORDER BY number")).scalars().all() == [
            1,
            3,
        ]


def test_stored_requests_lose_the_choices_that_were_dropped(empty_database: Database) -> None:
    old = {"start": "shrunk", "loss_scaling": "residual", "lags": 7}
    change = update(TrainingJob).where(TrainingJob.id == "job3").values(request=old)
    upgrade_from_the_first_schema(empty_database, change)
    with empty_database.read() as session:
        requests = session.scalars(select(TrainingJob.request).order_by(TrainingJob.id)).all()
    assert requests == [{}, {"loss_scaling": "spread", "lags": 7}]


def test_upgrade_twice_changes_nothing(database: Database) -> None:
    upgrade(database)
    require_current(database)


def test_processes_that_start_together_on_an_empty_sqlite_file(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path / "var")
    run_together(prepare_together, 6, environment=settings.environment())
    database = Database(settings)
    require_current(database)
    database.dispose()


def test_an_empty_database_is_migrated_on_sqlite_and_refused_on_postgresql(
    empty_database: Database, database_kind: str
) -> None:
    if database_kind == "sqlite":
        prepare(empty_database)
        require_current(empty_database)
    else:
        with pytest.raises(SchemaOutOfDate, match="run `ccmtl migrate`"):
            prepare(empty_database)
