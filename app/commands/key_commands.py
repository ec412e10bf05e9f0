"""``ccmtl keys create``, ``list`` and ``revoke``: API keys, made where the database is reached."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from app.commands.service_commands import run

keys = typer.Typer(
    name="keys",
    help="Make, list and revoke API keys.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

SCOPES = "data,train,predict"
MAX_DAYS = 36_525
_WORKSPACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)


def _checked(workspace: str | None) -> str | None:
    if workspace is not None and not _WORKSPACE.fullmatch(workspace):
        raise typer.BadParameter("must be letters, digits, dots, dashes and underscores, at most 100")
    return workspace


def _in_range(days: float | None) -> float | None:
    if days is not None and not 0 < days <= MAX_DAYS:
        raise typer.BadParameter(f"must be more than 0, and at most {MAX_DAYS}")
    return days


@keys.command()
def create(
    name: Annotated[str, typer.Argument(help="Whom or what the key is for.", metavar="NAME")],
    workspace: Annotated[
        str,
        typer.Option(
            help="What the key sees and changes; what others have does not exist for it.",
            callback=_checked,
        ),
    ] = "default",
    scopes: Annotated[str, typer.Option(help="Of data, train, predict and admin, with commas.")] = SCOPES,
    days: Annotated[
        float | None,
        typer.Option(help="Days until it ends, more than 0; without, never.", callback=_in_range),
    ] = None,
    requests_per_minute: Annotated[
        int | None, typer.Option(help="Requests a minute that each API process answers it.", min=1)
    ] = None,
) -> None:
    """Make a key and print it.

    It is shown this once: only a hash of it is stored.
    """
    wanted = [scope.strip() for scope in scopes.split(",")]
    made = run("app.access.administration", "create", name, workspace, wanted, days, requests_per_minute)
    allowed = ", ".join(made.scopes)
    typer.echo(f"Key {made.id} of the workspace {made.workspace!r} allows: {allowed}. Keep it now:", err=True)
    typer.echo(made.key)


@keys.command("list")
def list_keys(
    workspace: Annotated[
        str | None, typer.Option(help="Only those of one workspace.", callback=_checked)
    ] = None,
) -> None:
    """List all keys.

    Revoked and expired ones are among them.
    """
    for line in run("app.access.administration", "listed", workspace):
        typer.echo(line)


@keys.command()
def revoke(key_id: Annotated[str, typer.Argument(help="The id, as listed.", metavar="ID")]) -> None:
    """Revoke a key.

    Within five seconds it is refused everywhere.
    """
    run("app.access.administration", "revoke", key_id)
    typer.echo(f"The key {key_id} is revoked.")
