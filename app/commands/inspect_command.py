"""``ccmtl inspect``: its options; what it runs imports the library, for which help does not wait."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.commands.file_options import Stated, told_of_series
from app.commands.model_commands import run


@told_of_series()
def inspect(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A file of series; how it is written is found.")
    ],
    as_json: Annotated[
        bool, typer.Option("--json", metavar="", help="Print the report as one JSON object.")
    ] = False,
    *,
    stated: Stated,
) -> None:
    """Say how a file of series is understood, what is wrong with it, and what became of each row.

    Nothing is repaired that no option names, and each repair is counted. What can be used is forecast by
    ccmtl forecast with the same options. For example, of rows of receipts:

    ccmtl inspect receipts.csv --unique-id product --y sold --duplicates sum --fill zero

    Exit codes: 0 the file can be used; 1 something must be chosen or put right first, or the file cannot be
    read; 2 a wrong argument.
    """
    run("inspect_file.inspect_file", file, stated, as_json)
