"""The errors of the service, each with the problem document that says so.

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
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, Field

MAX_ERRORS = 100
MEDIA_TYPE = "application/problem+json"


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


def refusals(descriptions: Mapping[int, str]) -> dict[int | str, dict[str, Any]]:
    """Return an endpoint's ``responses`` for the statuses that it answers with a problem document."""
    return {status: {"model": Problem, "description": text} for status, text in descriptions.items()}
