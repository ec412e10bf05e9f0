"""Rows of a large upload set aside in a file, to be read again series by series."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ccmtl_core.base.types import IntArray
from ccmtl_core.kernels.grouping import group_rows

Column = NDArray[Any]


class Spill:
    """Columns of rows in a file, region after region; each holds its columns one after another.

    A region that is written in pieces must be given its size first.
    """

    def __init__(self, path: Path, types: Sequence[Any]) -> None:
        self._file = path.open("r+b", buffering=0)
        self._types = [np.dtype(one) for one in types]
        self._row_bytes = sum(one.itemsize for one in self._types)
        self.ends = np.zeros(1, dtype=np.int64)
        """The rows before each region, and all."""

    @property
    def n_rows(self) -> int:
        """Rows of all regions."""
        return int(self.ends[-1])

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def append(self, columns: Sequence[Column]) -> None:
        """Write a region."""
        self.allot([len(columns[0])])
        self.write(len(self.ends) - 2, 0, columns)

    def allot(self, sizes: Sequence[int] | IntArray) -> None:
        """Make regions of so many rows, to be written."""
        self.ends = np.append(self.ends, self.ends[-1] + np.cumsum(sizes))

    def write(self, region: int, at: int, columns: Sequence[Column]) -> None:
        """Write rows of a region from row ``at`` of it on."""
        for column, kind, place in zip(columns, self._types, self._places(region, at), strict=True):
            view = np.ascontiguousarray(column, kind).data.cast("B")
            while len(view):
                n = os.pwrite(self._file.fileno(), view, place)
                view, place = view[n:], place + n

    def read(self, begin: int, end: int) -> list[Column]:
        """Return the columns of the rows from ``begin`` to ``end``, of one region or of several."""
        columns = [np.empty(end - begin, kind) for kind in self._types]
        region = int(np.searchsorted(self.ends, begin, side="right")) - 1
        at = begin
        while at < end:
            stop = min(end, int(self.ends[region + 1]))
            places = self._places(region, at - int(self.ends[region]))
            for column, place in zip(columns, places, strict=True):
                view = column[at - begin : stop - begin].data.cast("B")
                while len(view):
                    n = os.preadv(self._file.fileno(), [view], place)
                    if not n:
                        raise EOFError("rows that were set aside are gone")
                    view, place = view[n:], place + n
            at, region = stop, region + 1
        return columns

    def _places(self, region: int, at: int) -> list[int]:
        """Where in the file each column has row ``at`` of a region."""
        first, n_rows = int(self.ends[region]), int(self.ends[region + 1] - self.ends[region])
        widths = [0, *(one.itemsize for one in self._types)]
        before = np.cumsum(widths)[:-1].tolist()
        return [
            first * self._row_bytes + n_rows * width + at * kind.itemsize
            for width, kind in zip(before, self._types, strict=True)
        ]


def regroup(
    read: Callable[[int, int], Sequence[Column]],
    target: Spill,
    group_of: IntArray,
    sizes: IntArray,
    batch_rows: int,
) -> None:
    """Copy rows into one region of each group, in their order, with their numbers as the last column.

    ``read`` returns the columns of some rows; ``group_of`` tells the group of each value of the first column,
    and ``sizes`` how many rows each has.
    """
    target.allot(sizes)
    written, n_rows = np.zeros(len(sizes), dtype=np.int64), int(sizes.sum())
    for begin in range(0, n_rows, batch_rows):
        end = min(begin + batch_rows, n_rows)
        columns = [*read(begin, end), np.arange(begin, end)]
        order, offsets = group_rows(group_of[columns[0]], len(sizes))
        columns = [column[order] for column in columns]
        for group in np.flatnonzero(np.diff(offsets)).tolist():
            rows = slice(offsets[group], offsets[group + 1])
            target.write(group, int(written[group]), [column[rows] for column in columns])
        written += np.diff(offsets)
