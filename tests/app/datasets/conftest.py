"""A shop's API on SQLite that a file of tests shares: validation does not depend on the database."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from app.main import create_app
from app.settings import Settings

CSV = "text/csv"
PARQUET = "application/vnd.apache.parquet"


class Shop:
    """Creates datasets under new names, uploads to them, and looks at what is stored."""

    def __init__(self, client: TestClient, folder: Path) -> None:
        self.client = client
        self.folder = folder
        self._numbers = itertools.count()

    @property
    def app(self) -> FastAPI:
        app = self.client.app
        assert isinstance(app, FastAPI)
        return app

    def series(self, **definition: Any) -> str:
        return self.create({"kind": "series", "frequency": "D", **definition})

    def regression(self, features: list[str], **columns: str) -> str:
        return self.create({"kind": "regression", "columns": {"features": features, **columns}})

    def create(self, definition: dict[str, Any]) -> str:
        name = f"shop-{next(self._numbers)}"
        answer = self.client.post("/v1/datasets", json={"name": name, **definition})
        assert answer.status_code == 201, answer.text
        return name

    def upload(
        self,
        name: str,
        body: bytes | str | Iterator[bytes],
        content_type: str = CSV,
        *,
        encoding: str | None = None,
        headers: dict[str, str] | None = None,
        **params: Any,
    ) -> httpx2.Response:
        content = body.encode() if isinstance(body, str) else body
        sent = {"content-type": content_type, **({"content-encoding": encoding} if encoding else {})}
        return self.client.post(
            f"/v1/datasets/{name}/versions",
            content=content,
            headers={**sent, **(headers or {})},
            params=params,
        )

    def accepted(
        self, name: str, body: bytes | str, content_type: str = CSV, **params: Any
    ) -> dict[str, Any]:
        answer = self.upload(name, body, content_type, **params)
        assert answer.status_code == 201, answer.text
        return answer.json()["report"]

    def refused(
        self, name: str, body: bytes | str, content_type: str = CSV, status: int = 422, **params: Any
    ) -> Any:
        """Upload what must be refused with this status and leave nothing behind; return the problem."""
        before = self.files()
        answer = self.upload(name, body, content_type, **params)
        assert answer.status_code == status, answer.text
        assert answer.headers["content-type"] == "application/problem+json"
        assert self.files() == before
        assert self.client.get(f"/v1/datasets/{name}").json()["newest_version"] is None
        return answer.json()

    def files(self) -> set[str]:
        return {str(p) for p in self.folder.rglob("*") if p.is_file() and p.parent.name != self.folder.name}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    folder = tmp_path_factory.mktemp("shop")
    app = create_app(Settings(data_dir=folder, max_upload_bytes=8 * 1024**2))
    with TestClient(app, "http://localhost", raise_server_exceptions=False) as client:
        yield Shop(client, folder)


def faults(problem: dict[str, Any]) -> list[tuple[str | None, int | None, str | None, str | None]]:
    """Return (code, row, column, value) of each listed fault."""
    return [(e["code"], e["row"], e["column"], e["value"]) for e in problem["errors"]]
