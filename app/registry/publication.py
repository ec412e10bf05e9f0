"""Publish a trained model as the next version of its name, inside the caller's transaction."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

import app
import ccmtl_core
from app.persistence.base import utc_now
from app.persistence.models import MatrixName, Model, ModelVersion
from app.persistence.outbox import Event, announce
from app.registry import repository
from app.registry.forecasters import attribute_matrix, ranges_matrix, series_matrix
from app.registry.groups import graph_matrix
from app.registry.matrix_store import save_matrix, save_task_ids
from app.version import VERSION
from ccmtl_core import TaskGraph
from ccmtl_core.forecasting import ForecastModel


@dataclass(frozen=True)
class History:
    """What forecasting starts from: each task's newest values, and the period of the newest one.

    ``lags`` is (T, L), newest first, NaN where the last L consecutive periods do not exist;
    ``last_period`` is (T,) int64, the ordinal of each task's newest period.
    """

    lags: NDArray[np.float64]
    last_period: NDArray[np.int64]

    def as_matrix(self) -> NDArray[np.float64]:
        """Return (T, 1 + L): the period, exact below 2**53, then the lags."""
        return np.column_stack([self.last_period.astype(np.float64), self.lags])

    @classmethod
    def from_matrix(cls, matrix: NDArray[np.float64]) -> History:
        """Undo :meth:`as_matrix`."""
        return cls(lags=matrix[:, 1:], last_period=matrix[:, 0].astype(np.int64))


@dataclass(frozen=True)
class TrainedModel:
    """All that a version keeps; ``weights`` (T, P) and ``intercept`` (T,) are in the order of ``task_ids``.

    Forecasts of series start from a ``history`` of lags or are made by a ``forecaster``, whose configuration
    is among the version's; ``newest_past`` (T, C) is what its ``past`` features read. The intercept is stored
    only if ``configuration["fit_intercept"]`` is true; otherwise it is all zeros. ``n_samples`` (T,) counts
    what was known of each task, ``graph`` joins those that were drawn together.
    """

    weights: NDArray[np.float64]
    intercept: NDArray[np.float64]
    task_ids: Sequence[str]
    feature_names: Sequence[str]
    history: History | None
    configuration: dict[str, Any]
    metrics: dict[str, Any]
    report: dict[str, Any]
    forecaster: ForecastModel | None = None
    newest_past: NDArray[np.float64] | None = None
    n_samples: NDArray[np.int64] | None = None
    graph: TaskGraph | None = None


def has_intercept(configuration: Mapping[str, Any]) -> bool:
    """Whether a version with this configuration has a stored intercept; the earliest versions have none."""
    return bool(configuration.get("fit_intercept", False))


@cache
def code_version() -> str:
    """Return the version of this program and the first digits of a SHA-256 of its source."""
    digest = hashlib.sha256()
    for package in (app, ccmtl_core):
        folder = Path(str(package.__file__)).parent
        for file in sorted(folder.rglob("*.py")):
            digest.update(str(file.relative_to(folder)).encode() + b"\0" + file.read_bytes())
    return f"{VERSION}+{digest.hexdigest()[:12]}"


def publish(
    session: Session,
    trained: TrainedModel,
    *,
    version_id: str,
    model_name: str,
    training_job_id: str,
    dataset_version_id: str,
) -> ModelVersion:
    """Store ``trained`` as the next version of ``model_name``; it exists once the caller commits."""
    model = _locked_model(session, model_name)
    if repository.newest_number(session, model_name) is None:
        model.created_at = utc_now()
    model.last_number += 1
    published = ModelVersion(
        id=version_id,
        model_id=model.id,
        number=model.last_number,
        training_job_id=training_job_id,
        dataset_version_id=dataset_version_id,
        feature_names=list(trained.feature_names),
        n_tasks=len(trained.task_ids),
        configuration=trained.configuration,
        metrics=trained.metrics,
        report=trained.report,
        code_version=code_version(),
    )
    session.add(published)
    session.flush()
    save_task_ids(session, version_id, trained.task_ids)
    save_matrix(session, version_id, MatrixName.WEIGHTS, trained.weights)
    if has_intercept(trained.configuration):
        save_matrix(session, version_id, MatrixName.INTERCEPT, trained.intercept[:, None])
    if trained.history is not None:
        save_matrix(session, version_id, MatrixName.HISTORY, trained.history.as_matrix())
    if trained.forecaster is not None:
        save_matrix(session, version_id, MatrixName.SERIES, series_matrix(trained.forecaster))
        save_matrix(session, version_id, MatrixName.RANGES, ranges_matrix(trained.forecaster))
        if trained.newest_past is not None:
            save_matrix(session, version_id, MatrixName.PAST, trained.newest_past)
        if (attributes := attribute_matrix(trained.forecaster)) is not None:
            save_matrix(session, version_id, MatrixName.ATTRIBUTES, attributes)
    if trained.n_samples is not None:
        save_matrix(session, version_id, MatrixName.SAMPLES, trained.n_samples[:, None].astype(np.float64))
    if trained.graph is not None:
        save_matrix(session, version_id, MatrixName.GRAPH, graph_matrix(trained.graph))
    data = {"model": model_name, "version": published.number, "id": version_id, "job": training_job_id}
    announce(session, model.workspace, Event.VERSION_PUBLISHED, data)
    return published


def _locked_model(session: Session, name: str) -> Model:
    model = repository.lock_model(session, name)
    if model is not None:
        return model
    try:
        with session.begin_nested():
            model = Model(name=name)
            session.add(model)
        return model
    except IntegrityError:  # another job published the first version of this name meanwhile
        model = repository.lock_model(session, name)
        if model is None:
            raise
        return model
