"""The tables of a version's matrices, in chunks of 256 rows, and of the row of each ``unique_id``."""

from __future__ import annotations

from enum import StrEnum

from sqlalchemy import ForeignKey, LargeBinary, String
from sqlalchemy.orm import Mapped, mapped_column

from app.persistence.models.base import Base


class MatrixName(StrEnum):
    """The matrices kept for a version, each with one row per task."""

    WEIGHTS = "weights"
    INTERCEPT = "intercept"
    HISTORY = "history"


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
