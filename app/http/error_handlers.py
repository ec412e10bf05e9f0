"""Answer every error as ``application/problem+json``."""

from __future__ import annotations

import logging

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from sqlalchemy.exc import OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.exceptions import HTTPException
from starlette.routing import Match

from app.http.errors import MEDIA_TYPE, AppError, InvalidContent, Problem, ServiceUnavailable
from app.http.failures import failure_of
from app.http.invalid_requests import faults_of
from app.processes.logs import REQUEST_ID
from ccmtl_core.base.display import counted

logger = logging.getLogger(__name__)

RETRY_SECONDS = "5"
_INFERENCE = "/v2"


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
