"""Keep a process on one core, with one thread for each library, and tell how busy the machine is."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import Any

ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)


def run_with_one_thread_each() -> None:
    """Start this command anew with one thread for each library, unless it has that."""
    if not ONE_THREAD.items() <= os.environ.items():
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, **ONE_THREAD})


def run_on_one_core() -> None:
    """Start this command anew with one thread for each library, unless it has that; stay on one CPU."""
    run_with_one_thread_each()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def machine() -> dict[str, Any]:
    """Return what the figures depend on: processor, CPUs, where this process may run, load."""
    return {
        "processor": _processor(),
        "cpus": os.cpu_count(),
        "pinned_to": sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "load": load(),
    }


def load() -> list[float]:
    """Return the processes that wanted to run, averaged over 1, 5 and 15 minutes."""
    return [round(value, 2) for value in os.getloadavg()]


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
