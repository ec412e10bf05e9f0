"""Say why a command cannot use a file, its data or an argument."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer
from rich.console import Console

from app.commands.option_names import in_command
from app.commands.printing import escaped
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
        raise typer.BadParameter(escaped(in_command(str(error)))) from None
    except (CCMTLError, OSError, MemoryError) as error:
        fault = in_command(str(error))
    else:
        return
    messages.print(fault, style="red", markup=False, soft_wrap=True)
    raise typer.Exit(1)
