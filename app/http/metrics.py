"""Count and time requests by route, for Prometheus, and log them: what ``/metrics`` tells of this process."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from urllib.parse import quote

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector
from sqlalchemy.exc import SQLAlchemyError
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.http.parameters import parameters_of

access_logger = logging.getLogger("app.access_log")

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0)
METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
UNMATCHED = "unmatched"
"""Stands for all paths of no route, whose number has no limit."""
UNREAD = Counter(
    "ccmtl_http_unread_requests",
    "Requests that were refused before the application saw them, by the code of the refusal.",
    ["code"],
    registry=None,
)
"""Of all connections of the process; the other counts are of one application."""


class Metrics:
    """The counts of one application, and what else it is asked for at the moment of a scrape.

    Parameters
    ----------
    version : str
        Of the program.
    n_jobs : callable
        Returns how many jobs there are by state; asks the database.
    n_workers : callable
        Returns how many workers are alive; asks the database.
    """

    def __init__(
        self, version: str, n_jobs: Callable[[], Mapping[str, int]], n_workers: Callable[[], int]
    ) -> None:
        self.registry = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector):
            collector(registry=self.registry)
        self.registry.register(_Stored("ccmtl_jobs", "Training jobs.", ["state"], n_jobs))
        alive = "Workers that are alive, on all machines."
        self.registry.register(_Stored("ccmtl_workers", alive, [], lambda: {"": n_workers()}))
        self.registry.register(UNREAD)
        Info("ccmtl", "The program.", registry=self.registry).info({"version": version})
        labels = ("method", "route", "status")
        self._requests = Counter(
            "ccmtl_http_requests", "Requests that were answered.", labels, registry=self.registry
        )
        self._seconds = Histogram(
            "ccmtl_http_request_seconds",
            "From a request's head to the end of its answer.",
            labels[:2],
            buckets=SECONDS,
            registry=self.registry,
        )
        self._under_way = Gauge(
            "ccmtl_http_requests_under_way", "Requests that are being answered.", registry=self.registry
        )
        self._children: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    def text(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        return generate_latest(self.registry)

    def begin(self) -> None:
        """Count a request whose answer begins."""
        self._under_way.inc()

    def end(self, scope: Scope, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        self._under_way.dec()
        method = scope["method"] if scope["method"] in METHODS else "other"
        key = method, getattr(scope.get("route"), "path_format", UNMATCHED), status
        children = self._children.get(key)
        if children is None:
            children = self._requests.labels(*map(str, key)), self._seconds.labels(*key[:2])
            self._children[key] = children
        children[0].inc()
        children[1].observe(seconds)


class CountedRequests:
    """Middleware that counts every request of the application, and logs it if ``access_log`` is true.

    The server's own log leaves out requests whose client went away, which may have been carried out.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, *, access_log: bool) -> None:
        self._app, self._metrics, self._access_log = app, metrics, access_log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer as the application does."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status, began = 0, time.perf_counter()

        def note(given: int) -> None:
            nonlocal status
            status = given
            if self._access_log:
                access_logger.info(*_line(scope, status))

        async def send_counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                note(message["status"])
            await send(message)

        self._metrics.begin()
        try:
            await self._app(scope, receive, send_counted)
        finally:
            if not status:
                note(500)  # an error that nobody catches becomes a 500
            self._metrics.end(scope, status, time.perf_counter() - began)


def _line(scope: Scope, status: int) -> tuple[str | int, ...]:
    """Return what the log says of a request: its client, what it asked for, and its status."""
    host, port = scope.get("client") or ("", 0)
    query = scope["query_string"].decode("ascii", "backslashreplace")
    path = quote(scope["path"]) + (f"?{_without_unknown(query, scope)}" if query else "")
    return '%s:%d - "%s %s HTTP/%s" %d', host, port, scope["method"], path, scope["http_version"], status


def _without_unknown(query: str, scope: Scope) -> str:
    """Leave out what is no parameter of the route: it may be a key that someone has sent by mistake."""
    known, parts = parameters_of(scope.get("route")), query.split("&")
    shown = [part for part in parts if part.partition("=")[0] in known]
    return "&".join(shown if len(shown) == len(parts) else [*shown, "***"])


class _Stored(Collector):
    """A count of what is in the database, by the values of at most one label; nothing while it is away."""

    def __init__(
        self, name: str, text: str, labels: list[str], count: Callable[[], Mapping[str, int]]
    ) -> None:
        self._name, self._text, self._labels, self._count = name, text, labels, count

    def describe(self) -> list[GaugeMetricFamily]:
        """Name the metric without asking the database."""
        return [GaugeMetricFamily(self._name, self._text, labels=self._labels)]

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Ask the database."""
        (family,) = self.describe()
        try:
            for value, count in self._count().items():
                family.add_metric([value] if self._labels else [], count)
        except SQLAlchemyError:
            return
        yield family
