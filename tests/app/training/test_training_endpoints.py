"""Jobs over HTTP: they are made, listed, followed to their end and cancelled."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import update

from app.http.request_body import MAX_FORM_BYTES
from app.jobs import queue
from app.persistence.database import Database
from app.persistence.models import JobState, TrainingJob
from app.training.endpoints import news
from app.training.schemas import JobProgress, TrainingJobStatus
from tests.support.training import (
    add_series,
    job,
    post,
)


def test_a_request_that_is_too_long_is_refused(client: TestClient) -> None:
    answer = post(client, {"k" * MAX_FORM_BYTES: 1})
    assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")


def test_a_job_is_queued_with_all_defaults_filled_in(client: TestClient) -> None:
    add_series(client)
    answer = post(client, job())
    assert answer.status_code == 202
    created = answer.json()
    assert answer.headers["location"] == f"/v1/training-jobs/{created['id']}"
    assert client.get(answer.headers["location"]).json() == created
    assert created["state"] == "queued"
    assert created["attempt"] == 0
    assert created["data"]["dataset"] == "sales"
    assert created["data"]["version"] == 1
    assert created["request"] == {
        "dataset": "sales",
        "version": None,
        "model": "m",
        "horizon": None,
        "fusion_strength": 1.0,
        "folds": None,
        "n_folds": 5,
        "rule": "best",
        "n_neighbors": 10,
        "fit_intercept": False,
        "loss_scaling": "none",
        "metric": "euclidean",
        "lags": None,
        "accept_gaps": False,
        "holdout": 0.5,
        "aim": "products",
        "tolerance": 1e-4,
        "refit": True,
        "priority": "normal",
        "parallel": False,
    }
    for empty in ("progress", "error", "model", "started_at", "finished_at"):
        assert created[empty] is None


@pytest.mark.parametrize(
    ("content", "media_type", "status"),
    [(b"{", "application/json", 400), (b"[]", "application/json", 400), (b"{}", "text/plain", 415)],
)
def test_a_body_that_is_no_json_object_is_refused(
    client: TestClient, content: bytes, media_type: str, status: int
) -> None:
    answer = client.post("/v1/training-jobs", content=content, headers={"Content-Type": media_type})
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"


def test_jobs_come_in_pages_newest_first(client: TestClient) -> None:
    add_series(client)
    ids = [post(client, job(model=name)).json()["id"] for name in ("a", "b", "a", "c", "a")][::-1]
    seen, cursor = [], None
    for size in (2, 2, 1):
        query = {"limit": 2} | ({} if cursor is None else {"cursor": cursor})
        page = client.get("/v1/training-jobs", params=query).json()
        assert len(page["items"]) == size
        seen += [item["id"] for item in page["items"]]
        cursor = page["next_cursor"]
    assert seen == ids
    assert cursor is None
    by_model = client.get("/v1/training-jobs", params={"model": "a"}).json()["items"]
    assert [item["id"] for item in by_model] == [ids[0], ids[2], ids[4]]
    assert client.get("/v1/training-jobs", params={"state": "running"}).json()["items"] == []
    assert client.get("/v1/training-jobs", params={"state": "lost"}).status_code == 422


def test_an_unknown_job_is_404(client: TestClient) -> None:
    for method, path in [("GET", ""), ("GET", "/events"), ("POST", "/cancel")]:
        answer = client.request(method, f"/v1/training-jobs/job_x{path}")
        assert (answer.status_code, answer.json()["code"]) == (404, "training_job_not_found")


def test_a_waiting_job_is_cancelled_at_once_and_only_once(client: TestClient) -> None:
    add_series(client)
    url = f"/v1/training-jobs/{post(client, job()).json()['id']}"
    answer = client.post(f"{url}/cancel")
    assert (answer.status_code, answer.json()["state"]) == (200, "cancelled")
    assert answer.json()["finished_at"] is not None
    again = client.post(f"{url}/cancel")
    assert (again.status_code, again.json()["code"]) == (409, "training_job_ended")
    assert again.json()["detail"] == "The training job has ended (cancelled); there is nothing to cancel."


def claim(database: Database) -> queue.ClaimedJob:
    with database.write() as session:
        claimed = queue.claim(session, "worker", 60.0, 3)
    assert claimed is not None
    return claimed


def test_a_running_job_is_asked_to_stop(client: TestClient, database: Database) -> None:
    add_series(client)
    url = f"/v1/training-jobs/{post(client, job()).json()['id']}"
    claim(database)
    for _ in range(2):
        answer = client.post(f"{url}/cancel")
        assert answer.status_code == 202
        assert (answer.json()["state"], answer.json()["cancel_requested"]) == ("running", True)


def test_a_job_whose_worker_fell_silent_waits_again_and_is_cancelled_at_once(
    client: TestClient, database: Database
) -> None:
    add_series(client)
    first, second = (post(client, job()).json()["id"] for _ in range(2))
    url = f"/v1/training-jobs/{first}"
    claim(database)
    with database.write() as session:
        session.execute(update(TrainingJob).where(TrainingJob.id == first).values(lease_expires_at=1.0))
    told = client.get(url).json()
    assert (told["state"], told["attempt"], told["progress"], told["jobs_ahead"]) == ("queued", 1, None, 0)
    assert client.get(f"/v1/training-jobs/{second}").json()["jobs_ahead"] == 1
    listed = {state: client.get(f"/v1/training-jobs?state={state}").json()["items"] for state in JobState}
    assert [len(listed[state]) for state in (JobState.QUEUED, JobState.RUNNING)] == [2, 0]
    answer = client.post(f"{url}/cancel")
    assert (answer.status_code, answer.json()["state"]) == (200, "cancelled")
    client.post(f"/v1/training-jobs/{second}/cancel")
    assert client.delete("/v1/datasets/sales").status_code == 204


PROGRESS = {
    "phase": "solve",
    "round": 3,
    "objective": 2.5,
    "gap": None,
    "selection": {"fits_done": 5, "fits": 106, "fusion_strengths": [0.0], "errors": [0.75]},
    "elapsed_seconds": 1.5,
    "phases": {"read": 0.5, "solve": 1.0},
}


def test_a_job_tells_how_far_it_has_come_and_why_it_failed(client: TestClient, database: Database) -> None:
    add_series(client)
    url = f"/v1/training-jobs/{post(client, job()).json()['id']}"
    claimed = claim(database)
    with database.write() as session:
        queue.report_progress(session, claimed.id, claimed.attempt, PROGRESS)
    running = client.get(url).json()
    assert (running["state"], running["attempt"], running["progress"]) == ("running", 1, PROGRESS)
    assert running["started_at"] is not None
    with database.write() as session:
        queue.fail(session, claimed.id, claimed.attempt, "training_failed", "task 'a': its values overflow")
    failed = client.get(url).json()
    assert failed["state"] == "failed"
    assert failed["error"] == {"code": "training_failed", "detail": "task 'a': its values overflow"}


def test_a_queued_job_tells_how_many_are_ahead(client: TestClient, database: Database) -> None:
    add_series(client)
    ids = [client.post("/v1/training-jobs", json=job()).json()["id"] for _ in range(3)]

    def ahead() -> list[int | None]:
        return [client.get(f"/v1/training-jobs/{i}").json()["jobs_ahead"] for i in ids]

    assert ahead() == [0, 1, 2]
    with database.write() as session:
        queue.claim(session, "worker", 60.0, 3)
    assert ahead() == [None, 1, 2]
    assert client.post(f"/v1/training-jobs/{ids[1]}/cancel").json()["jobs_ahead"] is None
    assert ahead() == [None, None, 1]
    listed = client.get("/v1/training-jobs").json()["items"]
    assert [item["jobs_ahead"] for item in listed] == [1, None, None]


def test_events_follow_a_job_to_its_end(client: TestClient, database: Database) -> None:
    add_series(client)
    job_id = post(client, job()).json()["id"]
    seen: list[dict[str, Any]] = []
    with client.stream("GET", f"/v1/training-jobs/{job_id}/events") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        claimed = claim(database)
        with database.write() as session:
            queue.report_progress(session, claimed.id, claimed.attempt, PROGRESS)
            session.execute(update(TrainingJob).values(state=JobState.SUCCEEDED))
        seen.extend(json.loads(line[6:]) for line in stream.iter_lines() if line.startswith("data: "))
    assert seen[-1]["state"] == "succeeded"
    assert seen[-1]["progress"] == PROGRESS
    whole = client.get(f"/v1/training-jobs/{job_id}").json()
    assert whole == {**seen[-1], "request": whole["request"], "data": whole["data"]}
    assert all(event.keys() == whole.keys() - {"request", "data"} for event in seen)
    states = [event["state"] for event in seen]  # as many as the stream was quick enough to see
    assert states == [state for state in ("queued", "running", "succeeded") if state in states]


def test_events_of_a_job_that_has_ended_are_one(client: TestClient) -> None:
    add_series(client)
    job_id = post(client, job()).json()["id"]
    client.post(f"/v1/training-jobs/{job_id}/cancel")
    lines = client.get(f"/v1/training-jobs/{job_id}/events").text.splitlines()
    assert len([line for line in lines if line.startswith("data: ")]) == 1


def test_an_event_holds_the_errors_of_strengths_that_are_new(client: TestClient) -> None:
    add_series(client)
    status = TrainingJobStatus.model_validate(
        post(client, job()).json() | {"progress": progress([1.0], [0.5])}
    )
    later = status.model_copy(
        update={"progress": JobProgress.model_validate(progress([0.0, 1.0], [0.25, 0.5]))}
    )
    assert news(status, None) is status
    told = news(later, status).progress
    assert told is not None
    assert told.selection is not None
    assert (told.selection.fusion_strengths, told.selection.errors) == ([0.0], [0.25])


def progress(strengths: list[float], errors: list[float]) -> dict[str, Any]:
    selection = {"fits_done": 1, "fits": 9, "fusion_strengths": strengths, "errors": errors}
    numbers = {"round": 0, "objective": None, "gap": None, "elapsed_seconds": 0.0, "phases": {}}
    return {"phase": "selection", "selection": selection, **numbers}
