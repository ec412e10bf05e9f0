"""The SQL of models and their versions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session, aliased

from app.persistence.models import (
    Dataset,
    DatasetVersion,
    JobState,
    MatrixChunk,
    MatrixName,
    Model,
    ModelAlias,
    ModelVersion,
    TaskRow,
    TrainingJob,
)


class VersionRow(NamedTuple):
    """A version with the names of the things that it belongs to."""

    version: ModelVersion
    model_name: str
    dataset_name: str
    dataset_version: int


class AliasRow(NamedTuple):
    """An alias with the numbers of the versions that it names and named before."""

    alias: ModelAlias
    number: int
    previous: int | None


_PREVIOUS = aliased(ModelVersion)
_ALIASES = (
    select(ModelAlias, ModelVersion.number, _PREVIOUS.number)
    .join(Model, ModelAlias.model_id == Model.id)
    .join(ModelVersion, ModelAlias.model_version_id == ModelVersion.id)
    .outerjoin(_PREVIOUS, ModelAlias.previous_version_id == _PREVIOUS.id)
)
_VERSIONS = (
    select(ModelVersion, Model.name, Dataset.name, DatasetVersion.number)
    .join(Model, ModelVersion.model_id == Model.id)
    .join(DatasetVersion, ModelVersion.dataset_version_id == DatasetVersion.id)
    .join(Dataset, DatasetVersion.dataset_id == Dataset.id)
)

_PUBLISHED = select(Model).where(Model.id.in_(select(ModelVersion.model_id)))
"""Models that have a version."""


def list_models(session: Session, limit: int, after_name: str | None) -> Sequence[Model]:
    """Return up to ``limit`` models by name, those after ``after_name``."""
    query = _PUBLISHED.order_by(Model.name).limit(limit)
    if after_name is not None:
        query = query.where(Model.name > after_name)
    return session.scalars(query).all()


def find_model(session: Session, name: str) -> Model | None:
    """Return the model called ``name``, if it has a version."""
    return session.scalars(_PUBLISHED.where(Model.name == name)).one_or_none()


def model_names(session: Session) -> Sequence[str]:
    """Return the name of every model that has a version."""
    return session.scalars(select(Model.name).join(ModelVersion).distinct()).all()


def list_versions(session: Session, name: str, limit: int, before_number: int | None) -> list[VersionRow]:
    """Return up to ``limit`` versions of ``name``, newest first, those before ``before_number``."""
    query = _VERSIONS.where(Model.name == name).order_by(ModelVersion.number.desc()).limit(limit)
    if before_number is not None:
        query = query.where(ModelVersion.number < before_number)
    return [VersionRow(*row) for row in session.execute(query)]


def find_version(session: Session, name: str, number: int) -> VersionRow | None:
    """Return version ``number`` of ``name``."""
    query = _VERSIONS.where(Model.name == name, ModelVersion.number == number)
    row = session.execute(query).one_or_none()
    return None if row is None else VersionRow(*row)


def list_products(session: Session, version_id: str, limit: int, first_row: int) -> list[str]:
    """Return up to ``limit`` ids of a version in the order of their rows, from ``first_row`` on."""
    query = select(TaskRow.unique_id).where(TaskRow.model_version_id == version_id, TaskRow.row >= first_row)
    return list(session.scalars(query.order_by(TaskRow.row).limit(limit)))


def has_version(session: Session, name: str, number: int) -> bool:
    """Whether there is a version ``number`` of ``name``, without reading it."""
    query = select(ModelVersion.id).join(Model).where(Model.name == name, ModelVersion.number == number)
    return session.execute(query).first() is not None


def version_id(session: Session, model_id: str, number: int) -> str | None:
    """Return the id of version ``number`` of a model."""
    query = select(ModelVersion.id).where(ModelVersion.model_id == model_id, ModelVersion.number == number)
    return session.scalars(query).one_or_none()


def list_aliases(session: Session, name: str) -> list[AliasRow]:
    """Return the aliases of the model called ``name``, by their names."""
    query = _ALIASES.where(Model.name == name).order_by(ModelAlias.name)
    return [AliasRow(*row) for row in session.execute(query)]


def find_alias(session: Session, name: str, alias: str) -> AliasRow | None:
    """Return one alias of the model called ``name``."""
    row = session.execute(_ALIASES.where(Model.name == name, ModelAlias.name == alias)).one_or_none()
    return None if row is None else AliasRow(*row)


def has_matrix(session: Session, version_id: str, matrix: MatrixName) -> bool:
    """Whether a version has this matrix, without reading it."""
    query = select(MatrixChunk.first_row).where(
        MatrixChunk.model_version_id == version_id, MatrixChunk.matrix == matrix
    )
    return session.execute(query.limit(1)).first() is not None


def newest_number(session: Session, name: str) -> int | None:
    """Return the number of the newest version of ``name``."""
    query = select(func.max(ModelVersion.number)).join(Model).where(Model.name == name)
    return session.execute(query).scalar_one()


def lock_model(session: Session, name: str) -> Model | None:
    """Return the model called ``name``, held until the transaction ends (SQLite holds everything anyway)."""
    return session.scalars(select(Model).where(Model.name == name).with_for_update()).one_or_none()


def unfinished_jobs(session: Session, name: str) -> Sequence[str]:
    """Return the ids of queued and running jobs that will publish under ``name``."""
    query = (
        select(TrainingJob.id)
        .where(TrainingJob.model_name == name)
        .where(TrainingJob.state.in_([JobState.QUEUED, JobState.RUNNING]))
        .order_by(TrainingJob.created_at)
    )
    return session.scalars(query).all()


def delete_versions(session: Session, model_id: str, number: int | None = None) -> None:
    """Delete the versions of a model, or the one with this number, and their matrices with them."""
    query = delete(ModelVersion).where(ModelVersion.model_id == model_id)
    if number is not None:
        query = query.where(ModelVersion.number == number)
    session.execute(query)
