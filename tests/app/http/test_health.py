from __future__ import annotations

import errno
import shutil
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import text

from app.jobs import workers
from app.main import create_app
from app.persistence.database import Database
from app.persistence.storage import Storage
from app.settings import Settings
from tests.conftest import postgres_database


def test_alive_and_ready(client: TestClient) -> None:
    for path in ("/healthz", "/ping"):
        assert client.get(path).json() == {"status": "ok"}
    assert client.get("/readyz").json()["status"] == "ready"


def test_workers_are_told_and_their_absence_is_a_warning(client: TestClient, database: Database) -> None:
    alone = client.get("/readyz").json()
    assert alone["workers"] == 0
    assert "training jobs wait" in alone["warnings"][0]
    with database.write() as session:
        workers.note_alive(session, "w1", 60)
    assert client.get("/readyz").json() == {"status": "ready", "workers": 1, "warnings": []}


def test_all_reasons_not_to_be_ready_are_told_at_once(
    client: TestClient, database: Database, settings: Settings
) -> None:
    with database.write() as session:
        session.execute(text("UPDATE alembic_version SET version_num = '0001'"))
    shutil.rmtree(settings.data_dir / "incoming")
    for path in ("/readyz", "/v2/health/ready"):
        answer = client.get(path)
        assert (answer.status_code, answer.json()["code"]) == (503, "schema_out_of_date")
        codes = [fault["code"] for fault in answer.json()["errors"]]
        assert codes == ["schema_out_of_date", "storage_unavailable"]
        assert "is older than this program" in answer.json()["detail"]
        assert "cannot be written to" in answer.json()["detail"]
    for path in ("/healthz", "/v2/health/live"):
        assert client.get(path).status_code == 200, "it would be restarted"


def test_a_full_disk_is_a_warning_since_forecasts_are_answered(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Storage, "check", full)
    answer = client.get("/readyz")
    assert answer.status_code == 200
    assert "disk of the data folder is full" in answer.json()["warnings"][0]


def test_not_ready_on_a_schema_of_another_version(client: TestClient, database: Database) -> None:
    with database.write() as session:
        session.execute(text("UPDATE alembic_version SET version_num = 'from_the_future'"))
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] == "schema_out_of_date"
    assert "newer than this program" in answer.json()["detail"]
    assert client.get("/healthz").status_code == 200


def test_a_database_that_became_unsuitable_is_as_one_that_is_away(postgres_url: str, tmp_path: Path) -> None:
    with postgres_database(postgres_url, "template0", "ENCODING 'SQL_ASCII'") as url:
        settings = Settings(data_dir=tmp_path, database_url=url)
        client = TestClient(create_app(settings), raise_server_exceptions=False)  # its lifespan does not run
        answers = [client.get(path) for path in ("/readyz", "/v1/datasets", "/v1/models/m")]
    for answer in answers:
        assert (answer.status_code, answer.json()["code"]) == (503, "database_unavailable")
        assert answer.headers["retry-after"] == "5"


def test_a_database_that_is_away_is_a_503_problem_and_no_reason_to_restart(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, database_url="postgresql+psycopg://nobody@127.0.0.1:1/none")
    client = TestClient(create_app(settings), raise_server_exceptions=False)  # its lifespan does not run
    for path in ("/readyz", "/v1/datasets", "/v1/models/m"):
        answer = client.get(path)
        assert (answer.status_code, answer.json()["code"]) == (503, "database_unavailable"), path
    assert client.get("/healthz").status_code == 200
