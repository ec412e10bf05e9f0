"""Small datasets over HTTP, for what starts with one."""

from __future__ import annotations

import json
from typing import Any

from fastapi.testclient import TestClient
from sqlalchemy import func, select

from app.persistence.database import Database
from app.persistence.models import TrainingJob


def series_csv(*ids: str, n_days: int = 12) -> str:
    """Return ``n_days`` of January 2025 for each id, values that differ."""
    rows = [
        f'"{i}",2025-01-{d:02d},{(7 * d + t) % 5}' for t, i in enumerate(ids) for d in range(1, n_days + 1)
    ]
    return "\n".join(["unique_id,ds,y", *rows]) + "\n"


def add_series(
    client: TestClient, name: str = "sales", content: str | None = None, **definition: Any
) -> None:
    """Create a dataset of daily series and upload its first version."""
    _add(
        client,
        {"name": name, "kind": "series", "frequency": "D", **definition},
        content or series_csv("a", "b"),
    )


def add_regression(client: TestClient, name: str = "rows", content: str | None = None) -> None:
    """Create a regression dataset with the features x and z and upload its first version."""
    rows = [f"{task},{n % 3},{n},{n % 4}" for task in "ab" for n in range(8)]
    columns = {"features": ["x", "z"]}
    definition = {"name": name, "kind": "regression", "columns": columns}
    _add(client, definition, content or "\n".join(["unique_id,y,x,z", *rows]) + "\n")


def _add(client: TestClient, definition: dict[str, Any], content: str) -> None:
    created = client.post("/v1/datasets", json=definition)
    assert created.status_code == 201, created.text
    upload(client, definition["name"], content)


def upload(client: TestClient, name: str, content: str) -> None:
    """Upload a version of a dataset."""
    answer = client.post(
        f"/v1/datasets/{name}/versions?mode=full",
        content=content.encode(),
        headers={"Content-Type": "text/csv"},
    )
    assert answer.status_code == 201, answer.text


def job(**fields: Any) -> dict[str, Any]:
    """Return a training request that works on ``sales``."""
    return {"dataset": "sales", "model": "m", "fusion_strength": 1.0, **fields}


def post(client: TestClient, body: Any, **headers: str) -> Any:
    """Send a training request; the client's own encoder cannot write half a surrogate pair."""
    given = {"Content-Type": "application/json", **headers}
    return client.post("/v1/training-jobs", content=json.dumps(body), headers=given)


def locations(answer: Any) -> list[str]:
    """Return where the faults of a refused request are."""
    return [fault["location"] for fault in answer.json()["errors"]]


def n_jobs(database: Database) -> int:
    """Return how many training jobs are stored."""
    with database.read() as session:
        return session.scalar(select(func.count()).select_from(TrainingJob)) or 0
