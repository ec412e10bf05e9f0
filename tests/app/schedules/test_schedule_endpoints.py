"""Schedules over HTTP: made, changed, listed and deleted; a training that cannot work is refused at once."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.schedules import service
from tests.support.database_kinds import quickly_on
from tests.support.training import add_series, job, locations

PATH = "/v1/schedules/nightly"


def nightly(**fields: Any) -> dict[str, Any]:
    return {"daily": "02:30", "time_zone": "Europe/Berlin", "training": job(), **fields}


def test_a_schedule_is_made_changed_and_deleted(client: TestClient) -> None:
    add_series(client)
    made = client.put(PATH, json=nightly())
    assert (made.status_code, made.headers.get("location")) == (201, PATH), made.text
    shown = made.json()
    assert (shown["cron"], shown["last_run"], shown["training"]["n_folds"]) == ("30 2 * * *", None, 5)
    following = datetime.fromisoformat(shown["next_run_at"])
    assert 0 < (following - datetime.now(UTC)).total_seconds() <= 25 * 3600
    assert client.get(PATH).json() == shown
    assert client.get("/v1/schedules").json()["items"] == [shown]
    assert client.put(PATH, json=nightly()).json() == shown
    off = client.put(PATH, json=nightly(enabled=False))
    assert (off.status_code, off.json()["next_run_at"]) == (200, None)
    assert client.patch(PATH, json={"enabled": False}).json() == off.json()
    assert client.patch(PATH, json={"enabled": True}).json() == shown
    refused = client.patch(PATH, json={"enabled": "no", "daily": "03:00"})
    assert (refused.status_code, locations(refused)) == (422, ["body.enabled", "body.daily"])
    moved = client.put(PATH, json={"cron": "0  4 * * mon", "training": job(model="other")}).json()
    assert (moved["cron"], moved["time_zone"], moved["training"]["model"]) == ("0 4 * * mon", "UTC", "other")
    assert datetime.fromisoformat(moved["next_run_at"]).weekday() == 0
    assert client.delete(PATH).status_code == 204
    missing = client.get(PATH)
    assert (missing.status_code, missing.json()["code"]) == (404, "schedule_not_found")


@pytest.mark.parametrize(
    ("body", "places"),
    [
        ({"training": job()}, ["body"]),
        (nightly(cron="* * * * *"), ["body"]),
        (nightly(daily="24:00"), ["body.daily"]),
        ({**nightly(), "daily": None, "cron": "* * * *"}, ["body.cron"]),
        ({**nightly(), "daily": None, "cron": "* * */20 * 1L"}, ["body.cron"]),
        ({**nightly(), "daily": None, "cron": "*/90 * * * *"}, ["body.cron"]),
        (nightly(time_zone="Mars/Olympus"), ["body.time_zone"]),
        (nightly(time_zone="localtime"), ["body.time_zone"]),
        (nightly(enabled="yes"), ["body.enabled"]),
        ({"daily": "02:30"}, ["body.training"]),
        (nightly(training=[]), ["body.training"]),
        (nightly(training=job(version=1)), ["body.training.version"]),
        (nightly(training=job(lags=50)), ["body.training.lags"]),
        (nightly(daily="x", training=job(lags=0, n_folds=0)), ["daily", "training.n_folds", "training.lags"]),
        (nightly(extra=1), ["body.extra"]),
    ],
)
@quickly_on("sqlite")
def test_all_that_is_wrong_is_told_at_once(client: TestClient, body: Any, places: list[str]) -> None:
    add_series(client)
    answer = client.put(PATH, json=body)
    assert answer.status_code == 422, answer.text
    assert locations(answer) == [p if p.startswith("body") else f"body.{p}" for p in places]
    assert client.get(PATH).status_code == 404


@quickly_on("sqlite")
def test_a_dataset_that_is_not_there_is_told_with_the_other_faults(client: TestClient) -> None:
    answer = client.put(PATH, json=nightly(daily="x"))
    assert (answer.status_code, answer.json()["code"]) == (404, "dataset_not_found")
    assert locations(answer) == ["body.daily"]


@quickly_on("sqlite")
def test_there_is_a_limit_of_schedules_and_they_come_in_pages(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MOST", 3)
    add_series(client)
    for n in range(3):
        assert client.put(f"/v1/schedules/s{n}", json=nightly()).status_code == 201
    refused = client.put("/v1/schedules/another", json=nightly())
    assert (refused.status_code, refused.json()["code"]) == (409, "too_many_schedules")
    page = client.get("/v1/schedules", params={"limit": 2}).json()
    rest = client.get("/v1/schedules", params={"cursor": page["next_cursor"]}).json()
    assert [s["name"] for s in page["items"] + rest["items"]] == ["s0", "s1", "s2"]
