"""``ccmtl inspect``: its options; what it runs imports the library, for which help does not wait."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from app.commands.file_options import OF_SERIES, STATED, told_of_files
from app.commands.options import EVERY_HELP, Every, listed

Duplicates = Literal["error", "sum", "mean", "last"]
Missing = Literal["error", "absent"]
Negatives = Literal["keep", "clip", "error"]
Keep = Literal["keep", "drop"]
Fills = Literal["none", "zero", "forward"]
Starts = Literal["series", "dataset"]


@told_of_files(STATED | OF_SERIES)
def inspect(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A file of series; how it is written is found.")
    ],
    unique_id: Annotated[
        str | None,
        typer.Option(
            metavar="COL[,COL]",
            help="Column with the id of the series, or columns that make one; found if not given.",
        ),
    ] = None,
    ds: Annotated[
        str | None, typer.Option(metavar="COL", help="Column with the time; found if not given.")
    ] = None,
    y: Annotated[
        str | None, typer.Option(metavar="COL", help="Column with the value; found if not given.")
    ] = None,
    ds_format: Annotated[
        str | None,
        typer.Option(
            metavar="PATTERN",
            help="How times are written, as %d/%m/%Y, %G-W%V, excel, epoch, integer; found if not given.",
        ),
    ] = None,
    frequency: Annotated[
        Every | None, typer.Option(metavar="PERIOD", help=f"{EVERY_HELP} Found if not given.")
    ] = None,
    duplicates: Annotated[
        Duplicates, typer.Option(help="What several rows of a series in one period become.")
    ] = "error",
    missing: Annotated[Missing, typer.Option(help="What a row without a value is.")] = "error",
    negatives: Annotated[Negatives, typer.Option(help="What becomes of values below zero.")] = "keep",
    leading_zeros: Annotated[
        Keep, typer.Option(help="What becomes of zeros before a series is first sold.")
    ] = "keep",
    partial_last: Annotated[
        Keep, typer.Option(help="What becomes of the last period, where the file ends within it.")
    ] = "keep",
    fill: Annotated[
        Fills, typer.Option(help="What stands for a period without a row, once its series has begun.")
    ] = "none",
    fill_start: Annotated[
        Starts, typer.Option(help="Whether filling begins with each series, or with the first of all.")
    ] = "series",
    as_json: Annotated[
        bool, typer.Option("--json", metavar="", help="Print the report as one JSON object.")
    ] = False,
    *,
    written: Mapping[str, Any],
) -> None:
    """Say how a file of series is understood, what is wrong with it, and what became of each row.

    Nothing is repaired that no option names, and each repair is counted. For example, of rows of receipts:

    ccmtl inspect receipts.csv --unique-id product --y sold --duplicates sum --fill zero

    Exit codes: 0 the file can be used; 1 something must be chosen or put right first, or the file cannot be
    read; 2 a wrong argument.
    """
    of_id = None if unique_id is None else listed(unique_id)
    columns = {"unique_id": of_id, "ds": ds, "y": y, "ds_format": ds_format, "frequency": frequency}
    policies: dict[str, str] = {"duplicates": duplicates, "missing": missing, "negatives": negatives}
    policies |= {"leading_zeros": leading_zeros, "partial_last": partial_last}
    policies |= {"fill": fill, "fill_start": fill_start}
    import_module("app.commands.inspect_file").inspect_file(file, columns, policies, as_json, written)
