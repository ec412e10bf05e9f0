"""The ``ccmtl`` command. It imports only what the subcommand needs, so that help is quick.

``serve``, ``api``, ``worker``, ``migrate`` and ``keys`` are about the service; the others need none. Their
libraries take seconds to import, and the help or a wrong setting should not wait for that.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

COMMANDS = {
    "serve": ("service_commands.serve", "Run the API and the workers; restart what ends."),
    "api": ("service_commands.api", "Run the API alone."),
    "worker": ("service_commands.worker", "Run one worker alone."),
    "migrate": ("service_commands.migrate", "Bring the database's tables up to date."),
    "keys": ("key_commands.keys", "Make, list and revoke API keys."),
    "fit": (
        "model_commands.fit",
        "Fit one linear model per task from a file, similar tasks pulled together; needs no server.",
    ),
    "predict": ("model_commands.predict", "Predict each row of a file with a model that ccmtl fit wrote."),
    "forecast": (
        "forecast_commands.forecast",
        "Forecast each series of a file, by itself or with a model that ccmtl fit --lags wrote.",
    ),
    "backtest": (
        "forecast_commands.backtest",
        "Forecast the last windows of a file from what lay before, and say who is nearest.",
    ),
    "inspect": (
        "inspect_command.inspect",
        "Say how a file of series is understood, what is wrong with it, and what became of each row.",
    ),
    "reproduce": (
        "reproduce_command.reproduce",
        "Run an experiment of the paper: CCMTL beside its rivals, with tests, times and a figure.",
    ),
    "statistics-sql": (
        "model_commands.statistics_sql",
        "Write the query that computes statistics for training in your own database.",
    ),
}
"""Where each command's function is, and the first line of its help."""
HELP = {"help_option_names": ["-h", "--help"]}


class Command(TyperCommand):
    """A command whose ``--help`` is shown as the switch that it is."""

    def get_help_option(self, ctx: Any) -> Any:
        """Return the option without a value's name."""
        return _switch(super().get_help_option(ctx))


class NamedCommand(TyperCommand):
    """A command that is known by its name and help until it is called."""

    def __init__(self, name: str) -> None:
        super().__init__(name, help=COMMANDS[name][1])

    def make_context(self, info_name: Any, args: Any, parent: Any = None, **extra: Any) -> Any:
        """Return the context of the command itself."""
        return self.imported().make_context(info_name, args, parent=parent, **extra)

    def imported(self) -> Any:
        """Return the command itself."""
        module, function = COMMANDS[str(self.name)][0].split(".")
        command = getattr(import_module(f"app.commands.{module}"), function)
        if isinstance(command, typer.Typer):
            return get_command(command)
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(self.name, cls=Command, context_settings=HELP)(command)
        return get_command(alone)


class Commands(TyperGroup):
    """All of ``COMMANDS``, in their order."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**{**attributes, "commands": {name: NamedCommand(name) for name in COMMANDS}})

    def get_help_option(self, ctx: Any) -> Any:
        """Return the option without a value's name."""
        return _switch(super().get_help_option(ctx))


cli = typer.Typer(
    name="ccmtl",
    cls=Commands,
    help="Forecast tens of thousands of products at once. Variables CCMTL_… configure the service; "
    "docs/operations.md lists them.",
    context_settings=HELP,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # rich's tables break words, and lines where the source does
)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"ccmtl {version('ccmtl')}")
        raise typer.Exit


@cli.callback()
def _options(
    shown: Annotated[
        bool,
        typer.Option(
            "--version", metavar="", is_eager=True, callback=_print_version, help="Print the version."
        ),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line."""
    try:
        cli()
    except OSError as error:  # the commands explain their own: this one comes from what they print
        _abandon_output()
        typer.echo(f"Standard output cannot be written: {error.strerror}", err=True)
        sys.exit(1)


def _abandon_output() -> None:
    """Let what is left in the buffer of standard output go where there is always room."""
    if sys.stdout is None:  # it was closed from the beginning
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _switch(option: Any) -> Any:
    if option is not None:
        option.metavar = ""
    return option


if __name__ == "__main__":
    main()
