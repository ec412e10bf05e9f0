"""End a command that cannot use a file, its data or an argument: say why, and exit with code 1."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer
from rich.console import Console

from ccmtl_core import CCMTLError

UNUSABLE = 1
"""The exit code."""


@contextmanager
def explaining(messages: Console) -> Iterator[None]:
    """Turn errors of the block into a sentence and the exit code."""
    try:
        yield
    except FileNotFoundError as error:
        fault = f"There is no file {error.filename}; this runs in {Path.cwd()}: give the file's full path"
    except IsADirectoryError as error:
        fault = f"{error.filename} is a folder; give one file, with the rows of all files in it"
    except (CCMTLError, OSError) as error:
        fault = str(error)
    else:
        return
    messages.print(fault, style="red", markup=False, soft_wrap=True)
    raise typer.Exit(UNUSABLE)
