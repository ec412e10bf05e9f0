"""Forecast from the newest values that are stored, without a fit: of a later version of the dataset."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

import polars as pl
from sqlalchemy.exc import OperationalError

from app.http.errors import AppError
from app.registry.newest import with_newest
from app.registry.schemas import DataUsed
from app.registry.service import StoredModel
from ccmtl_core import CCMTLError
from ccmtl_core.forecasting import SeriesColumns, SeriesPanel

logger = logging.getLogger(__name__)

REFRESH_SECONDS = 0.2
MOST_KEPT = 16
"""Versions of models whose newest values are kept in memory; they share all else with the models."""


class Source(Protocol):
    """Where values are stored; the slice of predictions knows no more of datasets than this."""

    def newest(self, version_id: str) -> tuple[str, int, str]:
        """Return name, number and id of the newest version of the dataset that a version is of."""

    def values(self, version_id: str) -> tuple[SeriesPanel, SeriesColumns | None, pl.DataFrame | None]:
        """Return the values of a version, and the columns and attributes beside them."""


class Histories:
    """Models with the newest values of their datasets.

    The source is asked which version is the newest at most once in ``refresh_seconds``. Where it cannot be
    asked or read, forecasts start from the values known before.
    """

    def __init__(
        self,
        source: Source,
        refresh_seconds: float = REFRESH_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source, self._refresh_seconds, self._clock = source, refresh_seconds, clock
        self._newest: dict[str, tuple[DataUsed, float]] = {}
        self._moved: OrderedDict[tuple[str, str, int], tuple[StoredModel, StoredModel]] = OrderedDict()
        self._changing, self._loading = threading.Lock(), threading.Lock()

    def peek(self, model: StoredModel) -> StoredModel | None:
        """Return the model with the newest values if the source need not be asked for that, else None."""
        if model.data is None or model.frequency is None:
            return model
        newest, looked_up = self._newest.get(model.data.id, (None, 0.0))
        if newest is None or self._clock() - looked_up > self._refresh_seconds:
            return None
        return model if newest.id == model.data.id else self._kept(model, newest)

    def get(self, model: StoredModel) -> StoredModel:
        """Return the model with the newest values."""
        if model.data is None or model.frequency is None:
            return model
        newest = self._look_up(model.data)
        if newest.id == model.data.id:
            return model
        with self._loading:
            return self._kept(model, newest) or self._load(model, newest)

    def _look_up(self, data: DataUsed) -> DataUsed:
        known, looked_up = self._newest.get(data.id, (data, -self._refresh_seconds))
        if self._clock() - looked_up <= self._refresh_seconds:
            return known
        try:
            name, number, version_id = self._source.newest(data.id)
            known = DataUsed(dataset=name, version=number, id=version_id)
        except OperationalError:
            logger.warning("the database does not answer: forecasts start from version %d", known.version)
        self._newest[data.id] = known, self._clock()
        return known

    def _kept(self, model: StoredModel, newest: DataUsed) -> StoredModel | None:
        with self._changing:
            of, moved = self._moved.get(_key(model), (None, None))
            tried = moved is not None and (moved.data == newest or moved is model)
            return moved if of is model and tried else None

    def _load(self, model: StoredModel, newest: DataUsed) -> StoredModel:
        try:
            moved = with_newest(model, *self._source.values(newest.id), newest)
        except (AppError, CCMTLError, OperationalError) as error:
            logger.warning("version %d of %s cannot be read: %s", newest.version, newest.dataset, error)
            return model
        with self._changing:
            self._moved[_key(model)] = model, moved
            self._moved.move_to_end(_key(model))
            while len(self._moved) > MOST_KEPT:
                self._moved.popitem(last=False)
        return moved


def _key(model: StoredModel) -> tuple[str, str, int]:
    """What tells a version from all others, also of other workspaces."""
    return "" if model.data is None else model.data.id, model.name, model.version
