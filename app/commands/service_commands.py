"""``ccmtl serve``, ``api``, ``worker`` and ``migrate``: start that process, or say in one line why not.

The settings are checked before the process's modules are imported, which takes seconds.
"""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import typer
from pydantic import ValidationError
from sqlalchemy import make_url
from sqlalchemy.exc import DBAPIError

from app.processes.cannot_start import CannotStart
from app.settings import Settings, explained, variable

Host = Annotated[str | None, typer.Option(help="Address to listen on.  [CCMTL_HOST]")]
Port = Annotated[int | None, typer.Option(help="Port to listen on; 0: a free one.  [CCMTL_PORT]")]
Workers = Annotated[int | None, typer.Option(help="Worker processes to keep running.  [CCMTL_WORKERS]")]


def serve(host: Host = None, port: Port = None, workers: Workers = None) -> None:
    """Run the API and the workers; restart what ends."""
    run("app.processes.supervisor", "supervise", host=host, port=port, workers=workers)


def api(host: Host = None, port: Port = None) -> None:
    """Run the API alone."""
    run("app.main", "run_api", host=host, port=port)


def worker() -> None:
    """Run one worker alone."""
    run("app.jobs.worker", "run_worker")


def migrate() -> None:
    """Bring the database's tables up to date."""
    run("app.persistence.schema", "run_migrations")
    typer.echo("The database is up to date.")


def run(module: str, function: str, *arguments: Any, **given: Any) -> Any:
    """Call ``function`` with the settings and ``arguments``, and return what it does.

    What an operator can mend becomes one line and exit code 1.
    """
    try:
        settings = Settings(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        raise _refused(*map(explained, error.errors())) from None
    try:
        return getattr(import_module(module), function)(settings, *arguments)
    except CannotStart as error:
        raise _refused(str(error)) from None
    except DBAPIError as error:
        raise _refused(f"The database cannot be used: {error.orig}{_file(settings)}") from None
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise _refused(f"Cannot start: {where}{error.strerror or error}") from None


def _refused(*lines: str) -> typer.Exit:
    for line in lines:
        typer.echo(line, err=True)
    return typer.Exit(1)


def _file(settings: Settings) -> str:
    """The file of a SQLite database, which its errors do not name, and the variable that says where it is."""
    if not settings.is_sqlite:
        return ""
    setting = variable("data_dir" if settings.database_url is None else "database_url")
    return f": {make_url(settings.resolved_database_url).database} ({setting})"
