"""Datasets are created, listed and read, and grow by versions; on both databases."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import select

from app.datasets.schemas import FileType
from app.datasets.stored.frames import LoadedPanel, load
from app.datasets.upload import upload
from app.main import create_app
from app.persistence.database import Database
from app.persistence.models import DatasetVersion
from app.persistence.storage import Storage
from app.settings import Settings
from ccmtl_core.forecasting import SeriesPanel
from ccmtl_core.tables import ReadOptions
from tests.app.datasets.stored.test_coverage import forget
from tests.support.database_kinds import quickly_on
from tests.support.processes import PATIENCE

SALES = {"name": "sales", "kind": "series", "frequency": "D"}
FIRST = "unique_id,ds,y\na,2000-01-01,1\na,2000-01-02,2\n"
SECOND = "unique_id,ds,y\na,2000-01-03,3\nb,2000-01-01,4\n"


def create(client: TestClient, **definition: Any) -> httpx2.Response:
    return client.post("/v1/datasets", json={**SALES, **definition})


def send(client: TestClient, text: str, **params: Any) -> httpx2.Response:
    return client.post(
        "/v1/datasets/sales/versions", content=text, headers={"content-type": "text/csv"}, params=params
    )


def segments(settings: Settings) -> list[Path]:
    return [path for path in settings.data_dir.rglob("*") if path.suffix == ".parquet"]


def panel_of(database: Database, settings: Settings, version_id: str) -> SeriesPanel:
    loaded = load(database, Storage(settings.data_dir), version_id)
    assert isinstance(loaded, LoadedPanel)
    return loaded.panel


def leftovers(settings: Settings) -> list[Path]:
    return list((settings.data_dir / "incoming").iterdir())


def test_a_dataset_is_created_with_all_defaults_shown(client: TestClient) -> None:
    answer = create(client)
    assert answer.status_code == 201
    assert answer.headers["location"] == "/v1/datasets/sales"
    body = answer.json()
    assert body == client.get("/v1/datasets/sales").json()
    assert body.pop("id").startswith("ds_")
    assert body.pop("created_at").endswith("Z")
    assert body == {
        **SALES,
        "columns": {
            "unique_id": "unique_id",
            "ds": "ds",
            "y": "y",
            "future": [],
            "past": [],
            "attributes": [],
        },
        "ds_format": None,
        "duplicates": "error",
        "missing": "error",
        "negatives": "keep",
        "leading_zeros": "keep",
        "partial_last": "keep",
        "fill": None,
        "newest_version": None,
    }


def test_a_taken_name_is_a_conflict(client: TestClient) -> None:
    create(client)
    answer = create(client, frequency="W")
    assert (answer.status_code, answer.json()["code"]) == (409, "name_taken")
    assert client.get("/v1/datasets/sales").json()["frequency"] == "D"


def test_datasets_come_in_pages_by_name(client: TestClient) -> None:
    for name in ("cherry", "apple", "banana"):
        create(client, name=name)
    first = client.get("/v1/datasets", params={"limit": 2}).json()
    assert [d["name"] for d in first["items"]] == ["apple", "banana"]
    second = client.get("/v1/datasets", params={"limit": 2, "cursor": first["next_cursor"]}).json()
    assert [d["name"] for d in second["items"]] == ["cherry"]
    assert second["next_cursor"] is None


def test_an_unknown_dataset_gets_near_matches(client: TestClient) -> None:
    create(client)
    for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/versions"), ("GET", "/versions/1")):
        answer = client.request(method, f"/v1/datasets/salse{path}")
        assert (answer.status_code, answer.json()["code"]) == (404, "dataset_not_found")
        assert answer.json()["suggestions"] == ["sales"]


def test_versions_are_numbered_listed_and_read(client: TestClient) -> None:
    create(client)
    assert client.get("/v1/datasets/sales/versions/1").status_code == 404
    for _ in range(3):
        assert send(client, FIRST).status_code == 201
    assert client.get("/v1/datasets/sales").json()["newest_version"] == 3
    first = client.get("/v1/datasets/sales/versions", params={"limit": 2}).json()
    assert [v["version"] for v in first["items"]] == [3, 2]
    second = client.get("/v1/datasets/sales/versions", params={"limit": 2, "cursor": first["next_cursor"]})
    (oldest,) = second.json()["items"]
    assert second.json()["next_cursor"] is None
    assert oldest == client.get("/v1/datasets/sales/versions/1").json()
    assert oldest["report"]["rows"] == 2
    assert oldest["bytes"] > 0
    answer = client.get("/v1/datasets/sales/versions/4")
    assert (answer.status_code, answer.json()["suggestions"]) == (404, ["3"])


def test_an_append_adds_to_the_newest_version(
    client: TestClient, settings: Settings, database: Database
) -> None:
    create(client)
    send(client, FIRST, mode="append")
    report = send(client, SECOND, mode="append").json()["report"]
    assert (report["mode"], report["rows"], report["series"]) == ("append", 2, 2)
    assert report["version"] == {
        "values": 4,
        "series": 2,
        "periods": 3,
        "first": "2000-01-01",
        "last": "2000-01-03",
    }
    assert len(segments(settings)) == 2
    with database.read() as session:
        newest = session.scalars(select(DatasetVersion).where(DatasetVersion.number == 2)).one()
    panel = panel_of(database, settings, newest.id)
    assert panel.unique_ids == ("a", "b")
    assert panel.values.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_a_full_upload_leaves_the_earlier_data_out(client: TestClient) -> None:
    create(client)
    send(client, FIRST)
    assert send(client, SECOND, mode="full").json()["report"]["version"]["values"] == 2


def test_an_append_must_not_repeat_a_period(client: TestClient, settings: Settings) -> None:
    create(client)
    send(client, FIRST)
    text = "unique_id,ds,y\na,2000-01-03,3\na,2000-01-02,9\n"
    answer = send(client, text, mode="append")
    assert answer.status_code == 422
    (fault,) = answer.json()["errors"]
    assert (fault["code"], fault["row"], fault["value"]) == ("duplicate_period", 2, "a")
    assert "2000-01-02" in fault["message"]
    assert "`duplicates`" in fault["message"]
    assert len(segments(settings)) == 1
    assert client.get("/v1/datasets/sales").json()["newest_version"] == 1


@pytest.mark.parametrize(("aggregation", "expected"), [("sum", 1 + 2 + 6), ("mean", (1 + 2 + 6) / 3)])
def test_appended_rows_aggregate_with_those_before(
    client: TestClient, settings: Settings, database: Database, aggregation: str, expected: float
) -> None:
    create(client, aggregation=aggregation)
    send(client, "unique_id,ds,y\na,2000-01-01,1\na,2000-01-01,2\n")
    answer = send(client, "unique_id,ds,y\na,2000-01-01,6\n", mode="append", overlap="accept")
    report = answer.json()["report"]
    assert report["version"]["values"] == 1
    with database.read() as session:
        newest = session.scalars(select(DatasetVersion).where(DatasetVersion.number == 2)).one()
    panel = panel_of(database, settings, newest.id)
    assert panel.values.tolist() == [expected]


def test_the_same_rows_are_not_appended_twice(client: TestClient) -> None:
    create(client, aggregation="sum")
    send(client, FIRST)
    for dry_run in (True, False):
        answer = send(client, FIRST, mode="append", dry_run=dry_run)
        assert (answer.status_code, answer.json()["code"]) == (409, "already_appended")
        assert answer.json()["suggestions"] == ["1"], "the version that a lost answer told of"
    assert send(client, FIRST, mode="full").status_code == 201


@pytest.mark.parametrize("duplicates", ["sum", "error"])
def test_an_upload_that_is_sent_again_with_its_key_is_stored_once(
    client: TestClient, duplicates: str
) -> None:
    create(client, duplicates=duplicates)
    path = "/v1/datasets/sales/versions?mode="
    more = "unique_id,ds,y\na,2001-01-01,6\n"
    for mode, key, content, version in (("full", "1", FIRST, 1), ("append", "2", more, 2)):
        headers = {"Content-Type": "text/csv", "Idempotency-Key": key}
        answers = [client.post(f"{path}{mode}", content=content, headers=headers) for _ in range(2)]
        assert [answer.status_code for answer in answers] == [201, 201]
        assert answers[0].json() == answers[1].json()
        assert answers[1].json()["version"] == version
        assert answers[1].headers["location"] == f"/v1/datasets/sales/versions/{version}"
    headers = {"Content-Type": "text/csv", "Idempotency-Key": "1"}
    for mode, content in (("full", more), ("append", FIRST)):
        other = client.post(f"{path}{mode}", content=content, headers=headers)
        assert (other.status_code, other.json()["code"]) == (409, "idempotency_key_reused")
    assert "version 1, which was another" in other.json()["detail"]
    assert len(client.get("/v1/datasets/sales/versions").json()["items"]) == 2
    assert send(client, FIRST).json()["version"] == 3, "without a key"


def test_appended_times_must_agree_on_having_a_zone(client: TestClient) -> None:
    create(client)
    send(client, FIRST)
    answer = send(client, "unique_id,ds,y\nb,2000-01-02T00:00Z,1\n", mode="append")
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["code"] == "mixed_time_zones"
    assert error["message"].startswith(
        "these times have a zone and keep its local date, those of the version"
    )
    assert error["message"].endswith("send times of the same kind, or all data anew with mode=full")


def test_two_appends_at_once_are_stored_one_after_the_other(
    client: TestClient, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(client, aggregation="sum")
    send(client, FIRST)
    both_read, first_two = threading.Barrier(2), threading.Semaphore(2)
    write_segment = upload.write_segment

    def wait_then_write(*arguments: Any) -> None:
        if first_two.acquire(blocking=False):
            both_read.wait(PATIENCE)
        write_segment(*arguments)

    monkeypatch.setattr(upload, "write_segment", wait_then_write)
    texts = (SECOND, "unique_id,ds,y\nc,2000-01-01,5\n")
    answers: list[httpx2.Response] = []
    threads = [
        threading.Thread(target=lambda text=text: answers.append(send(client, text, mode="append")))
        for text in texts
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [answer.status_code for answer in answers] == [201, 201]
    assert sorted(answer.json()["version"] for answer in answers) == [2, 3]
    assert max(answer.json()["report"]["version"]["values"] for answer in answers) == 5
    assert len(segments(settings)) == 3
    assert leftovers(settings) == []


def test_an_append_that_others_keep_coming_before_is_refused(
    client: TestClient, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(client, aggregation="sum")
    send(client, FIRST)
    write_segment, numbers, nested = upload.write_segment, iter(range(100)), threading.Event()

    def let_another_pass(*arguments: Any) -> None:
        if not nested.is_set():
            nested.set()
            other = f"unique_id,ds,y\nx{next(numbers)},2000-01-01,1\n"
            assert send(client, other, mode="append").status_code == 201
            nested.clear()
        write_segment(*arguments)

    monkeypatch.setattr(upload, "write_segment", let_another_pass)
    answer = send(client, SECOND, mode="append")
    assert (answer.status_code, answer.json()["code"]) == (409, "dataset_changed")
    assert leftovers(settings) == []


def test_a_dataset_deleted_during_an_upload_stays_deleted(
    client: TestClient, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(client)
    write_segment = upload.write_segment

    def delete_then_write(*arguments: Any) -> None:
        assert client.delete("/v1/datasets/sales").status_code == 204
        write_segment(*arguments)

    monkeypatch.setattr(upload, "write_segment", delete_then_write)
    answer = send(client, FIRST)
    assert (answer.status_code, answer.json()["code"]) == (404, "dataset_not_found")
    assert segments(settings) == leftovers(settings) == []


def test_a_dataset_deleted_before_an_append_reads_it_is_not_found(
    client: TestClient, settings: Settings, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(client)
    send(client, FIRST)
    forget(database)
    read_segments = upload.read_segments

    def delete_then_read(*arguments: Any) -> Any:
        assert client.delete("/v1/datasets/sales").status_code == 204
        create(client)  # another one, of the same name
        return read_segments(*arguments)

    monkeypatch.setattr(upload, "read_segments", delete_then_read)
    answer = send(client, SECOND, mode="append")
    assert (answer.status_code, answer.json()["code"]) == (404, "dataset_not_found")
    assert segments(settings) == leftovers(settings) == []


def test_a_failed_transaction_leaves_no_file(
    client: TestClient, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(client)

    def fail(*arguments: Any) -> None:
        raise RuntimeError("the database is gone")

    monkeypatch.setattr(upload, "_insert", fail)
    assert send(client, FIRST).status_code == 500
    assert segments(settings) == leftovers(settings) == []


def test_starting_removes_what_a_crash_left(client: TestClient, settings: Settings) -> None:
    create(client)
    send(client, FIRST)
    (segment,) = segments(settings)
    orphan = Storage(settings.data_dir).segment_path("0" * 64)
    orphan.parent.mkdir()
    orphan.write_bytes(b"published without its row")
    (settings.data_dir / "incoming" / "half").write_bytes(b"half an upload")
    with TestClient(create_app(settings), "http://localhost"):
        assert segments(settings) == [segment]
        assert leftovers(settings) == []


@quickly_on("sqlite")
def test_the_description_of_the_upload_is_complete(api: FastAPI) -> None:
    document = api.openapi()
    operation = document["paths"]["/v1/datasets/{name}/versions"]["post"]
    assert set(operation["requestBody"]["content"]) == set(FileType)
    refusals = ("400", "404", "409", "413", "415", "422", "default")
    assert set(operation["responses"]) == {"200", "201", *refusals}
    for status in refusals:
        assert list(operation["responses"][status]["content"]) == ["application/problem+json"]
    names = {p["name"] for p in operation["parameters"]}
    reading = set(ReadOptions.__dataclass_fields__)
    assert names == {"name", "mode", "overlap", "dry_run", "idempotency-key", "content-encoding"} | reading
