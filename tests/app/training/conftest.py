"""A shop of products, training jobs on it that run here, and the weights that are served then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import numpy as np
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from app.jobs import queue
from app.jobs.queue import ClaimedJob
from app.persistence.database import Database
from app.persistence.storage import Storage
from app.training import pipeline
from ccmtl_core import TaskDataset
from tests.support.training import job

RNG = np.random.default_rng(3)
N_DAYS, N_PRODUCTS = 30, 12
SALES = RNG.poisson(3.0, (N_PRODUCTS, N_DAYS)).astype(float)
IDS = [f"{t:04d}" for t in range(N_PRODUCTS)]


def sales_csv() -> str:
    rows = [
        f"{IDS[t]},{date(2025, 1, 1) + timedelta(d)},{SALES[t, d]}"
        for t in range(N_PRODUCTS)
        for d in range(N_DAYS)
    ]
    return "\n".join(["unique_id,ds,y", *rows]) + "\n"


def lagged(first: int, last: int, lags: int = 3) -> TaskDataset:
    """Rows whose targets are the days ``first`` to ``last`` - 1."""
    X = [np.stack([SALES[t, d - lags : d][::-1] for d in range(first, last)]) for t in range(N_PRODUCTS)]
    names = [f"lag_{p + 1}" for p in range(lags)]
    return TaskDataset.from_arrays(X, [SALES[t, first:last] for t in range(N_PRODUCTS)], IDS, names)


@dataclass
class Run:
    """Claims the oldest job and runs it here."""

    client: TestClient
    database: Database
    storage: Storage
    records: list[dict[str, Any]]
    dask_scheduler: str | None = None

    def __call__(self, on_progress: Callable[[dict[str, Any]], None] | None = None) -> ClaimedJob:
        with self.database.write() as session:
            claimed = queue.claim(session, "worker", 60.0, 3)
        assert claimed is not None
        told = on_progress or self.records.append
        pipeline.run(self.database, self.storage, claimed, told, self.dask_scheduler)
        return claimed

    def trained(self, **fields: Any) -> dict[str, Any]:
        """Queue, run, and return the newest version."""
        answer = self.client.post("/v1/training-jobs", json=job(**fields))
        assert answer.status_code == 202, answer.text
        self()
        version: dict[str, Any] = self.client.get(f"/v1/models/{fields.get('model', 'm')}").json()["newest"]
        return version


@pytest.fixture
def run(client: TestClient, api: FastAPI, database: Database) -> Run:
    return Run(client, database, api.state.storage, [])


def weights(client: TestClient, features: int = 3, model: str = "m", ids: list[str] = IDS) -> np.ndarray:
    """Read the served weights back by predicting unit vectors."""
    columns = []
    for p in range(features):
        names = client.get(f"/v1/models/{model}").json()["newest"]["feature_names"]
        values = {name: [float(i == p)] * len(ids) for i, name in enumerate(names)}
        body = {"unique_id": ids, "features": values}
        columns.append(client.post(f"/v1/models/{model}/predict", json=body).json()["yhat"])
    return np.array(columns).T
