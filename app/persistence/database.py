"""Connect to the database; sessions read only, or write in one transaction, and see one workspace or all."""

from __future__ import annotations

import copy
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Engine, Float, create_engine, event
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import ORMExecuteState, Session, with_loader_criteria
from sqlalchemy.sql.functions import FunctionElement

from app.persistence.base import Owned
from app.processes.cannot_start import CannotStart
from app.settings import Settings, make_folder

_POSTGRESQL = {
    "client_encoding": "utf8",
    "connect_timeout": 10,
    # A server that is gone without a word (its host, the network) counts as away after some ten seconds;
    # left to itself, the kernel would wait for a quarter of an hour or, with nothing to send, for two hours.
    "tcp_user_timeout": 10_000,
    "keepalives_idle": 5,
    "keepalives_interval": 5,
}
"""Parameters of libpq."""

_SQLITE_PATIENCE = 30
"""Seconds to wait for another process's lock."""


class DatabaseNow(FunctionElement[float]):
    """Seconds since 1970 by the database's clock, the only one that all workers share."""

    type = Float(53)
    inherit_cache = True


@compiles(DatabaseNow, "sqlite")
def _sqlite_now(element: DatabaseNow, compiler: Any, **kw: Any) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"


@compiles(DatabaseNow, "postgresql")
def _postgresql_now(element: DatabaseNow, compiler: Any, **kw: Any) -> str:
    return "extract(epoch from clock_timestamp())"


class DatabaseUnsuitable(CannotStart, OperationalError):
    """The database answers but cannot store all text; it counts as away until someone replaces it."""

    def __init__(self, reason: str) -> None:
        super().__init__(None, None, ValueError(reason))

    def __str__(self) -> str:
        return str(self.orig)


class _SessionOfWorkspace(Session):
    """A session that sees, changes and adds only what belongs to the workspace in its ``info``."""


@event.listens_for(_SessionOfWorkspace, "do_orm_execute")
def _see_own_things(execution: ORMExecuteState) -> None:
    if execution.is_select or execution.is_update or execution.is_delete:
        workspace = execution.session.info["workspace"]
        own = with_loader_criteria(Owned, lambda table: table.workspace == workspace, include_aliases=True)
        execution.statement = execution.statement.options(own)


@event.listens_for(_SessionOfWorkspace, "before_flush")
def _add_own_things(session: Session, context: Any, instances: Any) -> None:
    for added in session.new:
        if isinstance(added, Owned):
            added.workspace = session.info["workspace"]


class Database:
    """The engine; all sessions come from :meth:`read` and :meth:`write`.

    They see the things of all workspaces, as workers must; those of what :meth:`of` returns see one's.
    """

    def __init__(self, settings: Settings) -> None:
        self._workspace: str | None = None
        self.is_sqlite = settings.is_sqlite
        if settings.is_sqlite and settings.database_url is None:
            make_folder(settings.data_dir, "data_dir")
        self.engine: Engine = create_engine(
            settings.resolved_database_url,
            pool_pre_ping=not settings.is_sqlite,
            connect_args={} if settings.is_sqlite else _POSTGRESQL,
            # In sum one connection for each of the 40 threads that endpoints run on.
            pool_size=10,
            max_overflow=30,
        )
        if settings.is_sqlite:
            event.listen(self.engine, "connect", _configure_sqlite)
            event.listen(self.engine, "begin", _begin_sqlite)
        else:
            # Before the dialect looks at the server, which fails where text arrives as bytes.
            event.listen(self.engine, "connect", _require_utf8, insert=True)
            event.listen(self.engine, "connect", _configure_postgresql)
        self._writer = self.engine.execution_options(sqlite_begin="BEGIN IMMEDIATE")

    def of(self, workspace: str | None) -> Database:
        """Return this database as ``workspace`` sees it, or as it is for None.

        Its sessions find, change and delete nothing of another workspace, and what they add belongs to it.
        """
        seen = copy.copy(self)
        seen._workspace = workspace
        return seen

    @contextmanager
    def read(self) -> Iterator[Session]:
        """Yield a session whose work is always rolled back."""
        with self._session(self.engine) as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        """Yield a session that commits at the end of the block, and rolls back if the block raises."""
        with self._session(self._writer) as session, session.begin():
            yield session

    @contextmanager
    def altering(self) -> Iterator[Connection]:
        """Yield a connection for changes of tables, in one transaction.

        To change a table, SQLite has to make it anew and drop the old one, which must not delete the rows
        that refer to it: references are checked at the end instead.
        """
        with self._writer.connect() as connection:
            driver = connection.connection.driver_connection
            if self.is_sqlite and driver is not None:
                driver.execute("PRAGMA foreign_keys=OFF").close()
            try:
                with connection.begin():
                    yield connection
                    if self.is_sqlite and (
                        lost := connection.exec_driver_sql("PRAGMA foreign_key_check").all()
                    ):
                        raise RuntimeError(f"rows would refer to what is not there: {lost[:5]}")
            finally:
                if self.is_sqlite and driver is not None:
                    driver.execute("PRAGMA foreign_keys=ON").close()

    def _session(self, bind: Engine) -> Session:
        if self._workspace is None:
            return Session(bind, expire_on_commit=False)
        return _SessionOfWorkspace(bind, expire_on_commit=False, info={"workspace": self._workspace})

    def dispose(self) -> None:
        """Close every pooled connection."""
        self.engine.dispose()


def _configure_sqlite(connection: Any, record: Any) -> None:
    # The driver's own transaction handling cannot start BEGIN IMMEDIATE: switch it off, see _begin_sqlite.
    connection.isolation_level = None
    connection.execute(f"PRAGMA busy_timeout={1000 * _SQLITE_PATIENCE}").close()
    _keep_a_log_of_writes(connection)
    for pragma in ("synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}").close()


def _keep_a_log_of_writes(connection: Any) -> None:
    # Only a new file changes its mode. While another process does that, SQLite refuses without waiting.
    until = time.monotonic() + _SQLITE_PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL").close()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(0.01)
        else:
            return


def _require_utf8(connection: Any, record: Any) -> None:
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise DatabaseUnsuitable(
            f"The database {connection.info.dbname!r} has the encoding {encoding}, which cannot hold every "
            "product's name. Create one with the encoding UTF8, for example "
            "`createdb --encoding=UTF8 --template=template0 ccmtl`, and name it in CCMTL_DATABASE_URL."
        )


def _configure_postgresql(connection: Any, record: Any) -> None:
    # A process that is suspended in the middle of a transaction must not hold its locks for ever.
    for parameter, milliseconds in (
        ("lock_timeout", 30_000),
        ("idle_in_transaction_session_timeout", 60_000),
    ):
        connection.execute(f"SET {parameter} = {milliseconds}")
    connection.commit()


def _begin_sqlite(connection: Connection) -> None:
    # A writer takes the lock at once: upgrading a read transaction later would fail instead of waiting.
    connection.exec_driver_sql(connection.get_execution_options().get("sqlite_begin", "BEGIN"))
