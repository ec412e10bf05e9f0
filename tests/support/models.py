"""Puts what a training job leaves behind into a database, without training anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sqlalchemy import select

from app.persistence.base import new_id
from app.persistence.database import Database
from app.persistence.models import Dataset, DatasetVersion, JobState, TrainingJob
from app.registry.publication import History, TrainedModel, publish

METRICS = {
    "rmse_mean_of_tasks": {"ccmtl": 1.0},
    "rmse_over_rows": {"ccmtl": 1.5},
    "n_tasks_scored": 1,
    "n_tasks_without_training_rows": 0,
    "n_train_rows": 3,
    "n_test_rows": 2,
    "n_rows": 5,
    "n_periods_filled": None,
    "n_periods_without_all_lags": None,
    "first_held_out": None,
}
REPORT = {
    "status": "converged",
    "advice": "The solver reached the tolerance.",
    "solver": "dual",
    "objective": 2.0,
    "gap": 1e-5,
    "tolerance": 1e-4,
    "rounds": 0,
    "cg_iterations": 0,
    "seconds": {"solve": 0.5},
    "history": [],
    "notes": [],
    "fusion_strength": 1.0,
    "rows": {"values": 5, "used": 5, "share": 1.0},
    "not_forecast": None,
    "selection": None,
    "forecaster": None,
}


def add_dataset_version(database: Database, name: str = "sales", kind: str = "series") -> str:
    """Store a dataset with one version that has no segments, unless it is there; return the version's id."""
    with database.write() as session:
        found = session.scalar(select(DatasetVersion.id).join(Dataset).where(Dataset.name == name))
        if found is not None:
            return found
        dataset = Dataset(name=name, kind=kind, definition={})
        version = DatasetVersion(dataset=dataset, number=1, report={})
        session.add(version)
        session.flush()
        return version.id


def trained(
    weights: ArrayLike,
    task_ids: Sequence[str],
    *,
    feature_names: Sequence[str] | None = None,
    intercept: ArrayLike | None = None,
    history: History | None = None,
    frequency: str | None = None,
) -> TrainedModel:
    """Return a trained model with these weights (T, P); of kind series if it has a history."""
    W = np.asarray(weights, dtype=np.float64)
    names = [f"lag_{p + 1}" for p in range(W.shape[1])] if feature_names is None else feature_names
    configuration: dict[str, Any] = {"kind": "regression" if history is None else "series"}
    if intercept is not None:
        configuration["fit_intercept"] = True
    if frequency is not None:
        configuration["frequency"] = frequency
    return TrainedModel(
        weights=W,
        intercept=np.zeros(len(W)) if intercept is None else np.asarray(intercept, dtype=np.float64),
        task_ids=task_ids,
        feature_names=names,
        history=history,
        configuration=configuration,
        metrics=METRICS,
        report=REPORT,
    )


def add_version(
    database: Database, model: TrainedModel, name: str = "sales", *, dataset: str = "sales"
) -> int:
    """Publish ``model`` as the next version of ``name``; return its number."""
    dataset_version_id = add_dataset_version(database, dataset, model.configuration["kind"])
    with database.write() as session:
        job = TrainingJob(
            dataset_version_id=dataset_version_id,
            model_name=name,
            request={"dataset": dataset, "model": name, "fusion_strength": 1.0},
            state=JobState.SUCCEEDED,
            model_version_id=new_id("mv"),
        )
        session.add(job)
        session.flush()
        assert job.model_version_id is not None
        version = publish(
            session,
            model,
            version_id=job.model_version_id,
            model_name=name,
            training_job_id=job.id,
            dataset_version_id=dataset_version_id,
        )
        return version.number
