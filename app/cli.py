"""The ``ccmtl`` command.

``serve``, ``api``, ``worker`` and ``migrate`` are the service; ``fit`` and ``statistics-sql`` need none.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from pydantic import ValidationError
from sqlalchemy.exc import DBAPIError
from typer.core import TyperCommand

from app.database import Database, DatabaseUnsuitable
from app.fit_command import fit_command
from app.jobs.worker import run_worker
from app.listener import CannotListen
from app.logs import configure_logging
from app.main import run_api
from app.schema import SchemaOutOfDate, upgrade
from app.settings import Settings, explained
from app.statistics_sql_command import statistics_sql_command
from app.supervisor import supervise


class Command(TyperCommand):
    """A command whose ``--help`` is shown as the switch that it is."""

    def get_help_option(self, ctx: Any) -> Any:
        """Return the option without a value's name."""
        option = super().get_help_option(ctx)
        if option is not None:
            option.metavar = ""
        return option


cli = typer.Typer(
    name="ccmtl",
    help="Forecast tens of thousands of products at once. The service is configured by CCMTL_… variables.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Host = Annotated[str | None, typer.Option(help="Address to listen on.  [CCMTL_HOST]")]
Port = Annotated[int | None, typer.Option(help="Port to listen on; 0: a free one.  [CCMTL_PORT]")]
Workers = Annotated[int | None, typer.Option(help="Worker processes to keep running.  [CCMTL_WORKERS]")]


@cli.command(cls=Command)
def serve(host: Host = None, port: Port = None, workers: Workers = None) -> None:
    """Run the API and the workers; restart what ends."""
    with _explained():
        supervise(_settings(host=host, port=port, workers=workers))


@cli.command(cls=Command)
def api(host: Host = None, port: Port = None) -> None:
    """Run the API alone."""
    with _explained():
        run_api(_settings(host=host, port=port))


@cli.command(cls=Command)
def worker() -> None:
    """Run one worker alone."""
    with _explained():
        run_worker(_settings())


@cli.command(cls=Command)
def migrate() -> None:
    """Bring the database's tables up to date."""
    with _explained():
        settings = _settings()
        configure_logging("migrate", settings.log_level)
        database = Database(settings)
        try:
            upgrade(database)
        finally:
            database.dispose()
        typer.echo("The database is up to date.")


cli.command("fit", cls=Command)(fit_command)
cli.command("statistics-sql", cls=Command)(statistics_sql_command)


def main() -> None:
    """Run the command line."""
    cli()


def _settings(**given: Any) -> Settings:
    return Settings(**{name: value for name, value in given.items() if value is not None})


@contextmanager
def _explained() -> Iterator[None]:
    """Turn what an operator can mend into one sentence and exit code 1."""
    try:
        yield
    except ValidationError as error:
        for fault in error.errors():
            typer.echo(explained(fault), err=True)
        raise typer.Exit(1) from None
    except (SchemaOutOfDate, DatabaseUnsuitable, CannotListen) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    except DBAPIError as error:
        typer.echo(f"The database cannot be used: {error.orig}", err=True)
        raise typer.Exit(1) from None
    except OSError as error:
        typer.echo(f"Cannot start: {error}", err=True)
        raise typer.Exit(1) from None


if __name__ == "__main__":
    main()
