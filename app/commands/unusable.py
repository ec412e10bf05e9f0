"""Print what a command was asked for, or say why it cannot use a file, its data or an argument."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer
from rich.console import Console

from app.commands.option_names import in_command
from ccmtl_core import CCMTLError, ParameterError


@contextmanager
def explaining(messages: Console) -> Iterator[None]:
    """Turn errors of the block into a sentence and exit code 1, or 2 where an argument is wrong."""
    try:
        yield
    except FileNotFoundError as error:
        fault = f"There is no file {error.filename}; this runs in {Path.cwd()}: give the file's full path"
    except IsADirectoryError as error:
        fault = f"{error.filename} is a folder; give one file, with the rows of all files in it"
    except ParameterError as error:
        raise typer.BadParameter(in_command(str(error))) from None
    except (CCMTLError, OSError, MemoryError) as error:
        fault = in_command(str(error))
    else:
        return
    messages.print(fault, style="red", markup=False, soft_wrap=True)
    raise typer.Exit(1)


def print_answer(text: str) -> None:
    """Print to standard output, as UTF-8 whatever the locale; raise OSError if it cannot be written."""
    if sys.stdout is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    typer.echo(text.encode("utf-8", "surrogateescape"), nl=not text.endswith("\n"))
