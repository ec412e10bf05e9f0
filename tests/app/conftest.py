"""Fixtures of the service: the API in this process, on each kind of database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from starlette.routing import BaseRoute

from app.main import create_app
from app.settings import Settings


@pytest.fixture(scope="session")
def routes(tmp_path_factory: pytest.TempPathFactory) -> list[BaseRoute]:
    """The routes of all applications here: FastAPI builds those of each anew, at its first request."""
    return create_app(Settings(data_dir=tmp_path_factory.mktemp("routes"))).router.routes


@pytest.fixture
def api(settings: Settings, routes: list[BaseRoute]) -> FastAPI:
    """The application, not yet started."""
    app = create_app(settings)
    app.router.routes = routes
    return app


@pytest.fixture
def client(api: FastAPI) -> Iterator[TestClient]:
    """A client of the started application; errors become answers, as on the wire."""
    with TestClient(api, "http://localhost", raise_server_exceptions=False) as client:
        yield client
