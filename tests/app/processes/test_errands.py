"""Small work goes on beside what a process is there for, whatever one of its pieces meets."""

from __future__ import annotations

import threading

import pytest
from sqlalchemy.exc import OperationalError

from app.processes.errands import Errands
from tests.support.processes import PATIENCE

AWAY = OperationalError(None, None, ValueError("away"))


@pytest.mark.parametrize("error", [RuntimeError("unexpected"), AWAY])
def test_work_goes_on_after_it_has_failed_and_beside_what_fails(error: Exception) -> None:
    failed, done = threading.Semaphore(0), threading.Semaphore(0)

    def fail() -> None:
        failed.release()
        raise error

    with Errands(0.01, [fail, done.release]):
        for seen in (failed, done, failed, done):
            assert seen.acquire(timeout=PATIENCE)


def test_it_ends_with_its_block_and_does_not_begin_anew() -> None:
    times = []
    errands = Errands(60.0, [lambda: times.append(1)])
    with errands:
        pass
    assert not errands._thread.is_alive()
    assert times == []
