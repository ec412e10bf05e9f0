"""A stored dataset version in, what training reads out: a panel of series, or a task dataset."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl
from sqlalchemy.orm import Session

from app.datasets import repository
from app.datasets.period_values import by_period
from app.datasets.schemas import DEFINITION, Definition, RegressionDefinition, SeriesDefinition
from app.datasets.segments import read_segments
from app.models import Dataset, DatasetVersion
from app.storage import Storage
from ccmtl_core import TaskDataset
from ccmtl_core.forecasting import SeriesPanel


class LoadedPanel(NamedTuple):
    """The series of a version, filled as its definition says, and how many values that added."""

    panel: SeriesPanel
    definition: SeriesDefinition
    n_filled: int


def definition_of(dataset: Dataset) -> Definition:
    """Return what ``dataset`` was created with."""
    return DEFINITION.validate_python(dataset.definition)


def load_series_panel(session: Session, storage: Storage, dataset_version_id: str) -> LoadedPanel:
    """Load a version of a dataset of series.

    Raises
    ------
    SegmentDamaged
        If a file of the version is missing or was changed.
    DataError
        If the panel cannot be filled within the core's limit.
    """
    definition, frame = _load(session, storage, dataset_version_id)
    if not isinstance(definition, SeriesDefinition):
        raise ValueError(f"{dataset_version_id} is not a version of a dataset of series")
    values = by_period(frame, definition.frequency, definition.aggregation)
    panel = SeriesPanel(
        tuple(values.unique_ids.to_list()), values.offsets, values.period, values.y, definition.frequency
    )
    if definition.fill is None:
        return LoadedPanel(panel, definition, 0)
    filled, n_filled = panel.filled(definition.fill.method, start=definition.fill.start)
    return LoadedPanel(filled, definition, n_filled)


def load_task_dataset(session: Session, storage: Storage, dataset_version_id: str) -> TaskDataset:
    """Load a version of a dataset for regression; tasks come in the order of their ids as text.

    Raises
    ------
    SegmentDamaged
        If a file of the version is missing or was changed.
    """
    definition, frame = _load(session, storage, dataset_version_id)
    if not isinstance(definition, RegressionDefinition):
        raise ValueError(f"{dataset_version_id} is not a version of a dataset for regression")
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


def _load(session: Session, storage: Storage, version_id: str) -> tuple[Definition, pl.DataFrame]:
    version = session.get_one(DatasetVersion, version_id)
    digests = [segment.sha256 for segment in repository.segments_of(session, version_id)]
    return definition_of(version.dataset), read_segments(storage, digests)
