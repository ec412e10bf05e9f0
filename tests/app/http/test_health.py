from __future__ import annotations

from pathlib import Path

from fastapi.testclient import TestClient
from sqlalchemy import text

from app.main import create_app
from app.persistence.database import Database
from app.settings import Settings
from tests.conftest import postgres_database


def test_alive_and_ready(client: TestClient) -> None:
    for path in ("/healthz", "/ping"):
        assert client.get(path).json() == {"status": "ok"}
    assert client.get("/readyz").json() == {"status": "ready"}


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
