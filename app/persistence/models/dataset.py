"""A dataset, its immutable versions, the Parquet segments that a version is made of, and its coverage."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, LargeBinary, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column, relationship

from app.persistence.models.base import Base, new_id, utc_now


class Dataset(Base):
    """A name for uploads of one definition: kind, columns, frequency, and how to aggregate and fill."""

    __tablename__ = "dataset"

    id: Mapped[str] = mapped_column(String(40), primary_key=True, default=lambda: new_id("ds"))
    name: Mapped[str] = mapped_column(String(200), unique=True)
    kind: Mapped[str] = mapped_column(String(20))
    definition: Mapped[dict[str, Any]]
    created_at: Mapped[datetime] = mapped_column(default=utc_now)

    versions: Mapped[list[DatasetVersion]] = relationship(
        back_populates="dataset", order_by="DatasetVersion.number", cascade="all, delete-orphan"
    )


class DatasetVersion(Base):
    """One accepted upload, with its validation report; never changed afterwards."""

    __tablename__ = "dataset_version"
    __table_args__ = (UniqueConstraint("dataset_id", "number"),)

    id: Mapped[str] = mapped_column(String(40), primary_key=True, default=lambda: new_id("dsv"))
    dataset_id: Mapped[str] = mapped_column(ForeignKey("dataset.id", ondelete="CASCADE"), index=True)
    number: Mapped[int]
    report: Mapped[dict[str, Any]]
    created_at: Mapped[datetime] = mapped_column(default=utc_now)

    dataset: Mapped[Dataset] = relationship(back_populates="versions")
    segments: Mapped[list[Segment]] = relationship(order_by="Segment.position", cascade="all, delete-orphan")


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


class DatasetCoverage(Base):
    """One part of what is known of a version's rows without reading them: a small table."""

    __tablename__ = "dataset_coverage"

    dataset_version_id: Mapped[str] = mapped_column(
        ForeignKey("dataset_version.id", ondelete="CASCADE"), primary_key=True
    )
    part: Mapped[str] = mapped_column(String(20), primary_key=True)
    data: Mapped[bytes] = mapped_column(LargeBinary)
