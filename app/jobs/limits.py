"""The limits of a run: how long it may take, and how much memory."""

from __future__ import annotations

import os
from pathlib import Path

from app.settings import Settings

_MIB = 1024**2


def exceeded(settings: Settings, seconds: float, n_bytes: int) -> tuple[str, str] | None:
    """Return the code and the sentence of the limit that a run is over, or None."""
    if settings.job_max_seconds is not None and seconds > settings.job_max_seconds:
        return "time_limit", (
            f"The training took longer than the {settings.job_max_seconds:g} s that a job may take. Ask for "
            "less (fewer folds or strengths, less data), or let the operator raise CCMTL_JOB_MAX_SECONDS."
        )
    if settings.job_max_memory_mb is not None and n_bytes > settings.job_max_memory_mb * _MIB:
        return "memory_limit", (
            f"The training took {n_bytes / _MIB:,.0f} MiB of memory; a job may take "
            f"{settings.job_max_memory_mb:,}. Train on less data or fewer features, or let the operator "
            "raise CCMTL_JOB_MAX_MEMORY_MB."
        )
    return None


def memory_of(pid: int) -> int:
    """Return the bytes of memory that a process has of its own; 0 if it has ended, or where Linux is not."""
    try:
        pages, shared = Path(f"/proc/{pid}/statm").read_text().split()[1:3]
    except (OSError, ValueError):
        return 0
    return (int(pages) - int(shared)) * os.sysconf("SC_PAGE_SIZE")
