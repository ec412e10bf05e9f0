"""Options by which commands are told what a file holds: the same names for all that read files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Annotated, Any, Literal, get_args

import typer

from app.commands.lists import listed
from app.reading.stated import OF_SHAPE, OF_TEXT, POLICIES, Statement

Command = Callable[..., None]

Every = Literal[
    "h", "D", "W", "MS", "B", "D-MON", "D-TUE", "D-WED", "D-THU", "D-FRI", "D-SAT", "D-SUN",
    "W-MON", "W-TUE", "W-WED", "W-THU", "W-FRI", "W-SAT", "W-SUN", "ME", "QS", "QE", "YS", "YE", "1",
]  # fmt: skip
COLUMNS = {
    "unique_id": Statement(
        str, "Column with the id of the series, or columns that make one; found if not given.", "COL[,COL]"
    ),
    "ds": Statement(str, "Column with the time; found if not given.", "COL"),
    "y": Statement(str, "Column with the value; found if not given.", "COL"),
    "ds_format": Statement(
        str,
        "How times are written, as %d/%m/%Y, %G-W%V, excel, epoch, integer; found if not given.",
        "PATTERN",
    ),
    "frequency": Statement(
        Every,
        "h, D, W (from Monday), MS, QS or YS; W-FRI (weeks that end so), ME, QE or YE; B (Monday to Friday) "
        "or D-SUN (all but Sundays); 1 for numbers. Found if not given.",
        "PERIOD",
    ),
}
"""What of a file of series is found where it is not stated."""


@dataclass(frozen=True)
class Stated:
    """What is stated of a file of series, by the names of the library; the rest is found."""

    columns: Mapping[str, Any]
    """Of ``COLUMNS``; ``unique_id`` is a list."""
    policies: Mapping[str, str]
    written: Mapping[str, Any]
    """How the file is written."""

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Stated:
        """Return the object of the options that were given."""

        def of_names(names: Mapping[str, Any]) -> dict[str, Any]:
            return {name: given[name] for name in names if given[name] is not None}

        columns = of_names(COLUMNS)
        if "unique_id" in columns:
            columns["unique_id"] = listed(columns["unique_id"])
        return cls(columns, of_names(POLICIES), of_names(OF_TEXT | OF_SHAPE))

    @property
    def named_columns(self) -> list[str]:
        """The columns that are named."""
        return [
            *self.columns.get("unique_id", []),
            *(self.columns[k] for k in ("ds", "y") if k in self.columns),
        ]

    @property
    def of_series(self) -> list[str]:
        """The options that have a meaning for files of series alone."""
        return list(map(option, [*self.columns, *self.policies, *(self.written.keys() & OF_SHAPE.keys())]))


def option(name: str) -> str:
    """Return the option of a name in the library.

    Examples
    --------
    >>> option("ds_format")
    '--ds-format'
    """
    return f"--{name.replace('_', '-')}"


def told_of_file(command: Command) -> Command:
    """Give a command the options of any file, and pass those that were given as its ``written``."""

    def stated(given: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in given.items() if value is not None}

    return _with_options(command, "written", _parameters(OF_TEXT), stated)


def told_of_series(about: str = "") -> Callable[[Command], Command]:
    """Give a command the options of a file of series, and pass them as its ``stated``, a `Stated`.

    ``about`` stands before the help of those that have no meaning for other files.
    """
    options = _parameters(COLUMNS, about) + _parameters(POLICIES, about) + _parameters(OF_TEXT | OF_SHAPE)
    return lambda command: _with_options(command, "stated", options, Stated.of)


def _parameters(statements: Mapping[str, Statement], about: str = "") -> list[Parameter]:
    return [
        Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=_annotated(one, about))
        for name, one in statements.items()
    ]


def _annotated(one: Statement, about: str) -> Any:
    is_policy = one in POLICIES.values()
    option = typer.Option(
        metavar=one.value,
        help=about + one.text,
        min=0 if one.kind is int else None,
        show_default=get_args(one.kind)[0] if is_policy else False,
    )
    return Annotated[one.kind | None, option]


def _with_options(
    command: Command, name: str, options: list[Parameter], gathered: Callable[[Mapping[str, Any]], object]
) -> Command:
    """The command with the options, whose values are ``gathered`` into its parameter of that name."""

    def told(**given: Any) -> None:
        stated = {one.name: given.pop(one.name) for one in options}
        command(**given, **{name: gathered(stated)})

    own = signature(command, eval_str=True)
    kept = [parameter for parameter in own.parameters.values() if parameter.name != name]
    told.__doc__, told.__name__ = command.__doc__, command.__name__
    told.__annotations__ = {parameter.name: parameter.annotation for parameter in [*kept, *options]}
    vars(told)["__signature__"] = own.replace(
        parameters=[parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in [*kept, *options]]
    )
    return told
