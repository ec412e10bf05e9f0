"""Liveness and readiness: whether the process answers, and whether it could serve a request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel, Field
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from app.http.access import Scope, admit
from app.http.dependencies import SettingsDep, from_state
from app.http.errors import Fault, Problem, ServiceUnavailable
from app.http.failures import is_full
from app.http.metrics import Metrics
from app.persistence.database import Database
from app.persistence.schema import SchemaOutOfDate, require_current
from app.persistence.storage import Storage

router = APIRouter(tags=["health"])

PROBES = {"/healthz", "/readyz", "/metrics", "/ping", "/v2/health/live", "/v2/health/ready"}
"""What is asked every few seconds and would drown all else in traces."""


class Health(BaseModel):
    """The answer of a process that is well."""

    status: str


class Ready(Health):
    """The answer of a process that can serve requests."""

    workers: int = Field(description="Workers that are alive, on all machines.")
    warnings: list[str] = Field(description="What is wrong, although predictions are answered.")


class Readiness:
    """Finds out whether requests can be served.

    Parameters
    ----------
    database, storage
        What most requests need.
    n_workers
        Returns how many workers are alive, in a session.
    """

    def __init__(self, database: Database, storage: Storage, n_workers: Callable[[Session], int]) -> None:
        self._database, self._storage, self._n_workers = database, storage, n_workers

    def check(self) -> Ready:
        """Return that requests can be served, or raise ServiceUnavailable with all reasons why not."""
        faults, warnings, n_workers = [], [], 0
        try:
            require_current(self._database)
            with self._database.read() as session:
                n_workers = self._n_workers(session)
        except SchemaOutOfDate as error:
            faults.append(Fault(code="schema_out_of_date", message=str(error)))
        except SQLAlchemyError:
            faults.append(Fault(code="database_unavailable", message="The database does not answer."))
        try:
            self._storage.check()
        except OSError as error:
            if is_full(error):
                warnings.append(
                    "The disk of the data folder is full: uploads are refused, and trainings fail."
                )
            else:
                reason = f"The data folder cannot be written to: {error.strerror}."
                faults.append(Fault(code="storage_unavailable", message=reason))
        if faults:
            detail = " ".join(fault.message for fault in faults)
            raise ServiceUnavailable(str(faults[0].code), detail, errors=faults)
        if not n_workers:
            warnings.append("No worker is alive: training jobs wait until `ccmtl worker` runs.")
        return Ready(status="ready", workers=n_workers, warnings=warnings)


ReadinessDep = Annotated[Readiness, from_state("readiness")]


@router.get("/healthz")
def get_liveness() -> Health:
    """Answer as long as the process runs; touches nothing else."""
    return Health(status="ok")


async def _may_read_metrics(request: Request, settings: SettingsDep) -> None:
    if settings.metrics_need_key:
        await admit(request, Scope.ADMIN)


@router.get(
    "/metrics",
    response_class=PlainTextResponse,
    responses={200: {"description": "The text format of Prometheus."}},
    dependencies=[Depends(_may_read_metrics)],
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
def get_readiness(readiness: ReadinessDep) -> Ready:
    """Answer 200 when requests can be served, 503 with all reasons when not.

    They can when the database is reached, its schema is current, and the data folder can be written to. That
    no worker is alive, or that the disk is full, stands in `warnings`: forecasts are answered all the same.
    """
    return readiness.check()
