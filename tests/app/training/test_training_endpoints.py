"""Jobs over HTTP: what cannot work is refused before it is queued, with every reason."""

from __future__ import annotations

import json
import threading
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import func, select, update

from app.http.errors import Fault
from app.http.request_body import MAX_FORM_BYTES
from app.jobs import queue
from app.persistence.database import Database
from app.persistence.models import JobState, TrainingJob
from app.persistence.storage import Storage
from app.training import service
from app.training.schemas import TrainingJobRequest
from ccmtl_core import ModelChoices
from ccmtl_core.choices.model_choices import choice_texts
from tests.support.training import add_regression, add_series, job, series_csv, upload

JSON = "application/json"


def post(client: TestClient, body: Any, **headers: str) -> Any:
    # The client's own encoder cannot write half a surrogate pair.
    content = json.dumps(body)
    return client.post("/v1/training-jobs", content=content, headers={"Content-Type": JSON, **headers})


def n_jobs(database: Database) -> int:
    with database.read() as session:
        return session.scalar(select(func.count()).select_from(TrainingJob)) or 0


def locations(answer: Any) -> list[str]:
    return [fault["location"] for fault in answer.json()["errors"]]


def test_a_request_that_is_too_long_is_refused(client: TestClient) -> None:
    answer = post(client, {"k" * MAX_FORM_BYTES: 1})
    assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")


def test_of_many_faults_the_first_are_listed_and_all_are_counted(client: TestClient) -> None:
    add_series(client)
    document = {**job(lags=100), **{f"k{i}": 1 for i in range(5000)}}
    n_faults = 5000 + 1
    for body, status in ((document, 422), ({**document, "dataset": "other"}, 404)):
        answer = post(client, body)
        assert answer.status_code == status
        listed = answer.json()
        assert (len(listed["errors"]), listed["error_count"]) == (100, n_faults if status == 422 else 5000)


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
        "tolerance": 1e-4,
        "refit": True,
    }
    for empty in ("progress", "error", "model", "started_at", "finished_at"):
        assert created[empty] is None


def test_the_newest_version_is_meant_unless_one_is_named(client: TestClient) -> None:
    add_series(client)
    upload(client, "sales", series_csv("a", "b", "c"))
    versions = [post(client, job(version=v)).json()["data"]["version"] for v in (None, 1, 2)]
    assert versions == [2, 1, 2]


FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"fusion_strength": -1}, "body.fusion_strength"),
    ({"fusion_strength": 1e-101}, "body.fusion_strength"),
    ({"fusion_strength": [0, 1e-101]}, "body.fusion_strength"),
    ({"fusion_strength": "1"}, "body.fusion_strength"),
    ({"fusion_strength": True}, "body.fusion_strength"),
    ({"fusion_strength": None}, "body.fusion_strength"),
    ({"fusion_strength": "Auto"}, "body.fusion_strength"),
    ({"fusion_strength": []}, "body.fusion_strength"),
    ({"fusion_strength": [1]}, "body.fusion_strength"),
    ({"fusion_strength": [1, 1.0]}, "body.fusion_strength"),
    ({"fusion_strength": [1, -1]}, "body.fusion_strength"),
    ({"fusion_strength": [1, "2"]}, "body.fusion_strength"),
    ({"fusion_strength": [1, True]}, "body.fusion_strength"),
    ({"fusion_strength": list(range(101))}, "body.fusion_strength"),
    ({"fusion_strength": "auto", "folds": "random"}, "body.folds"),
    ({"fusion_strength": "auto", "folds": "weekly"}, "body.folds"),
    ({"fusion_strength": "auto", "n_folds": 1}, "body.n_folds"),
    ({"fusion_strength": "auto", "n_folds": 21}, "body.n_folds"),
    ({"rule": "worst"}, "body.rule"),
    ({"fusion_strength": "auto", "n_folds": 4}, "body.n_folds"),
    ({"fit_intercept": 1}, "body.fit_intercept"),
    ({"loss_scaling": "variance"}, "body.loss_scaling"),
    ({"loss_scaling": "residual"}, "body.loss_scaling"),
    ({"start": "shrunk"}, "body.start"),
    ({"metric": "cosine"}, "body.metric"),
    ({"n_neighbors": 0}, "body.n_neighbors"),
    ({"n_neighbors": 2.5}, "body.n_neighbors"),
    ({"lags": 0}, "body.lags"),
    ({"lags": 367}, "body.lags"),
    ({"lags": 12}, "body.lags"),
    ({"accept_gaps": 1}, "body.accept_gaps"),
    ({"holdout": 0}, "body.holdout"),
    ({"holdout": 1}, "body.holdout"),
    ({"lags": 11}, "body.holdout"),
    ({"tolerance": 0}, "body.tolerance"),
    ({"tolerance": 1}, "body.tolerance"),
    ({"refit": "yes"}, "body.refit"),
    ({"model": "a/b"}, "body.model"),
    ({"model": ""}, "body.model"),
    ({"version": 0}, "body.version"),
    ({"version": 2**40}, "body.version"),
    ({"dataset": "a\0b"}, "body.dataset"),
    ({"dataset": 3}, "body.dataset"),
    ({"strength": 1}, "body.strength"),
    ({"\ud800": 1}, "body"),
    ({"dataset": "\ud800"}, "body.dataset"),
    ({"model": "\ud800"}, "body.model"),
]


def test_each_fault_is_located(client: TestClient, database: Database) -> None:
    add_series(client)
    for fields, location in FAULTS:
        answer = post(client, job(**fields))
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_training_request")
        assert locations(answer) == [location]
    assert n_jobs(database) == 0


def test_an_unknown_field_comes_with_its_near_match(client: TestClient) -> None:
    add_series(client)
    (fault,) = post(client, job(n_neighbours=3)).json()["errors"]
    assert fault["location"] == "body.n_neighbours"
    assert fault["message"] == "there is no such field; did you mean 'n_neighbors'?"


@pytest.mark.parametrize("token", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_are_none_are_refused_and_not_echoed(client: TestClient, token: str) -> None:
    add_series(client)
    body = json.dumps(job(fusion_strength=12345)).replace("12345", token)
    answer = client.post("/v1/training-jobs", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert locations(answer) == ["body.fusion_strength"]
    assert answer.json()["errors"][0]["value"] is None


def test_all_faults_come_at_once(client: TestClient) -> None:
    add_regression(client)
    body = {"dataset": "rows", "fusion_strength": -1, "holdout": 0.1, "lags": 3, "tolerance": 5, "extra": 1}
    answer = post(client, body)
    assert answer.status_code == 422
    assert sorted(locations(answer)) == [
        "body.extra",
        "body.fusion_strength",
        "body.holdout",
        "body.lags",
        "body.model",
        "body.tolerance",
    ]
    assert answer.json()["error_count"] == 6


def test_an_unknown_dataset_gets_near_matches_and_the_other_faults(client: TestClient) -> None:
    add_series(client, "ta-feng")
    answer = post(client, job(dataset="tafeng", tolerance=5))
    assert answer.status_code == 404
    assert answer.json()["code"] == "dataset_not_found"
    assert answer.json()["suggestions"] == ["ta-feng"]
    assert locations(answer) == ["body.tolerance"]


def test_an_unknown_version_names_the_newest(client: TestClient) -> None:
    add_series(client)
    answer = post(client, job(version=4))
    assert (answer.status_code, answer.json()["code"]) == (404, "dataset_version_not_found")
    assert answer.json()["suggestions"] == ["1"]


def test_a_dataset_without_upload_is_nothing_to_train_on(client: TestClient) -> None:
    client.post("/v1/datasets", json={"name": "empty", "kind": "series", "frequency": "D"})
    answer = post(client, job(dataset="empty"))
    assert (answer.status_code, answer.json()["code"]) == (404, "dataset_version_not_found")
    assert "Nothing was uploaded yet" in answer.json()["detail"]


def test_gaps_count_unless_they_are_filled(client: TestClient) -> None:
    gaps = "unique_id,ds,y\n" + "".join(f"a,2025-01-{d:02d},1\n" for d in range(1, 20, 2))
    add_series(client, "gaps", gaps)
    add_series(client, "filled", gaps, fill={"method": "zero", "start": "series"})
    refused = post(client, job(dataset="gaps", lags=2))
    assert "the longest run of periods is 1" in refused.json()["errors"][0]["message"]
    assert post(client, job(dataset="filled", lags=2)).status_code == 202


def monday_to_friday(n_weeks: int = 26, n_series: int = 5) -> str:
    days = [np.datetime64("2025-01-06") + 7 * week + day for week in range(n_weeks) for day in range(5)]
    return "unique_id,ds,y\n" + "".join(f"{t},{day},{50 + t}\n" for t in range(n_series) for day in days)


def test_series_of_which_less_than_half_can_be_used_are_refused_unless_gaps_are_accepted(
    client: TestClient,
) -> None:
    add_series(client, content=monday_to_friday())
    answer = post(client, job(lags=4))
    (fault,) = answer.json()["errors"]
    assert (answer.status_code, fault["code"], fault["location"]) == (422, "too_many_gaps", "body.lags")
    assert f"only {5 * 26} of {5 * (130 - 4)} rows can be used" in fault["message"]
    for remedy in ("`fill`", "at most 2 lags", "`frequency`", "`accept_gaps`: true"):
        assert remedy in fault["message"]
    assert post(client, job(lags=4, accept_gaps=True)).status_code == 202
    assert post(client, job(lags=2)).status_code == 202


def test_series_that_are_short_but_whole_are_not_refused_for_gaps(client: TestClient) -> None:
    add_series(client)  # 12 days each
    assert post(client, job(lags=8, holdout=None)).status_code == 202
    short = "".join(f"s{t},2025-01-0{d},1\n" for t in range(20) for d in range(1, 4))
    add_series(client, "short", series_csv("a", "b") + short)
    (fault,) = post(client, job(dataset="short", lags=8, holdout=None)).json()["errors"]
    assert "only 8 of 68 rows" in fault["message"]


def test_regression_data_takes_no_lags(client: TestClient) -> None:
    add_regression(client)
    assert locations(post(client, job(dataset="rows", lags=5))) == ["body.lags"]
    assert post(client, job(dataset="rows")).status_code == 202


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


def test_the_same_key_and_request_is_the_same_job(client: TestClient, database: Database) -> None:
    add_series(client)
    first = post(client, job(), **{"Idempotency-Key": "k"})
    upload(client, "sales", series_csv("a"))
    again = post(client, job(n_neighbors=10), **{"Idempotency-Key": "k"})
    assert (again.status_code, again.json()) == (202, first.json())
    assert again.headers["location"] == first.headers["location"]
    other = post(client, job(), **{"Idempotency-Key": "k2"})
    assert other.json()["id"] != first.json()["id"]
    assert n_jobs(database) == 2


def test_the_same_key_with_another_request_is_a_conflict(client: TestClient, database: Database) -> None:
    add_series(client)
    first = post(client, job(), **{"Idempotency-Key": "k"}).json()
    answer = post(client, job(fusion_strength=2), **{"Idempotency-Key": "k"})
    assert (answer.status_code, answer.json()["code"]) == (409, "idempotency_key_reused")
    assert first["id"] in answer.json()["detail"]
    assert n_jobs(database) == 1


def test_the_key_of_a_job_whose_model_was_deleted_is_spent(client: TestClient, database: Database) -> None:
    add_series(client)
    first = post(client, job(), **{"Idempotency-Key": "k"}).json()
    with database.write() as session:  # as deleting the model leaves it
        session.execute(update(TrainingJob).values(state=JobState.SUCCEEDED, model_version_id=None))
    answer = post(client, job(), **{"Idempotency-Key": "k"})
    assert (answer.status_code, answer.json()["code"]) == (409, "idempotency_key_spent")
    assert first["id"] in answer.json()["detail"]
    assert post(client, job(), **{"Idempotency-Key": "k2"}).status_code == 202


def test_the_same_key_many_times_at_once_is_one_job(client: TestClient, database: Database) -> None:
    add_series(client)
    ids: list[str] = []
    threads = [
        threading.Thread(
            target=lambda: ids.append(post(client, job(), **{"Idempotency-Key": "k"}).json()["id"])
        )
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ids) == 6
    assert len(set(ids)) == n_jobs(database) == 1


def test_a_key_over_its_length_is_refused(client: TestClient) -> None:
    add_series(client)
    assert post(client, job(), **{"Idempotency-Key": "k" * 201}).status_code == 422


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


def test_a_dataset_deleted_while_its_request_is_checked_is_not_found(
    client: TestClient, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_series(client)

    def find_faults(*args: object) -> list[Fault]:
        assert client.delete("/v1/datasets/sales").status_code == 204
        return []

    monkeypatch.setattr(service, "find_faults", find_faults)
    answer = post(client, job(), **{"Idempotency-Key": "k"})
    assert (answer.status_code, answer.json()["code"]) == (404, "dataset_not_found")
    assert n_jobs(database) == 0


def test_a_request_reads_no_rows(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any) -> None:
        raise AssertionError("a segment was read")

    add_series(client)
    add_regression(client)
    monkeypatch.setattr(Storage, "verified_segment", fail)
    assert post(client, job()).status_code == 202
    assert post(client, job(dataset="rows")).status_code == 202
    assert locations(post(client, job(lags=12))) == ["body.lags"]
    assert locations(post(client, job(dataset="rows", holdout=0.1))) == ["body.holdout"]


def test_a_choice_that_was_taken_out_is_said_to_be(client: TestClient) -> None:
    add_series(client)
    (fault,) = post(client, job(start="shrunk")).json()["errors"]
    assert fault["message"] == "there is no such choice any more: it made no model better; leave it out"
    (fault,) = post(client, job(loss_scaling="residual")).json()["errors"]
    assert "'none' or 'spread'" in fault["message"]


@pytest.mark.parametrize("field", [{"folds": "rolling"}, {"n_folds": 5}, {"rule": "best"}])
def test_one_strength_leaves_nothing_to_choose(client: TestClient, field: dict[str, Any]) -> None:
    add_series(client)
    answer = post(client, job(fusion_strength=2.0, **field))
    assert answer.status_code == 422
    (fault,) = answer.json()["errors"]
    assert fault["location"] == f"body.{next(iter(field))}"
    assert fault["message"].startswith(
        "says how one of several strengths is chosen, and `fusion_strength` is one"
    )
    assert post(client, job(fusion_strength=2.0, folds=None)).status_code == 202


def test_the_reference_says_of_choices_what_the_library_says() -> None:
    properties = TrainingJobRequest.model_json_schema()["properties"]
    for name, text in choice_texts().items():
        assert properties[name]["description"] == text
        assert properties[name]["default"] == getattr(ModelChoices(), name)
