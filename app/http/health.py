"""Liveness and readiness: whether the process answers, and whether it could serve a request."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel
from sqlalchemy.exc import SQLAlchemyError

from app.http.dependencies import WholeDatabaseDep
from app.http.errors import Problem, ServiceUnavailable
from app.http.metrics import Metrics
from app.persistence.database import Database
from app.persistence.schema import SchemaOutOfDate, require_current

router = APIRouter(tags=["health"])


class Health(BaseModel):
    """The answer of a process that is well."""

    status: str


@router.get("/healthz")
def get_liveness() -> Health:
    """Answer as long as the process runs; touches nothing else."""
    return Health(status="ok")


@router.get(
    "/metrics",
    response_class=PlainTextResponse,
    responses={200: {"description": "The text format of Prometheus."}},
)
def get_metrics(request: Request) -> Response:
    """Tell Prometheus how many requests this process answered, how fast, and how many jobs there are."""
    metrics: Metrics = request.app.state.metrics
    return Response(metrics.text(), media_type=CONTENT_TYPE_LATEST)


@router.get("/ping")
async def ping() -> Response:
    """Answer as fast as this service can, with a constant: what other answers are measured by."""
    return Response(b'{"status":"ok"}', media_type="application/json")


@router.get("/readyz", responses={503: {"model": Problem}})
def get_readiness(database: WholeDatabaseDep) -> Health:
    """Answer 200 when the database is reached and its schema is current, 503 when not."""
    return check_readiness(database)


def check_readiness(database: Database) -> Health:
    """Return that the process can serve requests, or raise ServiceUnavailable."""
    try:
        require_current(database)
    except SchemaOutOfDate as error:
        raise ServiceUnavailable("schema_out_of_date", str(error)) from error
    except SQLAlchemyError as error:
        raise ServiceUnavailable("database_unavailable", "The database does not answer.") from error
    return Health(status="ready")
