"""What a request states of the file that it uploads: parameters of the query, and the charset of its type."""

from __future__ import annotations

from email.message import Message
from typing import Annotated, Literal

from fastapi import Query, Request

from app.datasets.schemas import FileType
from app.http.errors import Fault, InvalidContent, UnsupportedMediaType
from ccmtl_core import ParameterError
from ccmtl_core.tables import ReadOptions

Mark = Annotated[str | None, Query(min_length=1, max_length=3)]
Name = Annotated[str | None, Query(min_length=1, max_length=500)]


def reading_options(
    request: Request,
    delimiter: Annotated[
        Mark, Query(description="What parts the fields of text: one character, or `tab`; guessed if absent.")
    ] = None,
    encoding: Annotated[
        Name,
        Query(
            description="Of text, such as `windows-1252`; guessed if it, and the type's charset, are absent."
        ),
    ] = None,
    decimal: Annotated[
        Literal[".", ","] | None, Query(description="The decimal sign; decided by whole columns if absent.")
    ] = None,
    thousands: Annotated[
        Literal["none", ",", ".", " ", "'"] | None,
        Query(description="What stands between thousands; decided by whole columns if absent."),
    ] = None,
    quote: Annotated[Mark, Query(description="What stands around fields; a double quote if absent.")] = None,
    header_row: Annotated[
        int | None, Query(ge=0, description="The line that names the columns, from 1; 0: none does.")
    ] = None,
    comment: Annotated[Name, Query(description="What lines begin with that are no rows.")] = None,
    currency: Annotated[Name, Query(description="A sign or word beside numbers, taken off.")] = None,
    ragged: Annotated[
        Literal["refuse", "pad", "skip"] | None,
        Query(
            description="Of rows with another number of fields: `pad`, short ones get empty cells at their "
            "end; `skip`, all of them and blank lines are left out, and counted."
        ),
    ] = None,
    sheet: Annotated[Name, Query(description="The sheet of a workbook.")] = None,
    member: Annotated[Name, Query(description="The file in an archive, by its path.")] = None,
    shape: Annotated[
        Literal["auto", "long", "wide"] | None,
        Query(description="Of series: `long`, a row holds one value; `wide`, many; found out if absent."),
    ] = None,
    periods: Annotated[
        Name, Query(description="Of a wide table: the columns that are periods, as a pattern: `W*`.")
    ] = None,
) -> ReadOptions:
    """Return what is stated of the file; raise InvalidContent where that cannot be meant."""
    charset = _charset(request.headers.get("content-type", ""))
    try:
        return ReadOptions(
            delimiter=delimiter,
            encoding=encoding or charset,
            decimal=decimal,
            thousands=thousands,
            quote=quote,
            header_row=header_row,
            comment=comment,
            currency=currency,
            ragged=ragged,
            sheet=sheet,
            member=member,
            shape=shape,
            periods=periods,
        )
    except ParameterError as error:
        if encoding is None and charset is not None and repr(charset) in str(error):
            raise UnsupportedMediaType("unsupported_charset", f"The charset: {error}.") from None
        fault = Fault(message=str(error), location="query")
        raise InvalidContent(
            "invalid_request", "What is stated of the file cannot be meant; see `errors`.", errors=[fault]
        ) from None


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
        )
    charset = header.get_content_charset()
    # Many programs send this with any text, and UTF-8 proves itself.
    return None if charset in ("utf-8", "utf8", "us-ascii") else charset and charset[:100]
