"""Read the segments of a version, write a new one, and remove those that no version names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from app.datasets import repository
from app.http.errors import AppError, NotFound
from app.persistence.database import Database
from app.persistence.storage import SegmentDamaged, Storage
from ccmtl_core.base.system_errors import naming_system_errors


def read_segments(storage: Storage, digests: Sequence[str]) -> pl.DataFrame:
    """Return the rows of all segments in their order; SegmentDamaged if a file is missing or changed."""
    with naming_system_errors():
        return pl.concat(
            pl.read_parquet(storage.verified_segment(digest), glob=False, hive_partitioning=False)
            for digest in digests
        )


def deleted() -> NotFound:
    """Return the answer to a request whose dataset went away under it."""
    return NotFound("dataset_not_found", "The dataset was deleted while it was being read.")


def unreadable(database: Database, version_id: str, error: SegmentDamaged) -> AppError:
    """Return the answer to a request that cannot read a version, which was deleted or is damaged."""
    with database.read() as session:  # a new one: what an older one sees may have gone since
        if repository.whole_version(session, version_id) is None:
            return deleted()
    return AppError(
        "dataset_damaged",
        f"The dataset version cannot be read: {error}. Restore the data folder from a backup, or upload the "
        "data again in full.",
    )


def write_segment(frame: pl.DataFrame, path: Path) -> None:
    """Write ``frame`` to ``path`` as Parquet; the same frame always gives the same bytes."""
    with naming_system_errors():
        frame.write_parquet(path, compression="zstd")


def sweep(database: Database, storage: Storage) -> int:
    """Remove the files of uploads that a crash cut off; return how many."""
    return storage.sweep(lambda: _referenced(database))


def discard(database: Database, storage: Storage, *digests: str) -> None:
    """Remove those of the segments that no version names any more."""
    storage.discard(digests, lambda: _referenced(database))


def _referenced(database: Database) -> set[str]:
    with database.read() as session:
        return set(repository.all_digests(session))
