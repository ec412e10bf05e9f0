"""What commands print: with control characters of the data, such as of an id, written out for a terminal."""

from __future__ import annotations

import errno
import json
import os
import re
import sys
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def escaped(text: str) -> str:
    r"""Return the text with its control characters written out, which could change what a terminal shows.

    Examples
    --------
    >>> print(escaped("A\x1b[31m"))
    A\x1b[31m
    """
    return _CONTROL.sub(lambda sign: f"\\x{ord(sign[0]):02x}", text)


class Terminal(Console):
    """A console that writes control characters of texts out."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Return the text to show."""
        return super().render_str(escaped(text), **options)


def messages_console() -> Terminal:
    """Return the console for what is said beside the answer, on standard error."""
    return Terminal(stderr=True, highlight=False)


def print_answer(text: str) -> None:
    """Print sentences and tables to standard output; raise OSError if it cannot be written."""
    print_exactly(escaped(text))


def print_json(answer: object) -> None:
    """Print one JSON object, in which control characters stand as JSON writes them."""
    text = json.dumps(answer, ensure_ascii=False, allow_nan=False)
    print_exactly(_CONTROL.sub(lambda sign: f"\\u{ord(sign[0]):04x}", text))


def print_data(text: str) -> None:
    """Print data such as CSV: as it is into a file or a pipe, and for a terminal with escapes."""
    print_exactly(escaped(text) if is_terminal() else text)


def is_terminal() -> bool:
    """Return whether standard output is one."""
    return sys.stdout is not None and sys.stdout.isatty()


def print_exactly(text: str) -> None:
    """Print to standard output, as UTF-8 whatever the locale; raise OSError if it cannot be written."""
    if sys.stdout is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    typer.echo(text.encode("utf-8", "surrogateescape"), nl=not text.endswith("\n"))
