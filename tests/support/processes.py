"""Processes seen from outside: is it running, wait until something holds, let several begin at once."""

from __future__ import annotations

import os
import subprocess
import sys
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
    """Return the first true value of ``condition``; fail when there is none in all of ``PATIENCE``."""
    deadline = time.monotonic() + PATIENCE
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"{what} did not come within {PATIENCE:g} s"
        time.sleep(0.02)


def run_together(module: str, n: int, environment: dict[str, str]) -> list[str]:
    """Run ``n`` processes of a module that all begin when the last is ready; return what each prints."""
    command = [sys.executable, "-m", module]
    processes = [
        subprocess.Popen(
            command,
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(n)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n", process.communicate()[1]
    for process in processes:
        assert process.stdin is not None
        process.stdin.close()
    printed = []
    for process in processes:
        process.stdin = None  # so that nothing is flushed into what is closed
        output, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, errors
        printed.append(output)
    return printed


def wait_for_the_others() -> None:
    """In a process of :func:`run_together`: say that it is ready, and wait until all are."""
    print("ready", flush=True)  # noqa: T201 - the test reads it
    sys.stdin.read()
