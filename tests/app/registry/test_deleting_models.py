"""A deleted model answers nowhere any more, its numbers are not given again, and its dataset can go."""

from __future__ import annotations

import signal
import threading
import time

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import func, select, update

from app.main import create_app
from app.persistence.database import Database
from app.persistence.models import JobState, MatrixChunk, ModelVersion, TaskRow, TrainingJob
from app.predictions.cache import REFRESH_SECONDS
from app.registry import service
from app.settings import Settings
from app.training.schemas import TrainingJobRequest
from tests.support.forked import forked
from tests.support.models import add_dataset_version, add_version, trained
from tests.support.processes import PATIENCE
from tests.support.remove_model import remove_and_die

UNFINISHED = (JobState.QUEUED, JobState.RUNNING)


def publish(database: Database, weight: float, name: str = "sales") -> int:
    return add_version(database, trained([[weight]], ["a"]), name)


def predict(client: TestClient, version: int | None = None, name: str = "sales") -> float | str:
    """The answer for a row of one, or the code of the refusal."""
    path = f"/v1/models/{name}" + ("" if version is None else f"/versions/{version}")
    rows = [{"unique_id": "a", "features": {"lag_1": 1.0}}]
    body = client.post(f"{path}/predict", json={"rows": rows}).json()
    return str(body["code"]) if "code" in body else float(body["predictions"][0]["yhat"])


def n_stored(database: Database) -> dict[str, int]:
    with database.read() as session:
        return {
            table.__tablename__: session.scalar(select(func.count()).select_from(table)) or 0
            for table in (ModelVersion, MatrixChunk, TaskRow)
        }


def add_job(database: Database, state: JobState, name: str = "sales") -> str:
    job = TrainingJob(
        dataset_version_id=add_dataset_version(database), model_name=name, request={}, state=state
    )
    with database.write() as session:
        session.add(job)
        session.flush()
        return job.id


def test_a_deleted_model_is_gone_with_its_versions_and_matrices(
    client: TestClient, database: Database
) -> None:
    for weight in (1.0, 2.0):
        publish(database, weight)
    publish(database, 7.0, "other")
    before = n_stored(database)
    assert client.delete("/v1/models/sales").status_code == 204
    assert [m["name"] for m in client.get("/v1/models").json()["items"]] == ["other"]
    for path in ("", "/versions", "/versions/1", "/versions/2"):
        answer = client.get(f"/v1/models/sales{path}")
        assert (answer.status_code, answer.json()["code"]) == (404, "model_not_found")
    assert {name: 3 * n for name, n in n_stored(database).items()} == before
    assert predict(client, name="other") == 7.0


def test_a_name_without_versions_is_no_near_match(client: TestClient, database: Database) -> None:
    publish(database, 1.0)
    client.delete("/v1/models/sales")
    assert client.get("/v1/models/sale").json()["suggestions"] == []


@pytest.mark.parametrize("path", ["salse", "salse/versions/1"])
def test_an_unknown_model_is_not_deleted(client: TestClient, database: Database, path: str) -> None:
    publish(database, 1.0)
    answer = client.delete(f"/v1/models/{path}")
    assert (answer.status_code, answer.json()["code"]) == (404, "model_not_found")
    assert answer.json()["suggestions"] == ["sales"]


def test_what_was_deleted_is_unknown_when_it_is_deleted_again(client: TestClient, database: Database) -> None:
    publish(database, 1.0)
    publish(database, 2.0)
    assert client.delete("/v1/models/sales/versions/2").status_code == 204
    again = client.delete("/v1/models/sales/versions/2")
    assert (again.status_code, again.json()["code"]) == (404, "model_version_not_found")
    assert again.json()["suggestions"] == ["1"]
    assert client.delete("/v1/models/sales").status_code == 204
    assert client.delete("/v1/models/sales").json()["code"] == "model_not_found"
    assert client.delete("/v1/models/sales/versions/1").json()["code"] == "model_not_found"


@pytest.mark.parametrize("state", list(JobState))
def test_a_model_is_kept_while_a_job_will_publish_under_its_name(
    client: TestClient, database: Database, state: JobState
) -> None:
    publish(database, 1.0)
    publish(database, 2.0)
    job_id = add_job(database, state)
    answer = client.delete("/v1/models/sales")
    if state in UNFINISHED:
        assert (answer.status_code, answer.json()["code"]) == (409, "model_in_use")
        assert job_id in answer.json()["detail"]
        assert predict(client) == 2.0
        assert client.delete("/v1/models/sales/versions/1").status_code == 204
    else:
        assert answer.status_code == 204


def test_the_version_before_answers_when_the_newest_is_deleted(
    client: TestClient, database: Database
) -> None:
    for weight in (1.0, 2.0, 3.0):
        publish(database, weight)
    assert (predict(client), predict(client, 3)) == (3.0, 3.0)
    assert client.delete("/v1/models/sales/versions/3").status_code == 204
    assert (predict(client), predict(client, 3)) == (2.0, "model_version_not_found")
    assert client.get("/v1/models/sales").json()["newest_version"] == 2
    assert publish(database, 4.0) == 4


def test_the_last_version_takes_the_model_with_it(client: TestClient, database: Database) -> None:
    publish(database, 1.0)
    assert client.delete("/v1/models/sales/versions/1").status_code == 204
    assert client.get("/v1/models").json()["items"] == []
    assert predict(client) == "model_not_found"


def test_numbers_go_on_after_a_model_was_deleted(client: TestClient, database: Database) -> None:
    publish(database, 1.0)
    publish(database, 2.0)
    first = client.get("/v1/models/sales").json()
    client.delete("/v1/models/sales")
    assert publish(database, 3.0) == 3
    again = client.get("/v1/models/sales").json()
    assert (again["n_versions"], again["newest_version"]) == (1, 3)
    assert again["created_at"] > first["newest"]["created_at"]


def test_the_dataset_and_its_jobs_can_go_after_the_model(client: TestClient, database: Database) -> None:
    publish(database, 1.0)
    request = TrainingJobRequest(dataset="sales", model="sales", fusion_strength=1.0)
    with database.write() as session:
        session.execute(update(TrainingJob).values(request=request.model_dump(mode="json")))
    (job,) = client.get("/v1/training-jobs").json()["items"]
    assert job["model"] == {"name": "sales", "version": 1}
    assert client.delete("/v1/datasets/sales").json()["code"] == "dataset_in_use"
    assert client.delete("/v1/models/sales").status_code == 204
    assert client.get(f"/v1/training-jobs/{job['id']}").json() == {**job, "model": None}
    assert client.delete("/v1/datasets/sales").status_code == 204
    with database.read() as session:
        assert session.scalars(select(TrainingJob)).all() == []


def test_another_process_stops_answering_soon_and_never_answers_with_old_weights(
    client: TestClient, database: Database, settings: Settings
) -> None:
    """Two applications on one database stand for two API processes: they share nothing else."""
    publish(database, 1.0)
    publish(database, 2.0)
    with TestClient(create_app(settings), "http://localhost", raise_server_exceptions=False) as second:
        for api in (client, second):
            assert (predict(api), predict(api, 1)) == (2.0, 1.0)
        assert client.delete("/v1/models/sales").status_code == 204
        assert predict(client) == predict(client, 1) == "model_not_found"
        time.sleep(REFRESH_SECONDS)
        assert predict(second) == predict(second, 1) == "model_not_found"
        assert publish(database, 3.0) == 3
        for api in (client, second):
            assert predict(api) == predict(api, 3) == 3.0
            assert predict(api, 1) == predict(api, 2) == "model_version_not_found"


def test_a_version_deleted_while_it_is_loaded_is_not_found_rather_than_corrupt(
    database: Database, client: TestClient, monkeypatch: pytest.MonkeyPatch, database_kind: str
) -> None:
    publish(database, 1.0)
    load_matrix = service.load_matrix

    def delete_then_load(*arguments: object) -> object:
        assert client.delete("/v1/models/sales").status_code == 204
        return load_matrix(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(service, "load_matrix", delete_then_load)
    # SQLite shows a transaction what was there when it began.
    expected = 1.0 if database_kind == "sqlite" else "model_not_found"
    assert predict(client) == expected
    monkeypatch.setattr(service, "load_matrix", load_matrix)
    time.sleep(REFRESH_SECONDS)
    assert predict(client) == "model_not_found"


def test_a_model_deleted_while_a_job_publishes_is_gone_or_kept_as_a_whole(
    client: TestClient, database: Database
) -> None:
    """The job's success and its version stand in one transaction, which the deletion waits for or refuses."""
    publish(database, 1.0)
    for round_ in range(5):
        together = threading.Barrier(2)
        answers: list[int] = []

        def delete(together: threading.Barrier = together, answers: list[int] = answers) -> None:
            together.wait()
            answers.append(client.delete("/v1/models/sales").status_code)

        thread = threading.Thread(target=delete)
        thread.start()
        together.wait()
        number = publish(database, 2.0)
        thread.join()
        assert number == round_ + 2
        with database.read() as session:
            left = session.scalars(select(ModelVersion.number)).all()
        assert answers in ([204], [404])
        assert set(left) <= {number}
        assert n_stored(database) == {
            "model_version": len(left),
            "matrix_chunk": len(left),
            "task_row": len(left),
        }


def test_a_process_killed_before_its_commit_has_deleted_nothing(
    database: Database, settings: Settings
) -> None:
    for _ in range(3):
        publish(database, 1.0)
    before = n_stored(database)
    process = forked(remove_and_die, "sales", environment=settings.environment())
    process.join(PATIENCE)
    assert process.exitcode == -signal.SIGKILL
    assert n_stored(database) == before
    with database.read() as session:
        assert service.load(session, "sales", 3).weights.tolist() == [[1.0]]
    with database.write() as session:
        service.remove(session, "sales")
    assert set(n_stored(database).values()) == {0}
