"""The exit codes by which the process of a run tells its worker how it ended."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """How a run ended that could not say so in the database, or need not."""

    RECORDED = 0
    DATABASE_AWAY = 3
    STALE = 4
    CLUSTER_LOST = 5
