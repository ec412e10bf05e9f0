"""What can go wrong, as one class for each family of the service's problem codes.

ClientError
├── NoAnswer                no answer came, however often it was tried
├── StrangeAnswer           what answered is not the service, or its answer was spoiled on the way
├── MissingLibrary          a library that an argument needs is not installed
├── JobFailed               a training job failed or was cancelled
├── WaitedTooLong           a training job went on past the given time
└── ApiError                the service refused: its status, code, sentence and all faults
    ├── BadRequest          400, 405, 406, 408, 415, 431
    ├── Unauthorized        401
    ├── Forbidden           403
    ├── NotFound            404
    ├── Conflict            409
    ├── PayloadTooLarge     413
    ├── InvalidContent      422
    ├── TooManyRequests     429
    ├── ServiceUnavailable  502, 503, 504
    └── ServiceFailed       500, 507 and others
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

SHOWN_FAULTS = 10


class ClientError(Exception):
    """Anything that this package raises about a request."""


class NoAnswer(ClientError):
    """No answer came within the time that is given to try again."""


class StrangeAnswer(ClientError):
    """An answer that the service does not give, as a page of a proxy, or one that was spoiled on its way."""


class MissingLibrary(ClientError, ImportError):
    """A library that an argument needs is not installed."""


class WaitedTooLong(ClientError, TimeoutError):
    """The training job has not ended in the time that was given; it goes on."""


class JobFailed(ClientError):
    """A training job failed or was cancelled.

    ``status`` is the job as the service tells it; its ``error`` has a code and a sentence.
    """

    def __init__(self, status: Mapping[str, Any]) -> None:
        super().__init__(status)
        self.status = status

    def __str__(self) -> str:
        error = self.status.get("error") or {}
        why = f": {error['detail']} ({error['code']})" if error else "."
        return f"The training job {self.status['id']} {self._ended()}{why}"

    def _ended(self) -> str:
        return "was cancelled" if self.status["state"] == "cancelled" else "failed"


class ApiError(ClientError):
    """The service refused a request.

    Attributes
    ----------
    status : int
        The HTTP status.
    problem : mapping
        The whole problem document (RFC 9457).
    code : str
        Stable name of the error.
    detail : str
        What is wrong and what to do.
    faults : list of dict
        The first hundred faults of the request: ``message``, and ``location``, or ``row`` and ``column``.
    fault_count : int
        The number of all of them.
    suggestions : list of str
        Near matches of an unknown name.
    request_id : str or None
        Names the request in the service's log.
    retry_after : float or None
        Seconds after which the service says to come again.
    maybe_done : bool
        Whether the same request was sent before and may have been carried out, its answer lost.
    """

    def __init__(self, status: int, problem: Mapping[str, Any], retry_after: float | None = None) -> None:
        super().__init__(status, problem, retry_after)
        self.status = status
        self.problem = problem
        self.code = str(problem["code"])
        self.detail = str(problem["detail"])
        self.faults: list[dict[str, Any]] = list(problem.get("errors", ()))
        self.fault_count = int(problem.get("error_count", len(self.faults)))
        self.suggestions: list[str] = list(problem.get("suggestions", ()))
        self.request_id: str | None = problem.get("request_id")
        self.retry_after = retry_after
        self.maybe_done = False

    def __str__(self) -> str:
        lines = [f"{self.status} {self.code}: {self.detail}", *map(_line, self.faults[:SHOWN_FAULTS])]
        more = self.fault_count - min(len(self.faults), SHOWN_FAULTS)
        if more > 0 and self.faults:
            lines.append(f"  and {more} more")
        return "\n".join(lines)


class BadRequest(ApiError):
    """The request cannot be read, or asks in a form that there is not."""


class Unauthorized(ApiError):
    """The service has API keys, and the request brings none that is valid."""


class Forbidden(ApiError):
    """The key has not the scope that this needs."""


class NotFound(ApiError):
    """There is no such dataset, version, job, model or product; ``suggestions`` has near matches."""


class Conflict(ApiError):
    """The request contradicts what is stored: a name that is taken, a thing in use, rows sent before."""


class PayloadTooLarge(ApiError):
    """The body is over the service's limit."""


class InvalidContent(ApiError):
    """The content has faults, all of which are counted."""


class TooManyRequests(ApiError):
    """The key sends too many requests, or too many jobs wait."""


class ServiceUnavailable(ApiError):
    """The service, or what it needs, cannot be used now."""


class ServiceFailed(ApiError):
    """The service failed; its log has more under ``request_id``."""


_OF_STATUS: dict[int, type[ApiError]] = {
    **dict.fromkeys((400, 405, 406, 408, 415, 431), BadRequest),
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    413: PayloadTooLarge,
    422: InvalidContent,
    429: TooManyRequests,
    **dict.fromkeys((502, 503, 504), ServiceUnavailable),
}


def api_error(status: int, problem: object, text: str, retry_after: float | None) -> ApiError:
    """Return the error for a refusal; ``text`` tells of one that is no problem document, as of a proxy."""
    if not _is_problem(problem):
        problem = {"code": f"http_{status}", "detail": text}
    kind = _OF_STATUS.get(status, ServiceFailed if status >= 500 else ApiError)
    return kind(status, problem, retry_after)


def _is_problem(document: object) -> TypeGuard[dict[str, Any]]:
    """Whether it is a problem document of the service."""
    if not isinstance(document, dict) or not {"code", "detail"} <= document.keys():
        return False
    faults, suggestions = document.get("errors", []), document.get("suggestions", [])
    return (
        isinstance(document.get("error_count", 0), int)
        and isinstance(suggestions, list)
        and isinstance(faults, list)
        and all(isinstance(fault, dict) and "message" in fault for fault in faults)
    )


def _line(fault: Mapping[str, Any]) -> str:
    row, column = fault.get("row"), fault.get("column")
    places = [
        None if row is None else f"row {row}",
        None if column is None else f"column {column!r}",
        fault.get("location"),
    ]
    place = ", ".join(place for place in places if place)
    value = fault.get("value")
    given = "" if value is None else f" (given: {value!r})"
    return f"  {place}: {fault['message']}{given}" if place else f"  {fault['message']}{given}"
