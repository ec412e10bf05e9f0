"""Fixtures for all tests: settings in a folder of the test's own, and a migrated database of each kind."""

from __future__ import annotations

import gc
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import chain, groupby
from pathlib import Path

import hypothesis
import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, create_engine, make_url, text

from app.persistence.database import Database
from app.persistence.models import Base
from app.persistence.schema import migration_config, upgrade
from app.settings import Settings
from ccmtl_core.base.threads import one_blas_thread
from scripts.postgres_server import postgres_server

TEMPLATE = "ccmtl_template"

# The same examples in every run. The first may compile a kernel, and the machine may be busy: no clock.
for profile, examples in (("ccmtl", 50), ("thorough", 400)):
    hypothesis.settings.register_profile(profile, deadline=None, derandomize=True, max_examples=examples)
hypothesis.settings.load_profile("ccmtl")  # `make test-all` asks for the other


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Look for garbage in what tests make only: all modules and thousands of tests stay until the end."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spread the walks among the other files: they mostly wait, and two at a time would leave a core idle.

    None is among the last files, where one core would wait for the other.
    """
    files = [list(tests) for _, tests in groupby(items, key=lambda item: item.path)]
    walks = [tests for tests in files if "walk" in tests[0].path.parts]
    others = [tests for tests in files if "walk" not in tests[0].path.parts]
    gap = 4 * len(others) // (5 * max(len(walks), 1))
    for k in reversed(range(len(walks))):
        others.insert(k * gap, walks[k])
    items[:] = chain.from_iterable(others)


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith("CCMTL_") and not name.startswith("CCMTL_TEST_"):
            monkeypatch.delenv(name)


@pytest.fixture(scope="session", autouse=True)
def _one_blas_thread() -> Iterator[None]:
    """Linear algebra on one thread, here and in processes started here: small matrices, shared cores.

    Limited as the library does it, once for all fits: to look for the libraries at each fit takes 2 ms.
    """
    with pytest.MonkeyPatch.context() as patch, one_blas_thread():
        patch.setenv("OPENBLAS_NUM_THREADS", "1")
        yield


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated, empty SQLite file."""
    folder = tmp_path_factory.mktemp("sqlite")
    database = Database(Settings(data_dir=folder))
    upgrade(database)
    database.dispose()
    return folder / "ccmtl.db"


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """URL of a PostgreSQL server whose user may create databases: CCMTL_TEST_POSTGRES_URL, or our own."""
    given = os.environ.get("CCMTL_TEST_POSTGRES_URL")
    if given:
        yield given
        return
    with postgres_server() as url:
        yield url


@pytest.fixture(scope="session")
def postgres_template(postgres_url: str) -> Iterator[str]:
    """Name of a migrated, empty PostgreSQL database."""
    name = f"{TEMPLATE}_{secrets.token_hex(4)}"
    _execute(postgres_url, f"CREATE DATABASE {name}")
    database = Database(Settings(database_url=_sibling(postgres_url, name)))
    upgrade(database)
    database.dispose()
    yield name
    _execute(postgres_url, f"DROP DATABASE {name}")


@pytest.fixture(scope="session")
def shared_postgres(postgres_url: str, postgres_template: str) -> Iterator[Engine]:
    """A migrated database that one test leaves empty for the next: PostgreSQL makes none quickly."""
    with postgres_database(postgres_url, postgres_template) as url:
        engine = create_engine(url)
        yield engine
        engine.dispose()


@pytest.fixture(params=["sqlite", "postgresql"], scope="module")
def database_kind(request: pytest.FixtureRequest) -> str:
    """The test runs once for each kind of database."""
    return str(request.param)


@pytest.fixture
def empty_database_url(database_kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """URL of a database of the test's own, without tables."""
    if database_kind == "sqlite":
        yield f"sqlite:///{tmp_path / 'test.db'}"
        return
    with postgres_database(request.getfixturevalue("postgres_url"), "template0") as url:
        yield url


@pytest.fixture
def database_url(database_kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """URL of a database that no other test uses meanwhile, with all tables, empty."""
    if database_kind == "sqlite":
        path = shutil.copy(request.getfixturevalue("sqlite_template"), tmp_path / "test.db")
        yield f"sqlite:///{path}"
        return
    shared = request.getfixturevalue("shared_postgres")
    yield shared.url.render_as_string(hide_password=False)
    with shared.begin() as connection:
        connection.exec_driver_sql(_emptying())


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> Settings:
    """Settings that keep everything inside the test's folder and its database; no variable is looked for."""
    return Settings.model_construct(data_dir=tmp_path / "var", database_url=database_url)


@pytest.fixture
def database(settings: Settings) -> Iterator[Database]:
    """A migrated, empty database; once SQLite, once PostgreSQL."""
    database = Database(settings)
    yield database
    database.dispose()


@contextmanager
def postgres_database(server: str, template: str, options: str = "") -> Iterator[str]:
    """Yield the URL of a new database made from ``template``; drop it in the end."""
    name = f"ccmtl_test_{secrets.token_hex(6)}"
    _execute(server, f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY {options}")
    yield _sibling(server, name)
    _execute(server, f"DROP DATABASE {name} WITH (FORCE)")


def _sibling(url: str, name: str) -> str:
    return make_url(url).set(database=name).render_as_string(hide_password=False)


@cache
def _emptying() -> str:
    """End what a test has left connected, delete all rows, and say of the schema what it is.

    Deleting a few rows takes a quarter of the time of TRUNCATE, which makes the files of each table anew.
    """
    others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    tables = [table.name for table in Base.metadata.sorted_tables]
    revision = ScriptDirectory.from_config(migration_config()).get_current_head()
    statements = [
        f"SELECT pg_terminate_backend(pid) {others}",
        f"LOCK TABLE {', '.join(tables)}",  # waits for what is ending
        *(f"DELETE FROM {name}" for name in reversed(tables)),
        f"UPDATE alembic_version SET version_num = '{revision}'",
    ]
    return "; ".join(statements)


def _execute(url: str, *statements: str) -> None:
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for statement in statements:
            connection.execute(text(statement))
    engine.dispose()
