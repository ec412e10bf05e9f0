"""Path and query parameters that several slices share."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Generic, Self, TypeVar, get_origin

from fastapi import Path, Query, Request
from fastapi.dependencies.models import Dependant
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, StringConstraints
from starlette.convertors import Convertor, register_url_convertor

from app.http.errors import MAX_ERRORS, BadRequest, Fault, InvalidContent
from app.http.names import AFTER, NAME, NAME_CURSOR, NO_NUL, hint
from ccmtl_core.base.display import counted

MAX_QUERY_BYTES = 16 * 1024

Item = TypeVar("Item")


def _plain_digits(value: object) -> object:
    if isinstance(value, str) and not re.fullmatch("-?(0|[1-9][0-9]*)", value, re.ASCII):
        raise ValueError("must be a whole number in plain digits, such as 1")
    return value


def _no_number(alias: str) -> str:
    if alias.isdecimal():
        raise ValueError("must not be a number, which would look like a version's; add a letter")
    return alias


PLAIN_DIGITS = BeforeValidator(_plain_digits)
"""For an integer that is a name: accepts 1, but not 01, +1 or 1.0."""


class _ModelInPath(Convertor[str]):
    regex = "[^/]+(?:/versions/[^/]+)?"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("model", _ModelInPath())
"""For paths such as ``/{model:model}/weights``: takes the three forms of :data:`ModelPath`."""

ModelName = Annotated[str, Path(max_length=200, pattern=NO_NUL, description="The model's name.")]
ModelPath = Annotated[
    str,
    Path(
        max_length=300,
        pattern=NO_NUL,
        description="`name` for the newest version, `name@alias`, or `name/versions/3`.",
        examples=["shop", "shop@production", "shop/versions/3"],
    ),
]
AliasName = Annotated[str, Path(pattern=NAME, description="The alias, such as `production`.")]
NewAliasName = Annotated[AliasName, AfterValidator(_no_number)]
"""The alias `1` could name version 2."""
VersionNumber = Annotated[
    int, PLAIN_DIGITS, Path(ge=1, le=2**31 - 1, description="Number of the version, from 1.")
]
Limit = Annotated[int, PLAIN_DIGITS, Query(ge=1, le=500, description="Most items on one page.")]
JobCursor = Annotated[
    str | None, Query(max_length=200, pattern=NO_NUL, description="`next_cursor` of the page before.")
]
NameCursor = Annotated[
    str | None, Query(pattern=NAME_CURSOR, description="`next_cursor` of the page before.")
]
IdempotencyKey = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
NumberCursor = Annotated[
    int | None, PLAIN_DIGITS, Query(ge=1, le=2**31 - 1, description="`next_cursor` of the page before.")
]


class Page(BaseModel, Generic[Item]):
    """One page of a list."""

    items: list[Item]
    next_cursor: str | None = Field(description="Pass as `cursor` for the next page; null on the last.")

    @classmethod
    def of(cls, items: list[Item], limit: int, cursor: Callable[[Item], str]) -> Self:
        """Return the first ``limit`` items, and the cursor of the last of them if there are more."""
        more = len(items) > limit
        return cls(items=items[:limit], next_cursor=cursor(items[limit - 1]) if more else None)


def cursor_after(name: str) -> str:
    """Return the cursor of the page that begins after ``name``."""
    return AFTER + name


def name_before(cursor: str | None) -> str | None:
    """Return the name that :func:`cursor_after` made a cursor of."""
    return None if cursor is None else cursor.removeprefix(AFTER)


def _parameters(dependant: Dependant) -> Iterator[Any]:
    """The query parameters of an endpoint, and of what it depends on."""
    yield from dependant.query_params
    for other in dependant.dependencies:
        yield from _parameters(other)


def parameters_of(route: Any) -> list[str]:
    """Return the names of the query parameters that a route has; none of what is no endpoint."""
    dependant = getattr(route, "dependant", None)
    return [] if dependant is None else [parameter.alias for parameter in _parameters(dependant)]


async def check_queries(request: Request) -> None:
    """Refuse query parameters that the endpoint does not have, those given twice, and very long queries.

    Otherwise a mistyped `dryrun=true` would store an upload that was only to be checked.
    """
    if not (n_bytes := len(request.scope["query_string"])):
        return
    if n_bytes > MAX_QUERY_BYTES:
        raise BadRequest("query_too_long", f"The query is over the limit of {MAX_QUERY_BYTES} bytes.")
    parameters = list(_parameters(request.scope["route"].dependant))
    known = [parameter.alias for parameter in parameters]
    lists = [p.alias for p in parameters if get_origin(p.field_info.annotation) is list]
    times = Counter(name for name, _ in request.query_params.multi_items())
    unknown = [name for name in times if name not in known]
    faults = [
        Fault(message=f"there is no such parameter; {hint(name, known)}", location=f"query.{name}")
        for name in unknown[:MAX_ERRORS]
    ]
    repeated = [
        Fault(message=f"the parameter stands {n} times; give it once", location=f"query.{name}")
        for name, n in times.items()
        if n > 1 and name in known and name not in lists
    ]
    for code, n_faults in (("unknown_parameter", len(unknown)), ("repeated_parameter", len(repeated))):
        if n_faults:
            raise InvalidContent(
                code,
                f"The request has {counted(n_faults, code.replace('_', ' '))}; see `errors`.",
                errors=faults + repeated,
                error_count=len(unknown) + len(repeated),
            )
