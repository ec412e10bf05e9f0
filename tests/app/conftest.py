"""Fixtures of the service: the API in this process, on each kind of database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from app.main import create_app
from app.settings import Settings


@pytest.fixture
def api(settings: Settings) -> FastAPI:
    """The application, not yet started."""
    return create_app(settings)


@pytest.fixture
def client(api: FastAPI) -> Iterator[TestClient]:
    """A client of the started application; errors become answers, as on the wire."""
    with TestClient(api, raise_server_exceptions=False) as client:
        yield client
