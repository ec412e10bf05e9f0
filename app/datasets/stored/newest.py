"""The newest values of a dataset, as forecasts take them."""

from __future__ import annotations

import polars as pl

from app.datasets import repository
from app.datasets.stored.frames import LoadedPanel, deleted, load
from app.persistence.database import Database
from app.persistence.storage import Storage
from ccmtl_core.forecasting import SeriesColumns, SeriesPanel


class StoredValues:
    """What is stored in a database and a folder of files."""

    def __init__(self, database: Database, storage: Storage) -> None:
        self._database, self._storage = database, storage

    def newest(self, version_id: str) -> tuple[str, int, str]:
        """Return name, number and id of the newest version of the dataset that a version is of."""
        with self._database.read() as session:
            version = repository.whole_version(session, version_id)
            newest = None if version is None else repository.newest_version(session, version.dataset_id)
            if version is None or newest is None:
                raise deleted()
            return version.dataset.name, newest.number, newest.id

    def values(self, version_id: str) -> tuple[SeriesPanel, SeriesColumns | None, pl.DataFrame | None]:
        """Return the panel of a version, and the columns and attributes beside it, where there are any."""
        loaded = load(self._database, self._storage, version_id)
        assert isinstance(loaded, LoadedPanel)
        return loaded.panel, loaded.columns, loaded.attributes
