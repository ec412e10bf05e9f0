"""Keep large matrices and ids in files that all processes of a machine map, so that memory holds each once.

The database stays what is true: a file is named by the digests of the rows there, compared with them before
it is used, and made anew if it is missing or was changed.
"""

from __future__ import annotations

import hashlib
import logging
import mmap
import os
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

logger = logging.getLogger(__name__)

MAPPED_FROM = 2**20
"""Bytes. A smaller matrix is not worth a file."""
UNUSED_SECONDS = 7 * 24 * 3600.0
"""A file that no process has opened for so long is removed when an API starts."""


class MatrixFiles:
    """The folder ``cache/matrices`` of the data folder; all of it can be deleted at any time."""

    def __init__(self, root: Path) -> None:
        self._folder = root / "cache" / "matrices"

    def mapped(
        self, parts: Sequence[tuple[int, str]], read: Callable[[], Iterable[bytes]]
    ) -> NDArray[np.float64] | None:
        """Return the numbers of a matrix, mapped from its file, or None if there can be no file.

        ``parts`` are the bytes and the SHA-256 of each part in the database; ``read`` yields them, checked.
        """
        name = hashlib.sha256("".join(digest for _, digest in parts).encode()).hexdigest()
        data = self.file(name, read, lambda view: _is_of(view, parts))
        return None if data is None else np.frombuffer(data, dtype="<f8")

    def file(
        self, name: str, read: Callable[[], Iterable[bytes]], is_sound: Callable[[memoryview], bool]
    ) -> mmap.mmap | None:
        """Return a map of the file of this name, made of what ``read`` yields; None if there can be none.

        One of which ``is_sound`` is false is made anew.
        """
        path = self._folder / name
        try:
            found = _checked(path, is_sound)
            if found is None:
                path.unlink(missing_ok=True)
                self._write(path, read())
                found = _checked(path, is_sound)
            os.utime(path)
        except OSError as error:
            logger.warning("the matrix file %s cannot be used: %s", path, error)
            return None
        return found

    def sweep(self) -> None:
        """Remove the files that no process has opened for a week; those that are mapped stay readable."""
        oldest = time.time() - UNUSED_SECONDS
        with suppress(OSError):
            for path in self._folder.glob("*"):
                if path.stat().st_mtime < oldest:
                    path.unlink(missing_ok=True)

    def _write(self, path: Path, data: Iterable[bytes]) -> None:
        """Write the file under another name first; of two processes at once, both map that of the quicker."""
        self._folder.mkdir(parents=True, exist_ok=True)
        new = self._folder / f"new-{secrets.token_hex(8)}"
        try:
            with new.open("xb") as file:
                file.writelines(data)
            with suppress(FileExistsError):
                os.link(new, path)
        finally:
            new.unlink(missing_ok=True)


def _checked(path: Path, is_sound: Callable[[memoryview], bool]) -> mmap.mmap | None:
    """Map a file; return None if it is missing or was changed."""
    try:
        with path.open("rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (FileNotFoundError, ValueError):  # mmap refuses an empty file
        return None
    with memoryview(data) as view:
        return data if is_sound(view) else None


def _is_of(view: memoryview, parts: Sequence[tuple[int, str]]) -> bool:
    """Whether bytes are what the database holds."""
    if len(view) != sum(n_bytes for n_bytes, _ in parts):
        return False
    first = 0
    for n_bytes, digest in parts:
        if hashlib.sha256(view[first : first + n_bytes]).hexdigest() != digest:
            return False
        first += n_bytes
    return True
