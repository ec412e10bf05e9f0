"""Fixtures of the walks: a real service as processes of its own, on each kind of database.

``@pytest.mark.service(workers="2", …)`` gives it settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.support.service import Service, running_service

StartService = Callable[[], AbstractContextManager[Service]]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "service(**settings): settings of the walk's service")


@pytest.fixture
def start_service(tmp_path: Path, database_kind: str, request: pytest.FixtureRequest) -> StartService:
    """Start the test's service; again after it ended, it finds what it has stored."""
    settings = {"job_poll_seconds": "0.1"}
    for marker in request.node.iter_markers("service"):
        settings |= marker.kwargs
    if database_kind == "postgresql":
        settings["database_url"] = request.getfixturevalue("database_url")
    return lambda: running_service(tmp_path, **settings)


@pytest.fixture
def service(start_service: StartService) -> Iterator[Service]:
    """The running service."""
    with start_service() as service:
        yield service
