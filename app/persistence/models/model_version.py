"""The tables of models, which are names, and of their versions, which never change."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column, relationship

from app.persistence.models.base import Base, new_id, utc_now


class Model(Base):
    """The name under which versions are published; it stays when they are deleted.

    ``last_number`` is the last number that was given. A number is never given again, so that a name and a
    number always mean the same weights.
    """

    __tablename__ = "model"

    id: Mapped[str] = mapped_column(String(40), primary_key=True, default=lambda: new_id("mdl"))
    name: Mapped[str] = mapped_column(String(200), unique=True)
    last_number: Mapped[int] = mapped_column(default=0, server_default="0")
    created_at: Mapped[datetime] = mapped_column(default=utc_now)

    versions: Mapped[list[ModelVersion]] = relationship(
        back_populates="model", order_by="ModelVersion.number", cascade="all, delete-orphan"
    )


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

    model: Mapped[Model] = relationship(back_populates="versions")
