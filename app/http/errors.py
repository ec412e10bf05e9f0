"""The errors of the service, and the handlers that answer every error as ``application/problem+json``.

AppError (500)
├── BadRequest (400)
├── Unauthorized (401)          says in ``WWW-Authenticate`` what is needed
├── Forbidden (403)
├── NotFound (404)              near matches in ``suggestions``
├── NotAcceptable (406)
├── RequestTimeout (408)
├── Conflict (409)
├── PayloadTooLarge (413)
├── UnsupportedMediaType (415)
├── InvalidContent (422)        every fault of the request in ``errors``
├── TooManyRequests (429)       says in ``Retry-After`` when to come again
├── HeadTooLarge (431)
├── ServiceUnavailable (503)
└── InsufficientStorage (507)
"""

from __future__ import annotations

import difflib
import errno
import json
import logging
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from pydantic import BaseModel, Field
from sqlalchemy.exc import OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.exceptions import HTTPException
from starlette.routing import Match

from app.http.names import IN_WORDS
from app.processes.logs import REQUEST_ID
from ccmtl_core.base.display import counted

logger = logging.getLogger(__name__)

MAX_ERRORS = 100
RETRY_SECONDS = "5"
MEDIA_TYPE = "application/problem+json"
_INFERENCE = "/v2"


class Fault(BaseModel):
    """One fault of a request: what is wrong, and where."""

    code: str | None = Field(None, description="Stable machine-readable name of the kind of fault.")
    message: str
    location: str | None = Field(None, description="Dotted path into the request, e.g. `body.lags.0`.")
    row: int | None = Field(None, description="Row of an uploaded file; the header excluded, the first is 1.")
    column: str | None = Field(None, description="Column of an uploaded file.")
    value: str | None = Field(None, description="The offending text, cut at 200 characters.")


class Problem(BaseModel):
    """The body of every error answer (RFC 9457)."""

    type: str = "about:blank"
    title: str
    status: int
    code: str = Field(description="Stable machine-readable name of the error.")
    detail: str = Field(description="What is wrong and what to do.")
    errors: list[Fault] = Field(default_factory=list, description=f"Up to {MAX_ERRORS} faults.")
    error_count: int = Field(0, description="All faults, the unlisted ones included.")
    suggestions: list[str] = Field(default_factory=list, description="Near matches of an unknown name.")
    request_id: str | None = Field(None, description="As in `X-Request-Id` and the service's log.")
    report: dict[str, Any] | None = Field(
        None, description="Of an upload of series, what was found in the whole file; as in accepted ones."
    )
    error: str | None = Field(None, description="Under `/v2` the same as `detail`, as that protocol has it.")


class AppError(Exception):
    """An error that becomes an answer with a status, a stable code and a sentence for the caller."""

    status = 500
    title = "Internal error"

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        errors: Sequence[Fault] = (),
        error_count: int | None = None,
        suggestions: Sequence[str] = (),
        headers: Mapping[str, str] | None = None,
        report: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(detail)
        self.headers = dict(headers or {})
        self.problem = Problem(
            title=self.title,
            status=self.status,
            code=code,
            detail=detail,
            errors=list(errors[:MAX_ERRORS]),
            error_count=len(errors) if error_count is None else error_count,
            suggestions=list(suggestions),
            report=report,
        )

    @classmethod
    def of(cls, problem: Problem, headers: Mapping[str, str]) -> AppError:
        """Return the error that is answered so, as another process has told it."""
        error = cls(problem.code, problem.detail, headers=headers)
        error.problem = problem
        return error


class BadRequest(AppError):
    """The request cannot be read."""

    status, title = 400, "Bad request"


class Unauthorized(AppError):
    """The request brings no key, or one that is not valid."""

    status, title = 401, "Unauthorized"


class Forbidden(AppError):
    """The key is valid, but does not allow this."""

    status, title = 403, "Forbidden"


class NotFound(AppError):
    """The named thing does not exist."""

    status, title = 404, "Not found"

    @classmethod
    def named(cls, what: str, name: str, known: Iterable[str]) -> NotFound:
        """Return the error for an unknown ``name``, with up to five similar names of ``known``."""
        near = difflib.get_close_matches(name, list(known), n=5, cutoff=0.6)
        hint = f" Did you mean {', '.join(map(repr, near))}?" if near else ""
        return cls(
            f"{what.replace(' ', '_')}_not_found", f"There is no {what} {name!r}.{hint}", suggestions=near
        )


class NotAcceptable(AppError):
    """The answer cannot be given in any form that the caller accepts."""

    status, title = 406, "Not acceptable"


class RequestTimeout(AppError):
    """The rest of the request did not come in time."""

    status, title = 408, "Request timeout"


class Conflict(AppError):
    """The request contradicts what is stored."""

    status, title = 409, "Conflict"


class PayloadTooLarge(AppError):
    """The body is over the limit."""

    status, title = 413, "Payload too large"


class UnsupportedMediaType(AppError):
    """The body is of a type or an encoding that is not read here."""

    status, title = 415, "Unsupported media type"


class InvalidContent(AppError):
    """The body was read, but its content cannot be accepted."""

    status, title = 422, "Invalid content"


class TooManyRequests(AppError):
    """The key has sent as many requests as it may, or as many jobs wait as may."""

    status, title = 429, "Too many requests"


class HeadTooLarge(AppError):
    """The request line and the headers are over the limit."""

    status, title = 431, "Request header fields too large"


class ServiceUnavailable(AppError):
    """The service cannot answer now; the same request may work later."""

    status, title = 503, "Service unavailable"


class InsufficientStorage(AppError):
    """The disk is full; the same request works once there is room."""

    status, title = 507, "Insufficient storage"


def _respond(request: Request, problem: Problem, headers: dict[str, str] | None = None) -> Response:
    added = {"Retry-After": RETRY_SECONDS} if problem.status == ServiceUnavailable.status else {}
    if request.url.path.startswith(_INFERENCE):
        problem = problem.model_copy(update={"error": problem.detail})
    request_id = REQUEST_ID.get()
    if request_id is not None:
        problem = problem.model_copy(update={"request_id": request_id})
        added["X-Request-Id"] = request_id  # an unexpected error does not pass `app.http.answers`
    unused = {name for name in ("error", "report") if getattr(problem, name) is None}
    body = problem.model_dump_json(exclude=unused)
    return Response(body + "\n", problem.status, {**added, **(headers or {})}, MEDIA_TYPE)


def stopped(request: Request) -> Response:
    """Return the answer to a request that is not done when the process has to stop."""
    error = ServiceUnavailable(
        "stopping",
        "The service had to stop before the request was done. Send it again, a POST with its "
        "Idempotency-Key, or look whether it was carried out.",
    )
    return _respond(request, error.problem)


def refusals(descriptions: Mapping[int, str]) -> dict[int | str, dict[str, Any]]:
    """Return an endpoint's ``responses`` for the statuses that it answers with a problem document."""
    return {status: {"model": Problem, "description": text} for status, text in descriptions.items()}


_OF_TYPES = {
    "missing": "is missing",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    **dict.fromkeys(("list_type", "set_type", "frozen_set_type", "tuple_type"), "must be a list"),
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), "must be an object"),
    **dict.fromkeys(("string_type", "string_unicode"), "must be text"),
    **dict.fromkeys(
        ("int_type", "int_parsing", "int_from_float", "int_parsing_size"), "must be a whole number"
    ),
    **dict.fromkeys(("float_type", "float_parsing"), "must be a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "must be true or false"),
    "finite_number": "must be a finite number",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be {ge} or more",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be {le} or less",
    "too_short": "must have {min_length} or more entries",
    "too_long": "must have {max_length} or fewer entries",
    "string_too_short": "must have {min_length} or more characters",
    "string_too_long": "must have {max_length} or fewer characters",
    **dict.fromkeys(
        ("datetime_type", "datetime_parsing", "datetime_from_date_parsing", "timezone_aware"),
        "must be a time with its zone, such as 2026-01-31T12:00:00Z",
    ),
}
"""What replaces the sentences of the library that checks requests, by its names of what is wrong."""


def faults_of(errors: Iterable[Mapping[str, Any]], *prefix: str) -> list[Fault]:
    """Turn pydantic's ``errors()`` into faults, located below ``prefix``."""
    return [
        Fault(
            code=error.get("type"),
            message=_in_words(error),
            location=_encodable(".".join(map(str, (*prefix, *error["loc"])))),
            value=_printable(error.get("input")),
        )
        for error in errors
    ]


def _in_words(error: Mapping[str, Any]) -> str:
    context, given = error.get("ctx", {}), error.get("input")
    template = IN_WORDS.get(context.get("pattern"))
    if re.match("[A-Z][a-z]+ should |Field required|Unable to parse ", error["msg"]):
        template = template or _OF_TYPES.get(error.get("type", ""))
    message: str = (
        template.format(**context) if template else re.sub("^[A-Z][a-z]+ should ", "must ", error["msg"])
    )
    known = re.findall("'([^']+)'", context.get("expected", ""))
    near = difflib.get_close_matches(str(given), known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return message.removeprefix("Value error, ") + hint


def _printable(value: Any) -> str | None:
    # A rejected NaN or infinity is never echoed: JSON has no such numbers and clients choke on them.
    if not isinstance(value, str | int | float) or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return _encodable((json.dumps(value) if isinstance(value, bool) else str(value))[:200])


def _encodable(text: str) -> str:
    # JSON can carry half of a surrogate pair; UTF-8 cannot.
    return text.encode("utf-8", "replace").decode()


_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_UNUSABLE = {
    *(errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO),
    *(errno.ENOENT, errno.ENOTDIR, errno.ENODEV, errno.ESTALE, errno.ETIMEDOUT),  # the folder is gone
    *(errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN),  # the process or the machine is at its limit
}


def _storage_full() -> InsufficientStorage:
    return InsufficientStorage(
        "storage_full",
        "The service's disk is full. Nothing of this request was stored; send it again when there is room.",
    )


def is_full(error: OSError) -> bool:
    """Whether an error of a file says that there is no room left."""
    return error.errno in _FULL


def _is_database_full(error: SQLAlchemyError) -> bool:
    driver = getattr(error, "orig", None)
    name, state = getattr(driver, "sqlite_errorname", None), getattr(driver, "sqlstate", None)
    return name == "SQLITE_FULL" or state == "53100"


def failure_of(error: SQLAlchemyError | OSError) -> AppError | None:
    """Return what is answered where the database or the data folder fails; None: the program is at fault."""
    if isinstance(error, OSError):
        if error.errno not in _FULL | _UNUSABLE:
            return None
        if is_full(error):
            return _storage_full()
        detail = "The service cannot use its data folder; the operator's log says why. Nothing was stored."
        return ServiceUnavailable("storage_unavailable", detail)
    if not isinstance(error, OperationalError | PoolTimeout):
        return None
    if _is_database_full(error):
        return _storage_full()
    detail = "The database does not answer, or cannot be used; try again."
    return ServiceUnavailable("database_unavailable", detail)


def _methods_of(request: Request) -> list[str]:
    """Return the methods that the request's path has, by all routes; HEAD goes with GET."""
    return [
        method
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE")
        if any(
            route.matches({**request.scope, "method": method})[0] is Match.FULL
            for route in request.app.routes
        )
    ]


def install_error_handlers(app: FastAPI) -> None:
    """Answer every error of ``app`` with a problem document."""

    @app.exception_handler(AppError)
    async def _app_error(request: Request, error: AppError) -> Response:
        return _respond(request, error.problem, error.headers)

    @app.exception_handler(RequestValidationError)
    async def _validation_error(request: Request, error: RequestValidationError) -> Response:
        faults = faults_of(error.errors())
        detail = f"The request has {counted(len(faults), 'fault')}; see `errors`."
        return _respond(request, InvalidContent("invalid_request", detail, errors=faults).problem)

    @app.exception_handler(HTTPException)
    async def _http_error(request: Request, error: HTTPException) -> Response:
        code = {404: "route_not_found", 405: "method_not_allowed"}.get(error.status_code, "http_error")
        title = detail = str(error.detail)
        headers = dict(error.headers or {})
        if code == "route_not_found":
            root = request.scope.get("root_path", "").rstrip("/")
            slash = ": no path here ends in a slash" if request.url.path.endswith("/") else ""
            detail = f"There is nothing under this path{slash}; {root}/docs describes what there is."
        elif code == "method_not_allowed":
            methods = _methods_of(request)
            headers["Allow"] = ", ".join(methods).replace("GET", "GET, HEAD")
            detail = f"There is no {request.method} here, only {' and '.join(methods)}."
            if request.method in ("PUT", "PATCH"):
                detail += " A dataset and its definition, a version, a job or a model cannot be changed."
        return _respond(
            request, Problem(title=title, status=error.status_code, code=code, detail=detail), headers
        )

    @app.exception_handler(OperationalError)
    @app.exception_handler(PoolTimeout)
    @app.exception_handler(OSError)
    async def _failed(request: Request, error: SQLAlchemyError | OSError) -> Response:
        failure = failure_of(error)
        if failure is None:
            raise error
        what = "data folder" if isinstance(error, OSError) else "database"
        logger.error("the %s failed in %s %s: %s", what, request.method, request.url.path, error)
        return _respond(request, failure.problem)

    @app.exception_handler(Exception)
    async def _unexpected(request: Request, error: Exception) -> Response:
        logger.error("unhandled error in %s %s", request.method, request.url.path, exc_info=error)
        detail = "The service failed; the operator's log has the details."
        return _respond(request, AppError("internal_error", detail).problem)
