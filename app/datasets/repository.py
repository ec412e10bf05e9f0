"""The SQL of datasets, their versions and segments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session, joinedload, selectinload

from app.http.errors import NotFound
from app.persistence.models import (
    Dataset,
    DatasetVersion,
    JobState,
    Model,
    ModelVersion,
    Segment,
    TrainingJob,
)


class DatasetRow(NamedTuple):
    """A dataset and the number of its newest version."""

    dataset: Dataset
    newest_version: int | None


_DATASETS = (
    select(Dataset, func.max(DatasetVersion.number))
    .outerjoin(DatasetVersion, DatasetVersion.dataset_id == Dataset.id)
    .group_by(Dataset.id)
)


def list_datasets(session: Session, limit: int, after_name: str | None) -> list[DatasetRow]:
    """Return up to ``limit`` datasets by name, those after ``after_name``."""
    query = _DATASETS.order_by(Dataset.name).limit(limit)
    if after_name is not None:
        query = query.where(Dataset.name > after_name)
    return [DatasetRow(*row) for row in session.execute(query)]


def find_dataset(session: Session, name: str) -> DatasetRow:
    """Return the dataset called ``name``, or raise NotFound with similar names."""
    row = session.execute(_DATASETS.where(Dataset.name == name)).one_or_none()
    if row is None:
        raise _unknown(session, name)
    return DatasetRow(*row)


def lock_dataset(session: Session, name: str) -> Dataset:
    """Do the same, and hold the dataset until the transaction ends (SQLite holds everything)."""
    query = select(Dataset).where(Dataset.name == name).with_for_update()
    dataset = session.scalars(query).one_or_none()
    if dataset is None:
        raise _unknown(session, name)
    return dataset


def _unknown(session: Session, name: str) -> NotFound:
    return NotFound.named("dataset", name, session.scalars(select(Dataset.name)))


def lock_versions(session: Session, dataset_id: str) -> None:
    """Hold all versions of a dataset, so that no new row can refer to one before the transaction ends."""
    held = select(DatasetVersion.id).where(DatasetVersion.dataset_id == dataset_id).with_for_update()
    session.execute(held).all()


def newest_version(session: Session, dataset_id: str) -> DatasetVersion | None:
    """Return the newest version of a dataset."""
    query = select(DatasetVersion).where(DatasetVersion.dataset_id == dataset_id)
    return session.scalars(query.order_by(DatasetVersion.number.desc()).limit(1)).one_or_none()


def list_versions(
    session: Session, dataset_id: str, limit: int, before_number: int | None
) -> Sequence[DatasetVersion]:
    """Return up to ``limit`` versions of a dataset, newest first, those before ``before_number``."""
    query = select(DatasetVersion).where(DatasetVersion.dataset_id == dataset_id)
    query = query.options(selectinload(DatasetVersion.segments))
    if before_number is not None:
        query = query.where(DatasetVersion.number < before_number)
    return session.scalars(query.order_by(DatasetVersion.number.desc()).limit(limit)).all()


def find_version(session: Session, dataset_id: str, number: int) -> DatasetVersion | None:
    """Return version ``number`` of a dataset."""
    query = select(DatasetVersion).where(
        DatasetVersion.dataset_id == dataset_id, DatasetVersion.number == number
    )
    return session.scalars(query).one_or_none()


def whole_version(session: Session, version_id: str) -> DatasetVersion | None:
    """Return a version with its dataset and segments, by one statement: all are there, or nothing is."""
    query = select(DatasetVersion).where(DatasetVersion.id == version_id)
    query = query.options(joinedload(DatasetVersion.dataset), joinedload(DatasetVersion.segments))
    return session.scalars(query).unique().one_or_none()


def segments_of(session: Session, version_id: str) -> Sequence[Segment]:
    """Return the segments of a version in their order."""
    query = select(Segment).where(Segment.dataset_version_id == version_id).order_by(Segment.position)
    return session.scalars(query).all()


def digests_of(session: Session, dataset_id: str) -> Sequence[str]:
    """Return the digests of all segments of a dataset."""
    query = select(Segment.sha256).join(DatasetVersion, Segment.dataset_version_id == DatasetVersion.id)
    return session.scalars(query.where(DatasetVersion.dataset_id == dataset_id).distinct()).all()


def all_digests(session: Session) -> Sequence[str]:
    """Return the digests of all segments."""
    return session.scalars(select(Segment.sha256).distinct()).all()


def unfinished_jobs(session: Session, dataset_id: str) -> Sequence[str]:
    """Return the ids of queued and running jobs on any version of a dataset."""
    query = (
        select(TrainingJob.id)
        .join(DatasetVersion, TrainingJob.dataset_version_id == DatasetVersion.id)
        .where(DatasetVersion.dataset_id == dataset_id)
        .where(TrainingJob.state.in_([JobState.QUEUED, JobState.RUNNING]))
        .order_by(TrainingJob.created_at)
    )
    return session.scalars(query).all()


def dependent_models(session: Session, dataset_id: str) -> Sequence[str]:
    """Return the names of models that have a version trained on a dataset."""
    query = (
        select(Model.name)
        .join(ModelVersion, ModelVersion.model_id == Model.id)
        .join(DatasetVersion, ModelVersion.dataset_version_id == DatasetVersion.id)
        .where(DatasetVersion.dataset_id == dataset_id)
        .distinct()
        .order_by(Model.name)
    )
    return session.scalars(query).all()
