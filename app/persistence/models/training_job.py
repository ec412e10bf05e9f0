"""The table of training jobs: a row is the request, the place in the queue, and the outcome."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Float, ForeignKey, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from app.persistence.models.base import Base, new_id, utc_now


class JobState(StrEnum):
    """Where a job stands; the last three are final."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class TrainingJob(Base):
    """``attempt`` counts the runs; whoever writes must know the current one.

    ``times_lost`` counts the runs that ended without an outcome (a killed worker, a fit out of memory).
    """

    __tablename__ = "training_job"
    __table_args__ = (Index("ix_training_job_queue", "state", "created_at"),)

    id: Mapped[str] = mapped_column(String(40), primary_key=True, default=lambda: new_id("job"))
    dataset_version_id: Mapped[str] = mapped_column(
        ForeignKey("dataset_version.id", ondelete="CASCADE"), index=True
    )
    model_name: Mapped[str] = mapped_column(String(200))
    request: Mapped[dict[str, Any]]
    idempotency_key: Mapped[str | None] = mapped_column(String(200), unique=True)

    state: Mapped[str] = mapped_column(String(20), default=JobState.QUEUED)
    attempt: Mapped[int] = mapped_column(default=0)
    times_lost: Mapped[int] = mapped_column(default=0)
    worker: Mapped[str | None] = mapped_column(String(200))
    lease_expires_at: Mapped[float | None] = mapped_column(Float(53))
    cancel_requested: Mapped[bool] = mapped_column(default=False)

    progress: Mapped[dict[str, Any] | None]
    error: Mapped[dict[str, Any] | None]
    model_version_id: Mapped[str | None] = mapped_column(String(40))
    created_at: Mapped[datetime] = mapped_column(default=utc_now)
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
