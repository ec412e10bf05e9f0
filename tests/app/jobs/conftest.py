"""Fixtures of the queue: jobs on a dataset version without data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import update

from app.persistence.database import Database
from app.persistence.models import Dataset, DatasetVersion, TrainingJob

AddJob = Callable[..., str]


@pytest.fixture
def dataset_version_id(database: Database) -> str:
    with database.write() as session:
        dataset = Dataset(name="sales", kind="series", definition={})
        version = DatasetVersion(dataset=dataset, number=1, report={})
        session.add(version)
        session.flush()
        return version.id


@pytest.fixture
def add_job(database: Database, dataset_version_id: str) -> AddJob:
    """Queue a job; returns its id."""

    def add(request: dict[str, Any] | None = None, **columns: Any) -> str:
        columns = {"model_name": "m", **columns}
        job = TrainingJob(dataset_version_id=dataset_version_id, request=request or {}, **columns)
        with database.write() as session:
            session.add(job)
            session.flush()
            return job.id

    return add


def read_job(database: Database, job_id: str) -> TrainingJob:
    with database.read() as session:
        return session.get_one(TrainingJob, job_id)


def let_lease_run_out(database: Database, job_id: str) -> None:
    with database.write() as session:
        session.execute(update(TrainingJob).where(TrainingJob.id == job_id).values(lease_expires_at=1.0))
