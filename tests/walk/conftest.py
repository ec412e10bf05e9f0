"""Fixtures of the walks: a real service as processes of its own, on each kind of database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest

from tests.conftest import postgres_database
from tests.support.service import Service, running_service

StartService = Callable[..., AbstractContextManager[Service]]


@pytest.fixture(scope="module")
def start_service(
    tmp_path_factory: pytest.TempPathFactory, database_kind: str, request: pytest.FixtureRequest
) -> Iterator[StartService]:
    """Start a service, with settings by keyword; all of one module find what the others have stored."""
    folder = tmp_path_factory.mktemp("service")
    if database_kind == "sqlite":
        yield lambda **settings: running_service(folder, **settings)
        return
    template = request.getfixturevalue("postgres_template")
    with postgres_database(request.getfixturevalue("postgres_url"), template) as url:
        yield lambda **settings: running_service(folder, database_url=url, **settings)


@pytest.fixture(scope="module")
def service(start_service: StartService) -> Iterator[Service]:
    """A service for all tests of the module, quick to take over."""
    with start_service(workers=2, job_lease_seconds=2, job_poll_seconds=0.1) as service:
        yield service
