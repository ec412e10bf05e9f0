"""The tables: datasets, training jobs, models with their versions and matrices, keys, webhooks, schedules."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import (
    BigInteger,
    Float,
    ForeignKey,
    Index,
    LargeBinary,
    String,
    Text,
    UniqueConstraint,
    false,
    func,
    select,
    text,
)
from sqlalchemy.orm import Mapped, column_property, mapped_column, relationship

from app.persistence.base import Base, Owned, new_id, utc_now


class DatasetVersion(Base):
    """One accepted upload, with its validation report; never changed afterwards."""

    __tablename__ = "dataset_version"
    __table_args__ = (UniqueConstraint("dataset_id", "number"),)

    id: Mapped[str] = mapped_column(String(40), primary_key=True, default=lambda: new_id("dsv"))
    dataset_id: Mapped[str] = mapped_column(ForeignKey("dataset.id", ondelete="CASCADE"), index=True)
    number: Mapped[int]
    report: Mapped[dict[str, Any]]
    created_at: Mapped[datetime] = mapped_column(default=utc_now)

    dataset: Mapped[Dataset] = relationship()
    segments: Mapped[list[Segment]] = relationship(order_by="Segment.position", cascade="all, delete-orphan")


class Dataset(Owned, Base):
    """A name for uploads of one definition: kind, columns, frequency, and how to aggregate and fill."""

    __tablename__ = "dataset"
    __table_args__ = (UniqueConstraint("workspace", "name"),)

    id: Mapped[str] = mapped_column(String(40), primary_key=True, default=lambda: new_id("ds"))
    name: Mapped[str] = mapped_column(String(200))
    kind: Mapped[str] = mapped_column(String(20))
    definition: Mapped[dict[str, Any]]
    created_at: Mapped[datetime] = mapped_column(default=utc_now)
    newest_version: Mapped[int | None] = column_property(
        select(func.max(DatasetVersion.number))
        .where(DatasetVersion.dataset_id == id)
        .correlate_except(DatasetVersion)
        .scalar_subquery()
    )


class Segment(Base):
    """One Parquet file of a version; appended versions share the files of those before them."""

    __tablename__ = "dataset_segment"

    dataset_version_id: Mapped[str] = mapped_column(
        ForeignKey("dataset_version.id", ondelete="CASCADE"), primary_key=True
    )
    position: Mapped[int] = mapped_column(primary_key=True)
    sha256: Mapped[str] = mapped_column(String(64), index=True)
    n_rows: Mapped[int]
    n_bytes: Mapped[int] = mapped_column(BigInteger)


class CoveragePart(StrEnum):
    """The tables that a version's coverage is kept in.

    A training request reads the first two, of any version; an append the others, of the newest version alone.
    """

    SIZES = "sizes"
    RUNS = "runs"
    SERIES = "series"
    SAMPLES = "samples"
    TIMES = "times"


class DatasetCoverage(Base):
    """One part of what is known of a version's rows without reading them: a small table."""

    __tablename__ = "dataset_coverage"

    dataset_version_id: Mapped[str] = mapped_column(
        ForeignKey("dataset_version.id", ondelete="CASCADE"), primary_key=True
    )
    part: Mapped[str] = mapped_column(String(20), primary_key=True)
    data: Mapped[bytes] = mapped_column(LargeBinary)


class JobState(StrEnum):
    """Where a job stands; the last three are final."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


_RUNS_ALONE = text("state = 'running' AND NOT parallel")


class TrainingJob(Owned, Base):
    """``attempt`` counts the runs; whoever writes must know the current one.

    Of the jobs of one model a single one runs at a time, but for those that are ``parallel``.

    ``times_lost`` counts the runs that ended without an outcome (as a fit out of memory), ``times_silent``
    those that were taken over because their worker was not heard of, be it dead or late.
    """

    __tablename__ = "training_job"
    __table_args__ = (
        Index("ix_training_job_queue", "state", "created_at"),
        Index(
            "ix_training_job_one_of_a_model",
            "workspace",
            "model_name",
            unique=True,
            sqlite_where=_RUNS_ALONE,
            postgresql_where=_RUNS_ALONE,
        ),
        Index("ix_training_job_one_of_a_tick", "workspace", "schedule", "schedule_tick", unique=True),
        UniqueConstraint("workspace", "idempotency_key"),
    )

    id: Mapped[str] = mapped_column(String(40), primary_key=True, default=lambda: new_id("job"))
    dataset_version_id: Mapped[str] = mapped_column(
        ForeignKey("dataset_version.id", ondelete="CASCADE"), index=True
    )
    model_name: Mapped[str] = mapped_column(String(200))
    request: Mapped[dict[str, Any]]
    idempotency_key: Mapped[str | None] = mapped_column(String(200))

    priority: Mapped[int] = mapped_column(default=0, server_default="0")
    parallel: Mapped[bool] = mapped_column(default=False, server_default=false())
    schedule: Mapped[str | None] = mapped_column(String(100))
    schedule_tick: Mapped[datetime | None]

    state: Mapped[str] = mapped_column(String(20), default=JobState.QUEUED)
    attempt: Mapped[int] = mapped_column(default=0)
    times_lost: Mapped[int] = mapped_column(default=0)
    times_silent: Mapped[int] = mapped_column(default=0, server_default="0")
    worker: Mapped[str | None] = mapped_column(String(200))
    lease_expires_at: Mapped[float | None] = mapped_column(Float(53))
    cancel_requested: Mapped[bool] = mapped_column(default=False)

    progress: Mapped[dict[str, Any] | None]
    error: Mapped[dict[str, Any] | None]
    model_version_id: Mapped[str | None] = mapped_column(String(40))
    created_at: Mapped[datetime] = mapped_column(default=utc_now)
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]


class LivingWorker(Base):
    """A worker, and until when it is counted as alive, in seconds since 1970 by the database's clock."""

    __tablename__ = "living_worker"

    name: Mapped[str] = mapped_column(String(300), primary_key=True)
    alive_until: Mapped[float] = mapped_column(Float(53))


class ModelVersion(Base):
    """What was trained, on what, and how well it did; its matrices are in ``matrix_chunk``."""

    __tablename__ = "model_version"
    __table_args__ = (UniqueConstraint("model_id", "number"),)

    id: Mapped[str] = mapped_column(String(40), primary_key=True, default=lambda: new_id("mv"))
    model_id: Mapped[str] = mapped_column(ForeignKey("model.id", ondelete="CASCADE"), index=True)
    number: Mapped[int]
    training_job_id: Mapped[str] = mapped_column(ForeignKey("training_job.id"), unique=True)
    dataset_version_id: Mapped[str] = mapped_column(ForeignKey("dataset_version.id"), index=True)
    feature_names: Mapped[list[str]]
    n_tasks: Mapped[int]
    configuration: Mapped[dict[str, Any]]
    metrics: Mapped[dict[str, Any]]
    report: Mapped[dict[str, Any]]
    created_at: Mapped[datetime] = mapped_column(default=utc_now)

    code_version: Mapped[str | None] = mapped_column(String(100))

    model: Mapped[Model] = relationship()
    aliases: Mapped[list[ModelAlias]] = relationship(
        primaryjoin="ModelVersion.id == ModelAlias.model_version_id",
        order_by="ModelAlias.name",
        lazy="selectin",
        viewonly=True,
    )


class Model(Owned, Base):
    """The name under which versions are published; it stays when they are deleted.

    ``last_number`` is the last number that was given. A number is never given again, so that a name and a
    number always mean the same weights.
    """

    __tablename__ = "model"
    __table_args__ = (UniqueConstraint("workspace", "name"),)

    id: Mapped[str] = mapped_column(String(40), primary_key=True, default=lambda: new_id("mdl"))
    name: Mapped[str] = mapped_column(String(200))
    last_number: Mapped[int] = mapped_column(default=0, server_default="0")
    created_at: Mapped[datetime] = mapped_column(default=utc_now)
    n_versions: Mapped[int] = column_property(
        select(func.count(ModelVersion.id))
        .where(ModelVersion.model_id == id)
        .correlate_except(ModelVersion)
        .scalar_subquery()
    )
    newest_version: Mapped[int] = column_property(
        select(func.max(ModelVersion.number))
        .where(ModelVersion.model_id == id)
        .correlate_except(ModelVersion)
        .scalar_subquery()
    )


class ModelAlias(Base):
    """A name for one version of a model, such as ``production``, and the version that it named before."""

    __tablename__ = "model_alias"

    model_id: Mapped[str] = mapped_column(ForeignKey("model.id", ondelete="CASCADE"), primary_key=True)
    name: Mapped[str] = mapped_column(String(100), primary_key=True)
    model_version_id: Mapped[str] = mapped_column(ForeignKey("model_version.id"), index=True)
    previous_version_id: Mapped[str | None] = mapped_column(
        ForeignKey("model_version.id", ondelete="SET NULL"), index=True
    )
    changed_at: Mapped[datetime] = mapped_column(default=utc_now)


class MatrixName(StrEnum):
    """The matrices kept for a version, each with one row per task but for ranges and the graph."""

    WEIGHTS = "weights"
    INTERCEPT = "intercept"
    HISTORY = "history"
    SERIES = "series"
    RANGES = "ranges"
    PAST = "past"
    ATTRIBUTES = "attributes"
    SAMPLES = "samples"
    GRAPH = "graph"


class MatrixChunk(Base):
    """Up to 256 consecutive rows, float64 little-endian in row order, with their digest."""

    __tablename__ = "matrix_chunk"

    model_version_id: Mapped[str] = mapped_column(
        ForeignKey("model_version.id", ondelete="CASCADE"), primary_key=True
    )
    matrix: Mapped[str] = mapped_column(String(20), primary_key=True)
    first_row: Mapped[int] = mapped_column(primary_key=True)
    n_rows: Mapped[int]
    n_columns: Mapped[int]
    data: Mapped[bytes] = mapped_column(LargeBinary)
    sha256: Mapped[str] = mapped_column(String(64))


class TaskRow(Base):
    """``unique_id → row`` of a version's matrices; the id is any text of up to 512 bytes."""

    __tablename__ = "task_row"

    model_version_id: Mapped[str] = mapped_column(
        ForeignKey("model_version.id", ondelete="CASCADE"), primary_key=True
    )
    unique_id: Mapped[str] = mapped_column(String(512), primary_key=True)
    row: Mapped[int]


class ApiKey(Owned, Base):
    """Who may do what; the key itself is known to its holder alone, here is its keyed hash.

    ``id`` stands in the key, so that it is found. A revoked key stays: once there was a key, every request
    needs one.
    """

    __tablename__ = "api_key"

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    name: Mapped[str] = mapped_column(String(100))
    digest: Mapped[str] = mapped_column(String(64))
    scopes: Mapped[list[str]]
    requests_per_minute: Mapped[int | None]
    created_at: Mapped[datetime] = mapped_column(default=utc_now)
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]


class Webhook(Owned, Base):
    """Where to send events of a workspace.

    Its secret is not stored, but made of the service's own, ``id`` and ``secret_number``.
    """

    __tablename__ = "webhook"
    __table_args__ = (UniqueConstraint("workspace", "name"),)

    id: Mapped[str] = mapped_column(String(40), primary_key=True, default=lambda: new_id("wh"))
    name: Mapped[str] = mapped_column(String(100))
    url: Mapped[str] = mapped_column(Text)
    events: Mapped[list[str]]
    enabled: Mapped[bool] = mapped_column(default=True)
    disabled_because: Mapped[str | None] = mapped_column(String(300))
    secret_number: Mapped[int] = mapped_column(default=1)
    previous_secret_until: Mapped[datetime | None]
    last_delivered_at: Mapped[datetime | None]
    created_at: Mapped[datetime] = mapped_column(default=utc_now)


class DeliveryState(StrEnum):
    """Where a delivery stands; a pending one is sent when it is due, for the first time or again."""

    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"


class WebhookDelivery(Base):
    """One event on its way to one webhook, written in the transaction that makes the event true.

    ``attempts`` counts how often it was sent, and whoever stores an outcome must know the current count;
    ``retries`` counts failures since it was last due for the first time.
    """

    __tablename__ = "webhook_delivery"
    __table_args__ = (Index("ix_webhook_delivery_due", "state", "due_at"),)

    id: Mapped[str] = mapped_column(String(40), primary_key=True, default=lambda: new_id("dlv"))
    webhook_id: Mapped[str] = mapped_column(ForeignKey("webhook.id", ondelete="CASCADE"), index=True)
    event_id: Mapped[str] = mapped_column(String(40))
    event: Mapped[str] = mapped_column(String(40))
    body: Mapped[str] = mapped_column(Text)
    state: Mapped[str] = mapped_column(String(20), default=DeliveryState.PENDING)
    attempts: Mapped[int] = mapped_column(default=0)
    retries: Mapped[int] = mapped_column(default=0)
    due_at: Mapped[float] = mapped_column(Float(53))
    lease_expires_at: Mapped[float | None] = mapped_column(Float(53))
    log: Mapped[list[dict[str, Any]]] = mapped_column(default=list)
    created_at: Mapped[datetime] = mapped_column(default=utc_now)


class Schedule(Owned, Base):
    """When to train what again and again; ``next_run_at`` is null while it is disabled.

    ``last_…`` tell of the newest time that came: what it was, and the job that it started or why it did not.
    """

    __tablename__ = "schedule"
    __table_args__ = (UniqueConstraint("workspace", "name"),)

    id: Mapped[str] = mapped_column(String(40), primary_key=True, default=lambda: new_id("sch"))
    name: Mapped[str] = mapped_column(String(100))
    cron: Mapped[str] = mapped_column(String(100))
    time_zone: Mapped[str] = mapped_column(String(100))
    request: Mapped[dict[str, Any]]
    enabled: Mapped[bool]
    next_run_at: Mapped[datetime | None]
    last_tick: Mapped[datetime | None]
    last_job_id: Mapped[str | None] = mapped_column(String(40))
    last_error: Mapped[dict[str, Any] | None]
    created_at: Mapped[datetime] = mapped_column(default=utc_now)
