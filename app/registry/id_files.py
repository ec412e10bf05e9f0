"""The ids of a large model's tasks, in a file that all processes of a machine map, and the row of each.

The file holds the ids one after another, where each begins, and a hash table of their rows. A second file,
made when an unknown id is first asked for, holds their orders for near matches.
"""

from __future__ import annotations

import hashlib
import mmap
import os
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, SupportsIndex, overload

import numpy as np
from numpy.typing import NDArray

from app.registry.matrix_files import MatrixFiles
from ccmtl_core.base.near_matches import orders_of

MAPPED_FROM = 100_000
"""Tasks. The ids of fewer are not worth a file."""
_KEPT = 2**16
"""Ids whose rows each process remembers."""
_LONGEST = 512
"""Bytes of an id; longer ones are not looked for."""
_SALT_BYTES = 16
_SEAL_BYTES = 32
_INT = np.dtype("<i8")
_ROW = np.dtype("<i4")


class MappedIds(Sequence[str]):
    """The ids in the order of their rows, each made a string when it is asked for."""

    def __init__(self, starts: memoryview, text: memoryview) -> None:
        self._starts, self._text = starts, text

    def __len__(self) -> int:
        return len(self._starts) - 1

    @overload
    def __getitem__(self, at: SupportsIndex) -> str: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[str, ...]: ...

    def __getitem__(self, at: SupportsIndex | slice) -> str | tuple[str, ...]:
        """Return the id of a row, or those of several."""
        if isinstance(at, slice):
            return tuple(map(self._at, range(*at.indices(len(self)))))
        return self._at(range(len(self))[at])

    def _at(self, row: int) -> str:
        return str(self._text[self._starts[row] : self._starts[row + 1]], "utf-8")


class MappedRows(Mapping[str, int]):
    """The row of each id, as a dict has them.

    Parameters
    ----------
    data : mmap
        A file with what :func:`index_of` yields.
    orders : callable
        Returns the orders of the ids for near matches, made when they are first needed.
    """

    def __init__(self, data: mmap.mmap, orders: Callable[[Sequence[str]], NDArray[np.int32]]) -> None:
        n_ids, n_slots, n_bytes = np.frombuffer(data, _INT, 3).tolist()
        view, at = memoryview(data), 3 * _INT.itemsize
        salt = bytes(view[at : at + _SALT_BYTES])
        at += _SALT_BYTES
        starts = view[at : at + (n_ids + 1) * _INT.itemsize].cast("q")
        at += starts.nbytes
        table = view[at : at + n_slots * _ROW.itemsize].cast("i")
        at += table.nbytes
        text = view[at : at + n_bytes]
        self.ids = MappedIds(starts, text)
        self.n_bytes = len(data)
        self._orders = orders
        self._find = lru_cache(_KEPT)(_finder(salt, starts, table, text))

    def near_orders(self) -> NDArray[np.int32]:
        """Return the orders of the ids that :class:`ccmtl_core.base.near_matches.NearMatches` needs."""
        return self._orders(self.ids)

    def get(self, unique_id: str, default: Any = None) -> Any:
        """Return the row of an id."""
        row = self._find(unique_id) if len(unique_id) <= _LONGEST else -1
        return default if row < 0 else row

    def __getitem__(self, unique_id: str) -> int:
        row = self.get(unique_id, -1)
        if row < 0:
            raise KeyError(unique_id)
        return int(row)

    def __contains__(self, unique_id: object) -> bool:
        return isinstance(unique_id, str) and self.get(unique_id, -1) >= 0

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[str]:
        return iter(self.ids)


def _finder(salt: bytes, starts: memoryview, table: memoryview, text: memoryview) -> Callable[[str], int]:
    """Return what finds the row of an id, -1 where there is none."""
    n_homes = _n_homes(len(starts) - 1)

    def find(unique_id: str) -> int:
        key = unique_id.encode("utf-8", "surrogatepass")
        slot = int.from_bytes(_hashed(key, salt), "little") % n_homes
        row: int
        while (row := table[slot]) >= 0:
            if text[starts[row] : starts[row + 1]] == key:
                return row
            slot += 1
        return -1

    return find


def mapped_rows(
    files: MatrixFiles, version_id: str, n_ids: int, read: Callable[[], Iterable[str]]
) -> MappedRows | None:
    """Return the rows of a version's ids, mapped from a file, or None if there can be no file.

    ``read`` yields the ids in the order of their rows.
    """
    data = files.file(f"ids-{version_id}", lambda: sealed(index_of(read())), is_sealed)

    def orders(ids: Sequence[str]) -> NDArray[np.int32]:
        def read() -> Iterator[bytes]:
            yield orders_of(ids).astype(_ROW).tobytes()

        stored = files.file(f"near-{version_id}", lambda: sealed(read()), is_sealed)
        if stored is None:
            return orders_of(ids)
        return np.frombuffer(stored, _ROW, 3 * len(ids)).reshape(3, -1)

    if data is None or np.frombuffer(data, _INT, 1)[0] != n_ids:
        return None
    return MappedRows(data, orders)


def index_of(ids: Iterable[str]) -> Iterator[bytes]:
    """Yield a header (how many ids, slots and bytes; the salt), starts, the hash table, and the ids.

    An id is in the first free slot from the one that its hash says on, so that a search ends at a free one.
    """
    salt, text, starts, hashes = os.urandom(_SALT_BYTES), bytearray(), array("q", [0]), bytearray()
    for unique_id in ids:
        key = unique_id.encode()
        text += key
        starts.append(len(text))
        hashes += _hashed(key, salt)
    n_ids = len(starts) - 1
    homes = np.frombuffer(hashes, "<u8") % np.uint64(_n_homes(n_ids))
    order = np.argsort(homes, kind="stable")
    place = np.arange(n_ids)
    slots = place + np.maximum.accumulate(homes[order].astype(np.int64) - place)
    table = np.full(max(_n_homes(n_ids), int(slots.max(initial=0)) + 2) // 2 * 2 + 2, -1, _ROW)
    table[slots] = order
    yield np.array([n_ids, len(table), len(text)], _INT).tobytes()
    yield salt
    yield np.asarray(starts, _INT).tobytes()
    yield table.tobytes()
    yield bytes(text)


def sealed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the pieces, and the SHA-256 of all of them."""
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
        yield piece
    yield digest.digest()


def is_sealed(view: memoryview) -> bool:
    """Whether bytes are as :func:`sealed` has made them."""
    return hashlib.sha256(view[:-_SEAL_BYTES]).digest() == view[-_SEAL_BYTES:]


def _hashed(key: bytes, salt: bytes) -> bytes:
    """Eight bytes that nobody can choose an id by, since the salt is random."""
    return hashlib.blake2b(key, digest_size=8, salt=salt).digest()


def _n_homes(n_ids: int) -> int:
    return 2 * n_ids + 1
