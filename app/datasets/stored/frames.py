"""Write, read and remove the segments of versions; load a version as a panel of series or a task dataset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from app.datasets import repository
from app.datasets.definition import DEFINITION, Definition, RegressionDefinition, SeriesDefinition
from app.datasets.stored.period_values import by_period
from app.http.errors import AppError, NotFound
from app.persistence.database import Database
from app.persistence.models import Dataset
from app.persistence.storage import SegmentDamaged, Storage
from ccmtl_core import TaskDataset
from ccmtl_core.base.system_errors import naming_system_errors
from ccmtl_core.forecasting import SeriesColumns, SeriesPanel


class LoadedPanel(NamedTuple):
    """The series of a version, filled as its definition says, the number of values added, what is beside."""

    panel: SeriesPanel
    definition: SeriesDefinition
    n_filled: int
    columns: SeriesColumns | None = None
    attributes: pl.DataFrame | None = None


def definition_of(dataset: Dataset) -> Definition:
    """Return what ``dataset`` was created with."""
    return DEFINITION.validate_python(dataset.definition)


def load(database: Database, storage: Storage, version_id: str) -> LoadedPanel | TaskDataset:
    """Load a version: a panel of series, or rows of a regression, tasks in the order of their ids as text.

    Raise NotFound if the dataset was deleted, be it while its files were read; AppError if a file is missing
    or was changed; DataError if the panel cannot be filled within the core's limit.
    """
    with database.read() as session:
        version = repository.whole_version(session, version_id)
        if version is None:
            raise deleted()
        definition = definition_of(version.dataset)
        digests = [segment.sha256 for segment in version.segments]
    try:
        frame = read_segments(storage, digests)
    except SegmentDamaged as error:
        raise unreadable(database, version_id, error) from error
    if isinstance(definition, SeriesDefinition):
        return _panel(definition, frame)
    return _task_dataset(definition, frame)


def _panel(definition: SeriesDefinition, frame: pl.DataFrame) -> LoadedPanel:
    values = by_period(frame, definition.frequency, definition.aggregation)
    y = np.maximum(values.y, 0.0) if definition.negatives == "clip" else values.y
    panel = SeriesPanel(
        tuple(values.unique_ids.to_list()), values.offsets, values.period, y, definition.frequency
    )
    names, attributes, columns = definition.columns.beside, None, None
    if names:
        ids = values.unique_ids.gather(values.series).alias("unique_id")
        rows = pl.DataFrame([ids, pl.Series("period", values.period), *values.columns()])
        columns = SeriesColumns.of_rows(rows, names, definition.frequency, ahead=definition.columns.future)
    if definition.columns.attributes:
        attributes = values.attributes.rename(lambda cell: definition.columns.attributes[int(cell[2:])])
        attributes = attributes.insert_column(0, values.unique_ids.alias("unique_id"))
    n_filled = 0
    if definition.fill is not None:
        panel, n_filled = panel.filled(definition.fill.method, start=definition.fill.start)
    return LoadedPanel(panel, definition, n_filled, columns, attributes)


def _task_dataset(definition: RegressionDefinition, frame: pl.DataFrame) -> TaskDataset:
    frame = frame.sort("unique_id", maintain_order=True)
    runs = frame.select(pl.col("unique_id").rle()).unnest("unique_id")
    features = [f"x_{i}" for i in range(len(definition.columns.features))]
    return TaskDataset(
        X=np.ascontiguousarray(frame.select(features).to_numpy()),
        y=frame["y"].to_numpy(),
        offsets=np.concatenate([[0], np.cumsum(runs["len"].to_numpy(), dtype=np.int64)]),
        task_ids=tuple(runs["value"].to_list()),
        feature_names=tuple(definition.columns.features),
    )


def read_segments(storage: Storage, digests: Sequence[str]) -> pl.DataFrame:
    """Return the rows of all segments in their order; SegmentDamaged if a file is missing or changed."""
    with naming_system_errors():
        return pl.concat(
            pl.read_parquet(storage.verified_segment(digest), glob=False, hive_partitioning=False)
            for digest in digests
        )


def deleted() -> NotFound:
    """Return the answer to a request whose dataset went away under it."""
    return NotFound("dataset_not_found", "The dataset was deleted while it was being read.")


def unreadable(database: Database, version_id: str, error: SegmentDamaged) -> AppError:
    """Return the answer to a request that cannot read a version, which was deleted or is damaged."""
    with database.read() as session:  # a new one: what an older one sees may have gone since
        if repository.whole_version(session, version_id) is None:
            return deleted()
    return AppError(
        "dataset_damaged",
        f"The dataset version cannot be read: {error}. Restore the data folder from a backup, or upload the "
        "data again in full.",
    )


def sweep(database: Database, storage: Storage) -> int:
    """Remove the files of uploads that a crash cut off; return how many."""
    return storage.sweep(lambda: _referenced(database))


def discard(database: Database, storage: Storage, *digests: str) -> None:
    """Remove those of the segments that no version names any more."""
    storage.discard(digests, lambda: _referenced(database))


def _referenced(database: Database) -> set[str]:
    with database.of(None).read() as session:  # equal files of several workspaces are one
        return set(repository.all_digests(session))
