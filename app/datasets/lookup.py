"""Find a dataset by its name; an unknown name is refused with similar ones."""

from __future__ import annotations

from sqlalchemy.orm import Session

from app.datasets import repository
from app.datasets.repository import DatasetRow
from app.http.errors import NotFound
from app.persistence.models import Dataset


def require(session: Session, name: str) -> DatasetRow:
    """Return the dataset called ``name``.

    Raises
    ------
    NotFound
        If there is none.
    """
    row = repository.find_dataset(session, name)
    if row is None:
        raise _unknown(session, name)
    return row


def lock(session: Session, name: str) -> Dataset:
    """Return the dataset called ``name``, held until the transaction ends.

    Raises
    ------
    NotFound
        If there is none.
    """
    dataset = repository.lock_dataset(session, name)
    if dataset is None:
        raise _unknown(session, name)
    return dataset


def _unknown(session: Session, name: str) -> NotFound:
    return NotFound.named("dataset", name, repository.dataset_names(session))
