"""A client of the service in this process, a worker beside it, and services that answer as they are told."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
from fastapi.testclient import TestClient

from app.jobs import queue
from app.main import create_app
from app.settings import Settings
from app.training import pipeline
from ccmtl_client import Client

Working = Callable[[], AbstractContextManager[None]]
SHOP = Path(__file__).parents[2] / "examples" / "shop.csv"


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path) -> Iterator[TestClient]:
    """The started application on SQLite, which these tests share."""
    folder = tmp_path_factory.mktemp("service")
    shutil.copy(sqlite_template, folder / "ccmtl.db")
    with TestClient(create_app(Settings(data_dir=folder)), "http://localhost") as service:
        yield service


@pytest.fixture(scope="session")
def client(service: TestClient) -> Iterator[Client]:
    with Client("http://localhost", transport=service._transport) as client:
        yield client


@pytest.fixture(scope="session")
def working(service: TestClient) -> Working:
    """Run the jobs that are queued within the block, one after the other, in a thread of this process."""
    state: Any = service.app.state  # type: ignore[attr-defined]

    def work(ended: threading.Event) -> None:
        while not ended.wait(0.02):
            with state.database.write() as session:
                job = queue.claim(session, "worker", 60.0, 3)
            if job is not None:
                pipeline.run(state.database, state.storage, job, lambda record: None)

    @contextmanager
    def block() -> Iterator[None]:
        ended = threading.Event()
        thread = threading.Thread(target=work, args=[ended])
        thread.start()
        yield
        ended.set()
        thread.join()

    return block


@pytest.fixture(scope="session")
def sold(client: Client) -> str:
    """A dataset: what 30 products sold on 56 days."""
    client.datasets.upload("sold", SHOP, definition={"frequency": "D"})
    return "sold"


@pytest.fixture(scope="module")
def shop(client: Client, working: Working, sold: str, request: pytest.FixtureRequest) -> str:
    """A model of two lags of each product, trained once for the tests of a module."""
    name = f"shop-{request.module.__name__.rpartition('_')[2]}"
    with working():
        client.train(sold, name, lags=2, fusion_strength=1).wait(timeout=240)
    return name


class Told(httpx2.BaseTransport):
    """Answers as it is told, one after the other, and keeps what was sent; or passes a request on first."""

    def __init__(self, *answers: Any, behind: httpx2.BaseTransport | None = None) -> None:
        self.answers, self.behind = list(answers), behind
        self.sent: list[httpx2.Request] = []

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        request.read()
        self.sent.append(request)
        answer = self.answers.pop(0) if self.answers else None
        if self.behind is not None:
            given = self.behind.handle_request(request)  # carried out, whatever becomes of the answer
            answer = given if answer is None else answer
        if isinstance(answer, Exception):
            raise answer
        assert answer is not None, f"an unexpected request: {request.method} {request.url}"
        if isinstance(answer, httpx2.Response):
            return answer
        return httpx2.Response(200, json=answer)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The client never waits; the seconds it would have are noted, and its clock goes on by them."""
    noted: list[float] = []
    clock = SimpleNamespace(sleep=noted.append, monotonic=lambda: sum(noted))
    for module in ("wire", "jobs"):
        monkeypatch.setattr(f"ccmtl_client.{module}.time", clock)
    return noted


def problem(status: int, code: str, **more: Any) -> httpx2.Response:
    """A refusal as the service sends it."""
    headers = more.pop("headers", None)
    body = {"title": "No", "status": status, "code": code, "detail": "What is wrong.", **more}
    return httpx2.Response(status, json=body, headers=headers)
