"""Keep the models that are asked for in memory, up to a limit; the one unused for longest goes first."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from sqlalchemy.exc import OperationalError

from app.http.errors import NotFound
from app.persistence.database import Database
from app.registry import service as registry
from app.registry.matrix_files import MatrixFiles
from app.registry.references import split_alias, split_version
from app.registry.service import StoredModel

logger = logging.getLogger(__name__)

REFRESH_SECONDS = 0.2


def in_memory(request: Request, model: str) -> StoredModel | None:
    """Return the version that the request's path means by ``model``, None if it is not in memory."""
    cache: ModelCache = request.app.state.models
    return cache.of(request.state.workspace).peek(*split_version(model))


async def loaded(request: Request, model: str) -> StoredModel:
    """Return the version that the request's path means by ``model``; a thread loads what is not in memory."""
    found = in_memory(request, model)
    if found is not None:
        return found
    cache: ModelCache = request.app.state.models
    return await run_in_threadpool(cache.of(request.state.workspace).get, *split_version(model))


class ModelCache:
    """Versions in memory, together at most ``max_bytes``, but always the one used last.

    They are asked for by the model's name, or by ``name@alias``, and a number or None.

    A version never changes, and its number is never given again. So the database is only asked which number
    is the newest or has the alias, and whether a number still exists, each at most once in
    ``refresh_seconds``. For that long a name may still mean the version before, and a version deleted by
    another process may still answer.
    """

    def __init__(
        self,
        database: Database,
        max_bytes: int,
        refresh_seconds: float = REFRESH_SECONDS,
        clock: Callable[[], float] = time.monotonic,
        files: MatrixFiles | None = None,
    ) -> None:
        self._database = database
        self._max_bytes = max_bytes
        self._refresh_seconds = refresh_seconds
        self._clock = clock
        self._files = files
        # (workspace, name, version asked for) → its number, and when that was looked up
        self._known: dict[tuple[str, str, int | None], tuple[int, float]] = {}  # of name@alias too
        self._served: OrderedDict[tuple[str, str, int], StoredModel] = OrderedDict()
        self._n_forgotten = 0  # rises with each deletion; what was read before may be gone
        self._loading = threading.Lock()
        self._changing = threading.Lock()

    def of(self, workspace: str) -> ModelsOfWorkspace:
        """Return the models of one workspace alone."""
        return ModelsOfWorkspace(self, workspace)

    def peek(self, workspace: str, name: str, version: int | None) -> StoredModel | None:
        """Return the version if that is possible without asking the database, else None."""
        number, looked_up = self._known.get((workspace, name, version), (None, 0.0))
        if number is None or self._clock() - looked_up > self._refresh_seconds:
            return None
        return self._in_memory(workspace, name, number)

    def get(self, workspace: str, name: str, version: int | None) -> StoredModel:
        """Return a version, the newest if ``version`` is None, loading what is not in memory."""
        number = self._look_up(workspace, name, version)
        try:
            return self._of_number(workspace, name, number)
        except NotFound:
            if version is not None:
                raise
            self.forget(workspace, name, number)  # another process has deleted what was the newest
            return self._of_number(workspace, name, self._look_up(workspace, name, None))

    def forget(self, workspace: str, name: str, version: int | None = None) -> None:
        """Drop a version that was deleted, or all versions of the model; of an alias what it names."""
        with self._changing:
            self._n_forgotten += 1
            own = (workspace, name)
            for asked in [a for a, (n, _) in self._known.items() if a[:2] == own and version in (None, n)]:
                del self._known[asked]
            for key in [k for k in self._served if k[:2] == own and version in (None, k[2])]:
                del self._served[key]

    def _look_up(self, workspace: str, name: str, version: int | None) -> int:
        """Look up the number of the version (None: the newest), unless it was asked just now."""
        known, looked_up = self._known.get((workspace, name, version), (None, 0.0))
        if known is not None and self._clock() - looked_up <= self._refresh_seconds:
            return known
        n_forgotten = self._n_forgotten
        try:
            with self._looking(workspace, name, version), self._database.of(workspace).read() as session:
                number = registry.require_version(session, name, version)
        except OperationalError:
            stays = version if known is None else known
            if stays is None or self._in_memory(workspace, name, stays) is None:
                raise
            logger.warning("the database does not answer: %s stays at version %d", name, stays)
            number = stays
        except NotFound:
            if known is not None:
                self.forget(workspace, name, version)
            raise
        with self._changing:
            if self._n_forgotten == n_forgotten:
                self._known[workspace, name, version] = (number, self._clock())
        return number

    @contextmanager
    def _looking(self, workspace: str, name: str, version: int | None) -> Iterator[None]:
        """Let other requests use the known number while one asks the database, however long that takes."""
        self._date(workspace, name, version, math.inf)
        try:
            yield
        finally:
            self._date(workspace, name, version, self._clock())

    def _date(self, workspace: str, name: str, version: int | None, looked_up: float) -> None:
        with self._changing:
            if (workspace, name, version) in self._known:
                self._known[workspace, name, version] = (self._known[workspace, name, version][0], looked_up)

    def _of_number(self, workspace: str, name: str, number: int) -> StoredModel:
        served = self._in_memory(workspace, name, number)
        if served is not None:
            return served
        with self._loading:
            served = self._in_memory(workspace, name, number)
            return self._load(workspace, name, number) if served is None else served

    def _in_memory(self, workspace: str, name: str, number: int) -> StoredModel | None:
        with self._changing:
            key = workspace, split_alias(name)[0], number
            served = self._served.get(key)
            if served is not None:
                self._served.move_to_end(key)
            return served

    def _load(self, workspace: str, name: str, number: int) -> StoredModel:
        n_forgotten = self._n_forgotten
        with self._database.of(workspace).read() as session:
            served = registry.load(session, split_alias(name)[0], number, self._files)
        with self._changing:
            if self._n_forgotten != n_forgotten:
                return served
            self._served[workspace, served.name, number] = served
            total = sum(model.n_bytes for model in self._served.values())
            while total > self._max_bytes and len(self._served) > 1:
                _, dropped = self._served.popitem(last=False)
                total -= dropped.n_bytes
        return served


class ModelsOfWorkspace(NamedTuple):
    """The part of the cache that a request may use."""

    cache: ModelCache
    workspace: str

    def peek(self, name: str, version: int | None) -> StoredModel | None:
        """As :meth:`ModelCache.peek`."""
        return self.cache.peek(self.workspace, name, version)

    def get(self, name: str, version: int | None) -> StoredModel:
        """As :meth:`ModelCache.get`."""
        return self.cache.get(self.workspace, name, version)

    def forget(self, name: str, version: int | None = None) -> None:
        """As :meth:`ModelCache.forget`."""
        self.cache.forget(self.workspace, name, version)
