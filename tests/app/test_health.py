from __future__ import annotations

from fastapi.testclient import TestClient
from sqlalchemy import text

from app.database import Database


def test_alive_and_ready(client: TestClient) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}
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
