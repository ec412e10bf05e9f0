"""Options by which a command is told how its file is written, the same for all that read files."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Annotated, Any, Literal

import typer

STATED: dict[str, Any] = {
    "delimiter": Annotated[
        str | None, typer.Option(metavar="CHAR", help="Between fields of text; tab for tabs.")
    ],
    "encoding": Annotated[
        str | None, typer.Option(metavar="NAME", help="Of text, as windows-1252 or gb18030.")
    ],
    "decimal": Annotated[Literal[".", ","] | None, typer.Option(help="The decimal sign of numbers.")],
    "thousands": Annotated[
        Literal["none", ",", ".", " ", "'"] | None, typer.Option(help="What parts thousands.")
    ],
    "quote": Annotated[str | None, typer.Option(metavar="CHAR", help="Around fields with a delimiter.")],
    "header_row": Annotated[
        int | None, typer.Option(metavar="LINE", min=0, help="The line that names the columns; 0: none does.")
    ],
    "comment": Annotated[
        str | None, typer.Option(metavar="TEXT", help="What lines begin with that are no rows.")
    ],
    "currency": Annotated[str | None, typer.Option(metavar="TEXT", help="A sign beside numbers, taken off.")],
    "ragged": Annotated[
        Literal["refuse", "pad", "skip"] | None,
        typer.Option(help="Rows of another length: pad short ones, or skip all of them, and blank lines."),
    ],
    "sheet": Annotated[str | None, typer.Option(metavar="NAME", help="The sheet of a workbook.")],
    "member": Annotated[str | None, typer.Option(metavar="PATH", help="The file in an archive.")],
}
OF_SERIES: dict[str, Any] = {
    "shape": Annotated[
        Literal["auto", "long", "wide"] | None,
        typer.Option(help="long: a row holds one value; wide: a column for each period or series."),
    ],
    "periods": Annotated[
        str | None,
        typer.Option(metavar="PATTERN", help="Of a wide table: columns that are periods, as 'W*'."),
    ],
}


def told_of_files(options: dict[str, Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options, and pass those that were given to its parameter ``written``."""

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        def told(**given: Any) -> None:
            stated = {name: given.pop(name) for name in options}
            command(**given, written={name: value for name, value in stated.items() if value is not None})

        own = signature(command, eval_str=True)
        kept = [parameter for name, parameter in own.parameters.items() if name != "written"]
        more = [
            Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
            for name, annotation in options.items()
        ]
        told.__doc__, told.__name__ = command.__doc__, command.__name__
        told.__annotations__ = {parameter.name: parameter.annotation for parameter in [*kept, *more]}
        vars(told)["__signature__"] = own.replace(
            parameters=[parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in [*kept, *more]]
        )
        return told

    return decorated
