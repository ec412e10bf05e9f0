"""The SQL of datasets, their versions and segments."""

from __future__ import annotations

from collections.abc import Sequence

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


def list_datasets(session: Session, limit: int, after_name: str | None) -> Sequence[Dataset]:
    """Return up to ``limit`` datasets by name, those after ``after_name``."""
    query = select(Dataset).order_by(Dataset.name).limit(limit)
    if after_name is not None:
        query = query.where(Dataset.name > after_name)
    return session.scalars(query).all()


def find_dataset(session: Session, name: str, *, lock: bool = False) -> Dataset:
    """Return the dataset called ``name``, or raise NotFound with similar names.

    A lock is held until the transaction ends (SQLite holds everything).
    """
    query = select(Dataset).where(Dataset.name == name)
    dataset = session.scalars(query.with_for_update() if lock else query).one_or_none()
    if dataset is None:
        raise NotFound.named("dataset", name, session.scalars(select(Dataset.name)))
    return dataset


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


def first_version_with(session: Session, dataset_id: str, digest: str) -> int | None:
    """Return the number of the first version that has this segment."""
    query = select(func.min(DatasetVersion.number)).join(
        Segment, Segment.dataset_version_id == DatasetVersion.id
    )
    return session.scalar(query.where(DatasetVersion.dataset_id == dataset_id, Segment.sha256 == digest))


def version_with_key(session: Session, dataset_id: str, key: str | None) -> DatasetVersion | None:
    """Return the version that an upload with this idempotency key made, None where there is none."""
    if key is None:
        return None
    query = select(DatasetVersion).where(DatasetVersion.dataset_id == dataset_id)
    query = query.where(DatasetVersion.report["idempotency_key"].as_string() == key)
    return session.scalars(query.order_by(DatasetVersion.number).limit(1)).one_or_none()


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
