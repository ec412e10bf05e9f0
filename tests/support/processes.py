"""Processes seen from outside: is it running, wait until something holds."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 240.0
"""Seconds a test waits for what must happen: many times what it takes: the machine may be busy, and compile.

Whatever would happen by itself must take longer, so that the wait shows what it is for."""


def is_running(pid: int) -> bool:
    """Whether the process exists and is not merely waiting to be reaped."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def wait_until(condition: Callable[[], T], what: str) -> T:
    """Return the first true value of ``condition``; fail when there is none in all of ``PATIENCE``.

    It looks more and more seldom, since what takes long is often kept waiting by the looking.
    """
    deadline, pause = time.monotonic() + PATIENCE, 0.01
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"{what} did not come within {PATIENCE:g} s"
        time.sleep(pause)
        pause = min(1.1 * pause, 0.1)
