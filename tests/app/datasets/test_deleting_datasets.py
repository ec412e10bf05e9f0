"""A dataset is deleted with its files, unless something needs it; on both databases."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select, update

from app.persistence.database import Database
from app.persistence.models import Dataset, DatasetVersion, JobState, ModelVersion, TrainingJob
from app.settings import Settings
from tests.app.datasets.test_dataset_endpoints import FIRST, SECOND, create, segments, send
from tests.support.models import add_version, trained


def test_deleting_removes_files_that_only_this_dataset_used(client: TestClient, settings: Settings) -> None:
    create(client)
    create(client, name="twin")
    send(client, FIRST)
    send(client, SECOND)
    shared = client.post("/v1/datasets/twin/versions", content=FIRST, headers={"content-type": "text/csv"})
    assert shared.status_code == 201
    assert len(segments(settings)) == 2
    assert client.delete("/v1/datasets/sales").status_code == 204
    assert client.get("/v1/datasets/sales").status_code == 404
    assert len(segments(settings)) == 1
    assert client.delete("/v1/datasets/twin").status_code == 204
    assert segments(settings) == []


@pytest.mark.parametrize("state", list(JobState))
def test_a_dataset_is_kept_while_a_job_needs_it(
    client: TestClient, database: Database, state: JobState
) -> None:
    create(client)
    version_id = send(client, FIRST).json()["id"]
    with database.write() as session:
        session.add(TrainingJob(dataset_version_id=version_id, model_name="m", request={}, state=state))
    answer = client.delete("/v1/datasets/sales")
    if state in (JobState.QUEUED, JobState.RUNNING):
        assert (answer.status_code, answer.json()["code"]) == (409, "dataset_in_use")
        assert client.get("/v1/datasets/sales").status_code == 200
    else:
        assert answer.status_code == 204
        with database.read() as session:
            assert session.scalars(select(TrainingJob)).all() == []


def test_a_dataset_is_kept_while_a_model_version_needs_it(client: TestClient, database: Database) -> None:
    add_version(database, trained([[1.0]], ["a"]), "forecaster")
    with database.read() as session:
        name = session.scalars(select(Dataset.name)).one()
    answer = client.delete(f"/v1/datasets/{name}")
    assert (answer.status_code, answer.json()["code"]) == (409, "dataset_in_use")
    assert "1 model ('forecaster')" in answer.json()["detail"]
    assert "DELETE /v1/models/{name}" in answer.json()["detail"]


def test_the_first_of_many_models_that_need_a_dataset_are_named(
    client: TestClient, database: Database
) -> None:
    for number in range(7):
        add_version(database, trained([[1.0]], ["a"]), f"m{number}")
    with database.write() as session:
        version = session.scalars(select(DatasetVersion)).all()[0]
        name = version.dataset.name
        session.execute(update(ModelVersion).values(dataset_version_id=version.id))
        session.execute(update(TrainingJob).values(state=JobState.SUCCEEDED))
    detail = client.delete(f"/v1/datasets/{name}").json()["detail"]
    assert "7 models ('m0', 'm1', 'm2', 'm3', 'm4' and 2 more)" in detail
