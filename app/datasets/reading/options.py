"""What a request states of the file that it uploads: parameters of the query, and the charset of its type."""

from __future__ import annotations

from collections.abc import Iterator
from email.message import Message
from inspect import Parameter, Signature
from typing import Annotated, Any

from fastapi import Query, Request

from app.datasets.schemas import FileType
from app.http.errors import Fault, InvalidContent, UnsupportedMediaType
from app.reading.stated import OF_SHAPE, OF_TEXT
from ccmtl_core import ParameterError
from ccmtl_core.tables import ReadOptions

_BOUNDS: dict[str | None, dict[str, Any]] = {
    "CHAR": {"min_length": 1, "max_length": 3},
    "LINE": {"ge": 0},
    "YEAR": {"ge": 1000, "le": 9999},
    None: {},
}
_OF_TEXT: dict[str, Any] = {"min_length": 1, "max_length": 500}


def reading_options(request: Request, **stated: Any) -> ReadOptions:
    """Return what is stated of the file; raise InvalidContent where that cannot be meant."""
    charset = _charset(request.headers.get("content-type", ""))
    encoding = stated.pop("encoding", None)
    try:
        return ReadOptions(encoding=encoding or charset, **stated)
    except ParameterError as error:
        if encoding is None and charset is not None and repr(charset) in str(error):
            raise UnsupportedMediaType("unsupported_charset", f"The charset: {error}.") from None
        fault = Fault(message=str(error), location="query")
        raise InvalidContent(
            "invalid_request", "What is stated of the file cannot be meant; see `errors`.", errors=[fault]
        ) from None


def _parameters() -> Iterator[Parameter]:
    """The request, and a parameter of the query for each thing that can be stated."""
    yield Parameter("request", Parameter.KEYWORD_ONLY, annotation=Request)
    for name, one in (OF_TEXT | OF_SHAPE).items():
        query = Query(description=one.text, **_BOUNDS.get(one.value, _OF_TEXT))
        yield Parameter(
            name, Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[one.kind | None, query]
        )


# FastAPI reads the parameters of a dependency from its signature.
vars(reading_options)["__signature__"] = Signature([*_parameters()])


def _charset(content_type: str) -> str | None:
    """Return the charset of a type that can be uploaded, None where it names none."""
    header = Message()
    header["Content-Type"] = content_type
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type not in list(FileType):
        what = f"is {media_type[:100]!r}" if media_type else "names no type"
        raise UnsupportedMediaType(
            "unsupported_media_type",
            f"The body {what}; send text with `-H 'Content-Type: {FileType.CSV}'`, Parquet with "
            f"`-H 'Content-Type: {FileType.PARQUET}'`, and anything else with "
            f"`-H 'Content-Type: {FileType.ANY}'`.",
            headers={"Accept": ", ".join(FileType)},
        )
    charset = header.get_content_charset()
    # Many programs send this with any text, and UTF-8 proves itself.
    return None if charset in ("utf-8", "utf8", "us-ascii") else charset and charset[:100]
