from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from app.main import create_app
from app.settings import Settings
from tests.support.access import key_header
from tests.support.training import add_series, job


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    app = create_app(Settings(data_dir=tmp_path_factory.mktemp("keys")))
    with TestClient(app, "http://localhost", raise_server_exceptions=False) as client:
        client.headers.update(key_header(app))
        yield client


def test_a_key_is_shown_once_used_and_revoked(client: TestClient) -> None:
    answer = client.post("/v1/keys", json={"name": "till", "scopes": ["predict"]})
    made = answer.json()
    assert (answer.status_code, answer.headers["location"]) == (201, f"/v1/keys/{made['id']}")
    assert answer.headers["cache-control"] == "no-store"
    header = {"Authorization": f"Bearer {made.pop('key')}"}
    assert client.get("/v1/models", headers=header).status_code == 200
    assert client.get("/v1/datasets", headers=header).status_code == 403
    assert client.get(f"/v1/keys/{made['id']}").json() == made
    assert client.delete(f"/v1/keys/{made['id']}").status_code == 204
    assert client.get("/v1/models", headers=header).json()["code"] == "key_invalid"
    assert client.get(f"/v1/keys/{made['id']}").json()["revoked_at"] is not None
    assert client.delete(f"/v1/keys/{made['id']}").status_code == 204


def test_a_request_with_two_keys_is_refused(client: TestClient) -> None:
    key = client.headers["authorization"]
    for others in (key, "Bearer another"):
        answer = client.get("/v1/models", headers=[("Authorization", key), ("Authorization", others)])
        assert (answer.status_code, answer.json()["code"]) == (400, "repeated_header")


@pytest.mark.parametrize(
    ("name", "values", "refusal"),
    [
        ("Content-Type", ["application/json", "text/csv"], (400, "repeated_header")),
        ("Content-Type", ["application/json", "application/json"], None),
        ("Idempotency-Key", ["one", "two"], (400, "repeated_header")),
        ("Content-Encoding", ["gzip", "gzip"], (415, "unsupported_content_encoding")),
        ("Content-Encoding", ["identity", "gzip"], (415, "unsupported_content_encoding")),
    ],
)
def test_headers_that_contradict_each_other_are_refused(
    client: TestClient, name: str, values: list[str], refusal: tuple[int, str] | None
) -> None:
    client.post("/v1/datasets", json={"name": "shop", "kind": "series", "frequency": "D"})
    for path in ("/v1/training-jobs", "/v1/datasets/shop/versions"):
        headers = [(name, value) for value in values]
        if name != "Content-Type":
            headers.append(("Content-Type", "application/json" if "jobs" in path else "text/csv"))
        answer = client.post(path, content=b"{}", headers=headers)
        problem = (answer.status_code, answer.json()["code"])
        assert problem == refusal if refusal else answer.status_code in (415, 422)


def test_metrics_may_be_kept_for_administrators(client: TestClient) -> None:
    app = cast(FastAPI, client.app)
    open_to_all = app.state.settings
    assert client.get("/metrics", headers={"Authorization": ""}).status_code == 200
    app.state.settings = open_to_all.model_copy(update={"metrics_need_key": True})
    try:
        predicts = key_header(app, scopes={"predict"})
        found = [client.get("/metrics", headers=h).status_code for h in ({"Authorization": ""}, predicts, {})]
    finally:
        app.state.settings = open_to_all
    assert found == [401, 403, 200]


def test_keys_come_in_pages(client: TestClient) -> None:
    for n in range(3):
        client.post("/v1/keys", json={"name": f"k{n}", "scopes": ["data"]})
    whole = [key["id"] for key in client.get("/v1/keys").json()["items"]]
    paged, cursor = [], None
    while True:
        page = client.get("/v1/keys", params={"limit": 2, **({"cursor": cursor} if cursor else {})}).json()
        paged += [key["id"] for key in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert paged == whole == sorted(whole)


def test_all_faults_of_a_key_are_told(client: TestClient) -> None:
    body = {"name": "", "scopes": ["all"], "expires_at": "2001-01-01T00:00:00Z", "x": 1}
    body |= {"requests_per_minute": 0}
    answer = client.post("/v1/keys", json=body)
    assert answer.status_code == 422
    assert {fault["location"] for fault in answer.json()["errors"]} == {
        "body.name", "body.scopes.0", "body.expires_at", "body.requests_per_minute", "body.x",
    }  # fmt: skip


def test_neither_key_nor_secret_is_stored(client: TestClient, tmp_path: Path) -> None:
    made = client.post("/v1/keys", json={"name": "till", "scopes": ["predict"]}).json()
    folder = client.app.state.settings.data_dir  # type: ignore[attr-defined]
    secret_part = made["key"].split("_", 2)[2].encode()
    assert not [file for file in folder.rglob("*") if file.is_file() and secret_part in file.read_bytes()]


def test_events_end_when_the_key_is_revoked(client: TestClient) -> None:
    add_series(client)
    queued = client.post("/v1/training-jobs", json=job())
    made = client.post("/v1/keys", json={"name": "screen", "scopes": ["train"]}).json()
    revocation = threading.Timer(0.5, client.delete, [f"/v1/keys/{made['id']}"])
    revocation.start()
    header = {"Authorization": f"Bearer {made['key']}"}
    watched = client.get(f"/v1/training-jobs/{queued.json()['id']}/events", headers=header)
    revocation.join()
    assert (watched.status_code, watched.text.count("event:") + watched.text.count("data:")) == (200, 1)


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Forwarded-For": "192.0.2.1"},
        {"Forwarded": "for=x"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Host": "shop.example"},  # a page whose own name was made to mean this machine
        {"Host": "localhost.example:8000"},
        {"Host": "192.0.2.1:8000"},
        {"Origin": "http://shop.example"},
        {"Origin": "null"},
    ],
)
def test_without_keys_nothing_from_elsewhere_is_answered(tmp_path: Path, headers: dict[str, str]) -> None:
    app = create_app(Settings(data_dir=tmp_path))
    with TestClient(app, "http://localhost") as client:
        assert client.get("/v1/models", headers={"Sec-Fetch-Site": "same-origin"}).status_code == 200
        refused = client.get("/v1/models", headers=headers)
        assert (refused.status_code, refused.json()["code"]) == (401, "key_missing")
        assert client.get("/v1/models", headers={**headers, **key_header(app)}).status_code == 200


@pytest.mark.parametrize("host", ["localhost", "localhost:8000", "127.0.0.1:8000", "127.0.0.2", "[::1]:8000"])
def test_without_keys_this_machine_is_answered_under_each_of_its_names(tmp_path: Path, host: str) -> None:
    with TestClient(create_app(Settings(data_dir=tmp_path)), "http://localhost") as client:
        headers = {"Host": host, "Origin": f"http://{host}"}
        assert client.get("/v1/models", headers=headers).status_code == 200
