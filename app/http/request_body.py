"""Read JSON bodies, and say everything that is wrong with one at once.

This is for endpoints that read their body themselves: to check it against the database together with its
form, or to decode it faster than pydantic does.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar, get_args

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field, StrictBool, ValidationError
from starlette.requests import ClientDisconnect

from app.http.errors import (
    MAX_ERRORS,
    AppError,
    BadRequest,
    Fault,
    InvalidContent,
    PayloadTooLarge,
    UnsupportedMediaType,
    refusals,
)
from app.http.invalid_requests import faults_of
from app.http.names import hint
from ccmtl_core.base.display import counted
from ccmtl_core.tables.decompression import CompressedDataError, GzipDecoder, ZstdDecoder

Form = TypeVar("Form", bound=BaseModel)
BODY_REFUSALS = refusals(
    {
        400: "The body is not a JSON object.",
        413: "The body is over the limit.",
        415: "The body is not declared as JSON.",
    }
)
"""The answers of every endpoint that reads a JSON body."""
Decoder = GzipDecoder | ZstdDecoder
DECODERS: dict[str, type[Decoder] | None] = {
    "identity": None,
    "gzip": GzipDecoder,
    "x-gzip": GzipDecoder,
    "zstd": ZstdDecoder,
}
"""How the encodings of a body are decoded."""
_ENCODINGS = {"Accept-Encoding": "gzip, zstd, identity"}
"""What a refused encoding is answered with (RFC 9110, section 15.5.16)."""
MAX_FORM_BYTES = 1024**2
"""The longest body of a request that brings no data, such as a definition or a training request."""
EXPLAINED_BYTES = 256 * 1024
"""A longer body may have millions of faults: only the first is reported."""


class SwitchForm(BaseModel):
    """Whether a thing that works by itself shall do so; all else about it stays as it is."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    enabled: StrictBool = Field(description="False: it rests until it is enabled again.", examples=[False])


async def read_json_body(request: Request, max_bytes: int) -> bytes:
    """Return a body that is declared as JSON, as :func:`read_body` does."""
    media_type = media_type_of(request)
    if media_type != "application/json" and not media_type.endswith("+json"):
        raise UnsupportedMediaType(
            "unsupported_media_type",
            f"The body is {media_type!r}; send JSON with `-H 'Content-Type: application/json'`.",
            headers={"Accept": "application/json"},
        )
    return await read_body(request, max_bytes)


def media_type_of(request: Request) -> str:
    """Return the media type of the body, JSON if none is declared, without its parameters."""
    return request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()


async def read_body(request: Request, max_bytes: int) -> bytes:
    """Return the body, decompressed; refuse it as soon as more than ``max_bytes`` came in or came out.

    One that is announced as longer is not waited for, and its client not told to send it.
    """
    decoder = decoder_for(content_encoding_of(request))
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > max_bytes:
        raise _too_large(max_bytes)
    body, n_received = bytearray(), 0
    try:
        async for chunk in request.stream():
            n_received += len(chunk)
            for piece in [chunk] if decoder is None else decoder.feed(chunk):
                body += piece
                if max(n_received, len(body)) > max_bytes:
                    raise _too_large(max_bytes)
        if decoder is not None and n_received:
            decoder.finish()
    except ClientDisconnect:
        raise BadRequest("body_cut_off", "The body was cut off.") from None
    except CompressedDataError as error:
        raise undecodable(error) from None
    return bytes(body)


def _too_large(max_bytes: int) -> PayloadTooLarge:
    return PayloadTooLarge(
        "body_too_large", f"The body is over the limit of {max_bytes} bytes (after decompression)."
    )


def content_encoding_of(request: Request) -> str:
    """Return how the body is encoded; several lines of ``Content-Encoding`` are one, as ``gzip, gzip``."""
    return ", ".join(request.headers.getlist("content-encoding"))


def decoder_for(content_encoding: str) -> Decoder | None:
    """Return the decoder for a ``Content-Encoding`` header; None where there is nothing to decode."""
    name = content_encoding.strip().lower() or "identity"
    if name not in DECODERS:
        raise UnsupportedMediaType(
            "unsupported_content_encoding",
            f"The body is encoded as {name[:100]!r}; send it plain, or as gzip or zstd.",
            headers=_ENCODINGS,
        )
    decoder = DECODERS[name]
    return None if decoder is None else decoder()


def undecodable(error: CompressedDataError) -> BadRequest:
    """Return the refusal of a body that is not compressed as it says."""
    return BadRequest("undecodable_body", f"The body is not what its `Content-Encoding` says: {error}.")


def parse_json_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object that ``body`` holds; a key that stands twice in it is refused.

    NaN and infinities are left for the schema to refuse.
    """
    try:
        document = json.loads(body, object_pairs_hook=_distinct)
    except (ValueError, RecursionError) as error:
        raise BadRequest("malformed_json", f"The body is not JSON: {error}.") from None
    if not isinstance(document, dict):
        kind = {list: "array", str: "string", bool: "boolean"}.get(type(document), "null or number")
        raise BadRequest("malformed_json", f"The body is a JSON {kind}; an object is needed.")
    return document


def checked_form(form: type[Form], body: bytes) -> Form:
    """Return what ``body`` says in ``form``, or raise the error that names all its faults."""
    try:
        return form.model_validate(parse_json_object(body))
    except ValidationError as error:
        raise refusal_of(form, error) from None


def explain(body: bytes, form: type[BaseModel], reason: str) -> AppError:
    """Return the error for a body that does not fit ``form``, or else for ``reason``."""
    try:
        checked_form(form, body)
    except AppError as refusal:
        return refusal
    return BadRequest("malformed_json", f"The body cannot be read: {reason}.")


def first_fault(reason: str, *, malformed: bool) -> AppError:
    """Return the error for a long body; ``reason`` is the message of msgspec, which ends with the place."""
    message, _, path = reason.rstrip("`").partition(" - at `$")
    alone = f"Of a body over {EXPLAINED_BYTES} bytes only the first fault is told."
    if malformed:
        return BadRequest("malformed_json", f"The body is not JSON: {message}. {alone}")
    place = path.replace("[...]", ".*").replace("[", ".").replace("]", "")
    fault = Fault(message=message, location=f"body{place}")
    return InvalidContent(
        "invalid_request", f"The request has a fault; see `errors`. {alone}", errors=[fault]
    )


def refusal_of(form: type[BaseModel], error: ValidationError) -> InvalidContent:
    """Return the error for a body that does not fit ``form``, with all its faults."""
    n_faults = error.error_count()
    return InvalidContent(
        "invalid_request",
        f"The request has {counted(n_faults, 'fault')}; see `errors`.",
        errors=faults_in_body(form, error),
        error_count=n_faults,
    )


def faults_in_body(form: type[BaseModel], error: ValidationError) -> list[Fault]:
    """Return the first faults of a body that does not fit ``form``, with similar names for unknown fields."""
    errors = error.errors(include_url=False)[:MAX_ERRORS]
    for fault in errors:
        *path, name = fault["loc"] or ("",)
        if fault["type"] == "extra_forbidden":
            at = _form_at(form, path)
            elsewhere = getattr(at, "elsewhere", {}).get(str(name))
            fault["msg"] = elsewhere or f"there is no such field; {hint(str(name), at.model_fields)}"
        elif fault["type"] == "missing":
            at = _form_at(form, path)
            told = getattr(at, "missing", {}).get(str(name))
            fault["msg"] = told or f"is missing{_for_example(at.model_fields[str(name)].examples)}"
        elif fault["type"] in ("model_type", "model_attributes_type") and fault["loc"]:
            wanted = _form_at(form, fault["loc"]).model_json_schema()
            fault["msg"] = f"must be an object{_for_example(wanted.get('examples'))}"
    return faults_of(errors, "body")


def documented_body(*forms: type[BaseModel], examples: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ``openapi_extra`` that documents the body of an endpoint that reads it itself.

    The body has one of ``forms``. ``examples`` maps titles to bodies; the reference offers to send the first.
    """
    schemas = [without_references(form.model_json_schema()) for form in forms]
    schema = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
    shown = {
        f"example_{n}": {"summary": what, "value": body} for n, (what, body) in enumerate(examples.items())
    }
    content = {"application/json": {"schema": schema, "examples": shown}}
    return {"requestBody": {"required": True, "content": content}}


def without_references(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a form with what it refers to in its place, for the middle of a document."""
    definitions = schema.pop("$defs", {})

    def resolve(node: Any) -> Any:
        if isinstance(node, dict):
            if "$ref" in node:
                return resolve(definitions[node["$ref"].rpartition("/")[2]])
            return {key: resolve(value) for key, value in node.items()}
        return [resolve(item) for item in node] if isinstance(node, list) else node

    resolved: dict[str, Any] = resolve(schema)
    return resolved


def _for_example(examples: Sequence[Any] | None) -> str:
    return f", for example {json.dumps(examples[0])}" if examples else ""


def _form_at(form: type[BaseModel], path: Sequence[str | int]) -> type[BaseModel]:
    """Return the form of the object at ``path`` below ``form``; numbers in it are places in lists."""
    for step in path:
        if isinstance(step, str):
            form = next(_forms_in(form.model_fields[step].annotation))
    return form


def _forms_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _forms_in(argument)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        (key, times), *_ = Counter(key for key, _ in pairs).most_common(1)
        (fault,) = faults_of(
            [{"msg": f"this key stands {times} times in one object", "loc": [], "input": key}], "body"
        )
        raise InvalidContent(
            "repeated_key", f"The key {fault.value!r} stands {times} times in one object.", errors=[fault]
        )
    return document
