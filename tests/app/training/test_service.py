"""What is queued: a request that can work on its data, once for each idempotency key."""

from __future__ import annotations

import threading
from datetime import date, timedelta
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import update

from app.http.errors import Fault
from app.persistence.database import Database
from app.persistence.models import JobState, TrainingJob
from app.persistence.storage import Storage
from app.training import service
from tests.support.training import (
    add_regression,
    add_series,
    job,
    locations,
    n_jobs,
    post,
    series_csv,
    upload,
)


def test_the_newest_version_is_meant_unless_one_is_named(client: TestClient) -> None:
    add_series(client)
    upload(client, "sales", series_csv("a", "b", "c"))
    versions = [post(client, job(version=v)).json()["data"]["version"] for v in (None, 1, 2)]
    assert versions == [2, 1, 2]


def test_an_unknown_dataset_gets_near_matches_and_the_other_faults(client: TestClient) -> None:
    add_series(client, "ta-feng")
    answer = post(client, job(dataset="tafeng", tolerance=5))
    assert answer.status_code == 404
    assert answer.json()["code"] == "dataset_not_found"
    assert answer.json()["suggestions"] == ["ta-feng"]
    assert locations(answer) == ["body.tolerance"]


def test_a_full_queue_of_the_workspace_refuses_all_but_repeated_requests(
    client: TestClient, api: FastAPI, database: Database
) -> None:
    api.state.settings = api.state.settings.model_copy(update={"max_queued_jobs": 2})
    add_series(client)
    first, _ = (post(client, job(), **{"Idempotency-Key": key}) for key in "ab")
    refused = post(client, job())
    assert (refused.status_code, refused.json()["code"]) == (429, "queue_full")
    assert int(refused.headers["retry-after"]) > 0
    assert post(client, job(), **{"Idempotency-Key": "a"}).json() == first.json()
    client.post(f"/v1/training-jobs/{first.json()['id']}/cancel")
    with database.write() as session:
        session.execute(update(TrainingJob).values(workspace="another"))
    assert [post(client, job()).status_code for _ in range(3)] == [202, 202, 429]


def test_a_job_of_higher_priority_has_fewer_ahead(client: TestClient) -> None:
    add_series(client)
    ids = [post(client, job(priority=priority)).json()["id"] for priority in ("low", "normal", "high")]
    ahead = [client.get(f"/v1/training-jobs/{each}").json()["jobs_ahead"] for each in ids]
    assert ahead == [2, 1, 0]


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
    days = [date(2025, 1, 6) + timedelta(7 * week + day) for week in range(n_weeks) for day in range(5)]
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


def test_the_same_key_and_request_is_the_same_job(client: TestClient, database: Database) -> None:
    add_series(client)
    first = post(client, job(), **{"Idempotency-Key": "k"})
    upload(client, "sales", series_csv("a"))
    again = post(client, job(n_neighbors=10), **{"Idempotency-Key": "k "})  # no space belongs to a header
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
