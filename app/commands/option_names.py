"""Messages of the library, with its options as a command calls them."""

from __future__ import annotations

import shlex
from typing import Any

from app.commands.file_options import COLUMNS, option
from app.reading.stated import OF_SHAPE, OF_TEXT, POLICIES
from ccmtl_core.base.display import with_options

_KNOWN = COLUMNS | POLICIES | OF_TEXT | OF_SHAPE


def in_command(text: str) -> str:
    """Return a message with the options of the command.

    Examples
    --------
    >>> in_command("state `unique_id=['store', 'item']`, or `delimiter=';'`")
    "state --unique-id store,item, or --delimiter ';'"
    """
    return with_options(text, _called)


def stated_as(name: str, value: object) -> str:
    """Return the option with its value, as a shell takes it."""
    text = ",".join(value) if isinstance(value, list) else str(value)
    return f"{option(name)} {'tab' if text == chr(9) else shlex.quote(text)}"


def _called(name: str, value: Any) -> str | None:
    if name not in _KNOWN:
        return None
    return option(name) if value is None else stated_as(name, value)
