"""Put the API together (``create_app``) and serve it (``run_api``).

``python -m app.main SOCKET`` serves it on the supervisor's socket and ends with the supervisor.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from types import FrameType
from typing import TypeVar

import uvicorn
from anyio import CapacityLimiter
from fastapi import FastAPI
from fastapi.concurrency import run_in_threadpool
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from app.access import endpoints as access
from app.access.callers import KnownCallers
from app.access.keys import KeyHash, secret_of
from app.access.rates import Rates
from app.access.required_keys import require_keys
from app.datasets import endpoints as datasets
from app.datasets.stored.frames import sweep
from app.datasets.stored.newest import StoredValues
from app.datasets.upload import apart
from app.datasets.upload.reader_process import ReaderProcesses
from app.http import health
from app.http.answers import FinishedAnswers
from app.http.error_handlers import install_error_handlers
from app.http.head import HeadAnswers
from app.http.metrics import CountedRequests, Metrics
from app.http.openapi import DocumentedAPI
from app.http.protocol import ProblemProtocol
from app.http.reference import add_reference
from app.jobs.queue import count_by_state
from app.jobs.workers import count_alive
from app.persistence.database import Database
from app.persistence.schema import prepare
from app.persistence.storage import Storage
from app.predictions import endpoints as predictions
from app.predictions import forecast_endpoints as forecasts
from app.predictions.cache import ModelCache
from app.predictions.histories import Histories
from app.processes.lifeline import end_with_standard_input
from app.processes.listener import is_loopback, listen
from app.processes.logs import configure_logging
from app.protocols import endpoints as protocols
from app.registry import endpoints as registry
from app.registry.matrix_files import MatrixFiles
from app.schedules import endpoints as schedules
from app.settings import Settings
from app.training import endpoints as training
from app.version import VERSION
from app.webhooks import endpoints as webhooks

logger = logging.getLogger("app.main")  # not "__main__", which this module is when it runs

T = TypeVar("T")

NOTE_SECONDS = 60
"""How often the last uses of keys are stored."""
STOP_SECONDS = 20
"""How long unfinished answers, such as that to an upload, may take after SIGTERM."""
TELL_SECONDS = 3.0
"""How long a collector of OpenTelemetry may take for the rest, once all is answered."""


def create_app(settings: Settings) -> FastAPI:
    """Return the API with these settings; its database is prepared when the app starts."""
    app = DocumentedAPI(
        title="CCMTL",
        version=VERSION,
        summary="Forecasts for tens of thousands of products, trained together.",
        lifespan=_lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # the address would be made of what the client says that the host is called
        generate_unique_id_function=lambda route: route.name,
        # Exports by the standard variables of OpenTelemetry; its library is loaded only where these are set.
        telemetry={"auto_configure": True, "exclude": lambda scope: scope.get("path") in health.PROBES},
    )
    app.state.settings = settings
    app.state.is_stopping = False  # streams of events end once this is true
    app.state.has_ended = threading.Event()
    app.state.database = Database(settings)
    app.state.storage = Storage(settings.data_dir)
    app.state.places_here, app.state.places_apart = (CapacityLimiter(apart.AT_ONCE) for _ in range(2))
    app.state.reader_processes = ReaderProcesses(settings)
    app.state.histories = Histories(StoredValues(app.state.database, app.state.storage))
    app.state.matrix_files = MatrixFiles(settings.data_dir)
    app.state.models = ModelCache(
        app.state.database, settings.model_cache_bytes, files=app.state.matrix_files
    )
    app.state.key_hash = KeyHash(secret_of(settings))
    app.state.callers = KnownCallers(
        app.state.database, app.state.key_hash, open_without_keys=is_loopback(settings.host)
    )
    app.state.rates = Rates(settings.requests_per_minute)
    install_error_handlers(app)
    busiest_first = (predictions, health, forecasts, registry, training, datasets, protocols)
    for part in (*busiest_first, schedules, webhooks, access):  # routes are tried one after the other
        app.include_router(part.router)
    add_reference(app)
    app.state.readiness = health.Readiness(app.state.database, app.state.storage, count_alive)
    app.state.metrics = Metrics(
        VERSION,
        partial(_counted, app.state.database, count_by_state),
        partial(_counted, app.state.database, count_alive),
    )
    app.add_middleware(FinishedAnswers)
    app.add_middleware(HeadAnswers)
    app.add_middleware(CountedRequests, metrics=app.state.metrics, access_log=settings.access_log)
    return app


def _counted(database: Database, count: Callable[[Session], T]) -> T:
    with database.read() as session:
        return count(session)


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    prepare(app.state.database)
    sweep(app.state.database, app.state.storage)
    app.state.matrix_files.sweep()
    noting = asyncio.create_task(_note_uses(app.state.callers))
    yield
    noting.cancel()
    with suppress(SQLAlchemyError):
        app.state.callers.note_uses()
    app.state.reader_processes.close()
    app.state.database.dispose()
    app.state.has_ended.set()


async def _note_uses(callers: KnownCallers) -> None:
    """Store when keys were last used, once a minute."""
    while True:
        await asyncio.sleep(NOTE_SECONDS)
        try:
            await run_in_threadpool(callers.note_uses)
        except SQLAlchemyError as error:
            logger.warning("when keys were used could not be stored: %s", error)


class _Server(uvicorn.Server):
    """A server that ends with code 0 when a signal stopped it; uvicorn's own would raise the signal again."""

    def __init__(self, app: FastAPI, settings: Settings) -> None:
        config = uvicorn.Config(
            app,
            http=ProblemProtocol,
            ws="none",
            log_config=None,
            access_log=False,  # of which `CountedRequests` leaves out nothing
            server_header=False,
            timeout_graceful_shutdown=STOP_SECONDS,
        )
        super().__init__(config)
        self._app = app

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Finish the answers under way and stop; after a second interrupt, stop at once."""
        self._app.state.is_stopping = True
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Log the address as soon as callers are answered."""
        await super().startup(sockets)
        if self.started:
            for listener in sockets or ():
                host, port, *_ = listener.getsockname()
                logger.info("listening on http://%s:%d", f"[{host}]" if ":" in host else host, port)


def run_api(settings: Settings, listener: socket.socket | None = None) -> None:
    """Serve the API until SIGTERM or SIGINT, on ``listener`` or else on the settings' host and port."""
    configure_logging("api", settings.log_level, settings.log_format)
    app = create_app(settings)
    prepare(app.state.database)  # before the server starts, whose errors are harder to read
    if listener is None:
        listener = listen(settings.host, settings.port)
    require_keys(app.state.database, settings)
    threading.Thread(target=_end_soon_after, args=(app.state.has_ended,), daemon=True).start()
    _Server(app, settings).run(sockets=[listener])
    app.state.has_ended.set()


def _end_soon_after(has_ended: threading.Event) -> None:
    """End the process if, after the API has ended, a collector that is away still holds it up."""
    has_ended.wait()
    if "opentelemetry.sdk" in sys.modules:
        time.sleep(TELL_SECONDS)
        logger.warning("the collector of OpenTelemetry did not take the rest within %g s", TELL_SECONDS)
        os._exit(0)


if __name__ == "__main__":
    end_with_standard_input()
    run_api(Settings(), socket.socket(fileno=int(sys.argv[1])))
