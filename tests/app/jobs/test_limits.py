"""When a run is over a limit, and how its memory is measured."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from app.jobs.limits import exceeded, memory_of
from app.settings import Settings

MIB = 1024**2


def test_without_limits_nothing_is_too_much() -> None:
    assert exceeded(Settings(), 1e9, 10**15) is None


@pytest.mark.parametrize(
    ("seconds", "n_bytes", "code"),
    [(60.0, 5 * MIB, None), (60.1, 0, "time_limit"), (1.0, 5 * MIB + 1, "memory_limit")],
)
def test_a_run_over_a_limit_is_told_which(seconds: float, n_bytes: int, code: str | None) -> None:
    found = exceeded(Settings(job_max_seconds=60, job_max_memory_mb=5), seconds, n_bytes)
    assert (found and found[0]) == code


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
def test_memory_of_a_process_grows_with_what_it_holds_and_is_none_once_it_has_ended() -> None:
    before = memory_of(os.getpid())
    held = bytearray(os.urandom(1)) * (64 * MIB)
    assert memory_of(os.getpid()) - before > 48 * MIB
    del held
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert memory_of(ended.pid) == 0
