"""What the datasets slice decides about names: create, list, read, and when something may be deleted."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import delete
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.datasets import repository
from app.datasets.schemas import (
    DatasetDetail,
    DatasetPage,
    RegressionDataset,
    RegressionForm,
    SeriesDataset,
    SeriesForm,
    UploadReport,
    VersionDetail,
    VersionPage,
)
from app.datasets.stored.frames import discard
from app.http.errors import Conflict, NotFound
from app.http.parameters import cursor_after, name_before
from app.persistence.database import Database
from app.persistence.models import Dataset, DatasetVersion
from app.persistence.storage import Storage

MAX_LISTED = 5
"""Jobs or models that a refused deletion names."""


def create(session: Session, form: SeriesForm | RegressionForm) -> DatasetDetail:
    """Create a dataset without versions; raise Conflict if the name is taken."""
    dataset = Dataset(
        name=form.name, kind=form.kind, definition=form.model_dump(mode="json", exclude={"name"})
    )
    session.add(dataset)
    try:
        session.flush()
    except IntegrityError:
        raise Conflict("name_taken", f"There is already a dataset {form.name!r}.") from None
    return _detail(dataset)


def list_datasets(session: Session, limit: int, cursor: str | None) -> DatasetPage:
    """Return one page of datasets."""
    rows = repository.list_datasets(session, limit + 1, name_before(cursor))
    return DatasetPage.of(list(map(_detail, rows)), limit, lambda dataset: cursor_after(dataset.name))


def read(session: Session, name: str) -> DatasetDetail:
    """Return the dataset called ``name``."""
    return _detail(repository.find_dataset(session, name))


def list_versions(session: Session, name: str, limit: int, cursor: int | None) -> VersionPage:
    """Return one page of the versions of ``name``, newest first."""
    dataset = repository.find_dataset(session, name)
    versions = repository.list_versions(session, dataset.id, limit + 1, cursor)
    items = [_version_detail(name, version) for version in versions]
    return VersionPage.of(items, limit, lambda version: str(version.version))


def read_version(session: Session, name: str, number: int) -> VersionDetail:
    """Return version ``number`` of the dataset called ``name``."""
    dataset = repository.find_dataset(session, name)
    version = repository.find_version(session, dataset.id, number)
    if version is None:
        newest = dataset.newest_version
        raise NotFound(
            "dataset_version_not_found",
            f"The dataset {name!r} has no version {number}; "
            + ("nothing was uploaded yet." if newest is None else f"its newest is {newest}."),
            suggestions=[] if newest is None else [str(newest)],
        )
    return _version_detail(name, version)


def remove(database: Database, storage: Storage, name: str) -> None:
    """Delete a dataset, its versions, its finished jobs without a model, and the files that only it used.

    Raise Conflict if an unfinished job or a model version uses it.
    """
    with database.write() as session:
        dataset = repository.find_dataset(session, name, lock=True)
        repository.lock_versions(session, dataset.id)
        jobs = repository.unfinished_jobs(session, dataset.id)
        if jobs:
            what = _listed("unfinished job", jobs)
            raise Conflict(
                "dataset_in_use",
                f"The dataset {name!r} is used by {what}: cancel them with "
                "`POST /v1/training-jobs/{id}/cancel`, or wait until they end.",
            )
        models = repository.dependent_models(session, dataset.id)
        if models:
            what = _listed("model", models)
            raise Conflict(
                "dataset_in_use",
                f"The dataset {name!r} is used by {what}: delete these with "
                "`DELETE /v1/models/{name}`, or only the versions trained on it with "
                "`DELETE /v1/models/{name}/versions/{version}`.",
            )
        digests = repository.digests_of(session, dataset.id)
        session.execute(delete(Dataset).where(Dataset.id == dataset.id))
    discard(database, storage, *digests)


def _listed(what: str, names: Sequence[str]) -> str:
    """How many there are, and the first of them by name."""
    shown = ", ".join(map(repr, names[:MAX_LISTED]))
    more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
    return f"{len(names)} {what}{'s' if len(names) > 1 else ''} ({shown}{more})"


def _detail(dataset: Dataset) -> DatasetDetail:
    fields = {
        **dataset.definition,
        "id": dataset.id,
        "name": dataset.name,
        "created_at": dataset.created_at,
        "newest_version": dataset.newest_version,
    }
    shape = SeriesDataset if dataset.kind == "series" else RegressionDataset
    return shape.model_validate(fields)


def _version_detail(name: str, version: DatasetVersion) -> VersionDetail:
    return VersionDetail(
        dataset=name,
        version=version.number,
        id=version.id,
        created_at=version.created_at,
        bytes=sum(segment.n_bytes for segment in version.segments),
        report=UploadReport.model_validate(version.report),
    )
