"""The files of datasets: uploads under random names, accepted segments under their SHA-256, never changed.

Two advisory locks make a crash harmless. Whoever writes an upload holds a lock on its file, so that a file
without a lock was left by a dead process. Whoever moves a segment into place, and then commits the row that
names it, shares the store's lock; so a segment without a row is garbage to whoever holds that lock alone.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from app.settings import make_folder

BLOCK_BYTES = 1 << 20


class SegmentDamaged(Exception):
    """The file of a segment is missing, or its bytes no longer have its digest."""


class Storage:
    """The folders ``incoming`` and ``segments`` under ``root``."""

    def __init__(self, root: Path) -> None:
        self._incoming = root / "incoming"
        self._segments = root / "segments"
        self._lock_file = root / "segments.lock"
        make_folder(self._incoming, "data_dir")
        make_folder(self._segments, "data_dir")

    @contextmanager
    def incoming(self) -> Iterator[Path]:
        """Yield the path of a new empty file, which is removed at the end unless it was moved away."""
        path, descriptor = self._create_locked()
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)
            os.close(descriptor)

    def check(self) -> None:
        """Write a byte and remove it again; raise OSError where an upload could not be stored."""
        with self.incoming() as path:
            path.write_bytes(b"0")

    @contextmanager
    def publishing(self) -> Iterator[None]:
        """Keep sweeps away between :meth:`commit` and the commit of the rows that name the segments."""
        with self._locked(fcntl.LOCK_SH):
            yield

    def commit(self, path: Path, digest: str) -> int:
        """Move the finished file at ``path`` into the store, durably, and return its size in bytes.

        Equal bytes are stored once. Call inside :meth:`publishing`, with the file's own digest.
        """
        n_bytes = path.stat().st_size
        target = self.segment_path(digest)
        target.parent.mkdir(exist_ok=True)
        _sync(path)
        path.rename(target)
        _sync(target.parent)
        _sync(self._segments)
        return n_bytes

    def segment_path(self, sha256: str) -> Path:
        """Return the path of the segment with this digest."""
        return self._segments / sha256[:2] / f"{sha256}.parquet"

    def verified_segment(self, sha256: str) -> Path:
        """Return the path of a segment after comparing its bytes with its digest, or raise SegmentDamaged."""
        path = self.segment_path(sha256)
        try:
            intact = file_sha256(path) == sha256
        except FileNotFoundError:
            raise SegmentDamaged(f"the dataset file {path.name} is missing from the store") from None
        if not intact:
            raise SegmentDamaged(f"the dataset file {path.name} has changed on disk since it was stored")
        return path

    def sweep(self, referenced: Callable[[], Collection[str]]) -> int:
        """Remove files that belong to no running upload and to no row; return how many.

        ``referenced`` returns the digests that rows name; it is called while no segment can be published.
        """
        return self.sweep_incoming() + self.discard(
            {path.stem for path in self._segments.glob("*/*.parquet")}, referenced
        )

    def sweep_incoming(self) -> int:
        """Remove what processes that have ended were writing; return how many files."""
        n_removed = 0
        for path in self._incoming.iterdir():
            with suppress(FileNotFoundError, BlockingIOError), path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
                n_removed += 1
        return n_removed

    def discard(self, digests: Iterable[str], referenced: Callable[[], Collection[str]]) -> int:
        """Remove those of ``digests`` that ``referenced()`` does not return; return how many were removed."""
        with self._locked(fcntl.LOCK_EX):
            garbage = set(digests) - set(referenced())
            for digest in garbage:
                self.segment_path(digest).unlink(missing_ok=True)
        return len(garbage)

    def _create_locked(self) -> tuple[Path, int]:
        while True:
            path = self._incoming / secrets.token_hex(16)
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            # A sweep may have taken the file in the moment before it was locked.
            if os.fstat(descriptor).st_nlink:
                return path, descriptor
            os.close(descriptor)

    @contextmanager
    def _locked(self, mode: int) -> Iterator[None]:
        descriptor = os.open(self._lock_file, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(descriptor, mode)
            yield
        finally:
            os.close(descriptor)


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of the file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
