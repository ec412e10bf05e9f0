"""A model's name and version go in; its weights come out of memory, loaded once, dropped when least used."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.exc import OperationalError

from app.database import Database
from app.predictions.wire import ModelRef
from app.registry import service as registry
from app.registry.publication import History
from app.registry.service import StoredModel
from ccmtl_core.forecasting import Frequency
from ccmtl_core.near_matches import NearMatches

logger = logging.getLogger(__name__)

REFRESH_SECONDS = 0.2


@dataclass(frozen=True)
class ServedModel:
    """One version in memory: ``weights`` (T, P), ``intercept`` (T,), ``rows`` from ``unique_id`` to row."""

    ref: ModelRef
    weights: NDArray[np.float64]
    intercept: NDArray[np.float64]
    rows: dict[str, int]
    feature_names: tuple[str, ...]
    history: History | None
    frequency: Frequency | None
    n_bytes: int

    @classmethod
    def from_stored(cls, stored: StoredModel) -> ServedModel:
        """Return ``stored`` ready to answer."""
        detail, history = stored.detail, stored.history
        frequency = detail.configuration.get("frequency")
        n_bytes = stored.weights.nbytes + stored.intercept.nbytes + sys.getsizeof(stored.rows)
        n_bytes += sum(map(sys.getsizeof, stored.rows))
        if history is not None:
            n_bytes += history.lags.nbytes + history.last_period.nbytes
        return cls(
            ref=ModelRef(detail.model, detail.version),
            weights=stored.weights,
            intercept=stored.intercept,
            rows=stored.rows,
            feature_names=tuple(detail.feature_names),
            history=history,
            frequency=None if frequency is None else Frequency(frequency),
            n_bytes=n_bytes,
        )

    @cached_property
    def near_matches(self) -> NearMatches:
        """The known ids in an order that finds those like an unknown one; built when first needed."""
        return NearMatches(self.rows)


class ModelCache:
    """Versions that answer from memory, at most ``max_bytes`` of them, the last used one always.

    Versions never change, so only the number of the newest one is looked up again, at most every
    ``refresh_seconds``: so long may a name still mean the version before.
    """

    def __init__(
        self,
        database: Database,
        max_bytes: int,
        refresh_seconds: float = REFRESH_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._max_bytes = max_bytes
        self._refresh_seconds = refresh_seconds
        self._clock = clock
        self._newest: dict[str, tuple[int, float]] = {}
        self._served: OrderedDict[tuple[str, int], ServedModel] = OrderedDict()
        self._loading = threading.Lock()
        self._changing = threading.Lock()

    def peek(self, name: str, version: int | None) -> ServedModel | None:
        """Return the version if memory alone can tell, without a look at the database."""
        if version is None:
            version, looked_up = self._newest.get(name, (None, 0.0))
            if version is None or self._clock() - looked_up > self._refresh_seconds:
                return None
        with self._changing:
            served = self._served.get((name, version))
            if served is not None:
                self._served.move_to_end((name, version))
            return served

    def get(self, name: str, version: int | None) -> ServedModel:
        """Return a version, the newest if ``version`` is None, loading what is not in memory.

        Raises
        ------
        NotFound
            If there is no such model or version.
        CorruptModel
            If what is stored is not what was published.
        """
        number = self._newest_number(name) if version is None else version
        served = self.peek(name, number)
        if served is not None:
            return served
        with self._loading:
            served = self.peek(name, number)
            return served if served is not None else self._load(name, number)

    def _newest_number(self, name: str) -> int:
        known = self._newest.get(name)
        if known is not None:
            # Those who ask while this thread looks go on with the number that is known.
            self._newest[name] = (known[0], self._clock())
        try:
            with self._database.read() as session:
                number = registry.newest_number(session, name)
        except OperationalError:
            if known is None:
                raise
            logger.warning("the database does not answer: %s stays at version %d", name, known[0])
            return known[0]
        self._newest[name] = (number, self._clock())
        return number

    def _load(self, name: str, number: int) -> ServedModel:
        with self._database.read() as session:
            served = ServedModel.from_stored(registry.load(session, name, number))
        with self._changing:
            self._served[name, number] = served
            total = sum(model.n_bytes for model in self._served.values())
            while total > self._max_bytes and len(self._served) > 1:
                _, dropped = self._served.popitem(last=False)
                total -= dropped.n_bytes
        return served
