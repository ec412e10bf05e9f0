"""Read the rows of a CSV file whose cells are all plain: ids, and numbers such as -12.5, in one pass.

Whatever else a row holds (a quote inside a field, an empty number, a missing field) ends the pass: it is for
readers that take longer, and can say what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ccmtl_core.base.arrays import EXACT_BELOW, read_only
from ccmtl_core.base.types import FloatArray, IntArray
from ccmtl_core.kernels.compiled import kernel
from ccmtl_core.kernels.vectors import Pointer, number, pointer

MAX_ID_BYTES = 512
IGNORED, ID = -2, -1
"""What a field holds that is no number."""

_LF, _CR, _MINUS, _ZERO = 10, 13, 45, 48
_MOST_DIGITS = 18  # which int64 holds
POWERS = read_only(10.0 ** np.arange(_MOST_DIGITS + 1))
"""Powers of ten: exact, so that quotients are the numbers nearest to the text."""
_PROBES = 1000  # ids that were made to collide are for other readers
_SHORT_BYTES, _LENGTH_BITS = 7, 10
_MIXER = 0x1E3779B97F4A7C15


class NotPlain(Exception):
    """The rows hold something that this reader leaves to others."""


@dataclass(frozen=True)
class Columns:
    """What the fields of each row are.

    Parameters
    ----------
    places : (F,) int64
        ``ID``, ``IGNORED``, or of a number its column in what is read; the last column is the target.
    decimals : (F,) uint8
        The decimal sign of a field's numbers, 0 where they are whole.
    delimiter, quote : str
        One ASCII character each.
    """

    places: IntArray
    decimals: NDArray[np.uint8]
    delimiter: str
    quote: str


@dataclass(frozen=True)
class RowBatch:
    """Some rows; the next batch takes the place of the arrays.

    Parameters
    ----------
    X : (n, P) float64
        All numbers but the target.
    y : (n,) float64
        The target.
    task : (n,) int64
        The number of each row's task. Tasks are counted as they appear in the file.
    new_ids : list of str
        Ids of the tasks that no batch before had, in the order of their numbers.
    """

    X: FloatArray
    y: FloatArray
    task: IntArray
    new_ids: list[str]


def plain_rows(
    data: NDArray[np.uint8], columns: Columns, batch_rows: int, *, has_header: bool
) -> Iterator[RowBatch]:
    """Yield the rows of a text, at most ``batch_rows`` at a time.

    Parameters
    ----------
    data : (n,) uint8
        UTF-8 without byte-order mark, from the header on.
    columns : Columns
        What the fields are.
    batch_rows : int
        The most rows of a batch.
    has_header : bool
        Whether the first row names the columns.

    Yields
    ------
    RowBatch
        One row or more.

    Raises
    ------
    NotPlain
        A row is not as many fields as there are columns, or a cell is not plain.
    """
    given, tasks = read_only(np.ascontiguousarray(data)), _Tasks()
    names = replace(columns, places=np.full_like(columns.places, IGNORED))
    end = _Room(1, 0).fill(given, 0, names)[1] if has_header else 0
    n_features = int(columns.places.max())
    room = _Room(min(batch_rows, len(given) // len(columns.places) + 1), n_features)
    while end < len(given):
        n, end = room.fill(given, end, columns)
        new_ids = tasks.number(given, room.keys[:n], room.spots[:n], room.task)
        yield RowBatch(room.X[:n], room.y[:n], room.task[:n], new_ids)


class _Room:
    """Arrays for the cells of a batch, which each batch uses anew."""

    def __init__(self, n_rows: int, n_features: int) -> None:
        self.X, self.y = np.empty((n_rows, n_features)), np.empty(n_rows)
        self.keys = np.empty(n_rows, dtype=np.int64)  # ids themselves where they are short, others mixed
        self.spots = np.empty(n_rows, dtype=np.int64)  # where ids are, and how long
        self.task = np.empty(n_rows, dtype=np.int64)

    def fill(self, data: NDArray[np.uint8], start: int, columns: Columns) -> tuple[int, int]:
        """Read rows while there is room; return how many, and where the next one begins."""
        given = data, start, read_only(columns.places), read_only(columns.decimals)
        marks = ord(columns.delimiter), ord(columns.quote)
        n, end = _read(*given, *marks, POWERS, self.X, self.y, self.keys, self.spots)
        if end < 0:
            raise NotPlain
        return n, end


class _Tasks:
    """The ids that were found, in a table by hash, with room that doubles."""

    def __init__(self) -> None:
        self._slots = np.zeros(1 << 11, dtype=np.int32)  # the number of a task plus 1; half are free
        self._keys = np.zeros(1 << 10, dtype=np.int64)
        self._ends = np.zeros((1 << 10) + 1, dtype=np.int64)
        self._text = np.zeros(1 << 15, dtype=np.uint8)
        self._n_tasks = 0

    def number(self, data: NDArray[np.uint8], keys: IntArray, spots: IntArray, task: IntArray) -> list[str]:
        """Write the number of the task of each row; return the ids of new tasks."""
        before, row = self._n_tasks, 0
        while row < len(keys):
            known = self._slots, self._keys, self._ends, self._text
            row, self._n_tasks = _number(data, keys, spots, row, self._n_tasks, *known, task)
            if row < 0:
                raise NotPlain
            self._grow()
        return self._ids(before)

    def _grow(self) -> None:
        """Double what is full."""
        n = self._n_tasks
        if self._ends[n] + MAX_ID_BYTES > len(self._text):
            self._text = np.concatenate([self._text, np.zeros_like(self._text)])
        if n == len(self._keys):
            self._keys = np.concatenate([self._keys, np.zeros_like(self._keys)])
            self._ends = np.concatenate([self._ends, np.zeros(n, dtype=np.int64)])
            self._slots = np.zeros(2 * len(self._slots), dtype=np.int32)
            _fill_slots(self._slots, self._keys, n)

    def _ids(self, first: int) -> list[str]:
        ends = self._ends[first : self._n_tasks + 1].tolist()
        text = self._text[ends[0] : ends[-1]].tobytes()
        return [text[start - ends[0] : end - ends[0]].decode() for start, end in pairwise(ends)]


@partial(kernel, fastmath=False)
def _read(
    content: NDArray[np.uint8],
    start: int,
    places: IntArray,
    decimals: NDArray[np.uint8],
    delimiter: int,
    quote: int,
    powers_of_ten: FloatArray,
    X: FloatArray,
    y: FloatArray,
    keys: IntArray,
    spots: IntArray,
) -> tuple[int, int]:
    """Read as many rows as there is room for; return how many, and where the next begins or -1."""
    data, powers, n = pointer(content), pointer(powers_of_ten), len(content)
    n_fields, n_features, i = len(places), X.shape[1], start
    for row in range(len(y)):
        if i == n:
            return row, i
        for field in range(n_fields):
            place, is_quoted = places[field], i < n and number(data, i) == quote
            i += is_quoted
            if place >= 0:
                i, value = number_at(data, i, n, decimals[field], powers)
                if i < 0:
                    return row, -1
                if place < n_features:
                    X[row, place] = value
                else:
                    y[row] = value
            else:
                first, i = i, _end_of_text(data, i, n, delimiter, quote, is_quoted)
                if place == ID:
                    keys[row], spots[row] = _key(data, first, i), first << _LENGTH_BITS | i - first
                    if keys[row] < 0:
                        return row, -1
            if is_quoted:
                if i == n or number(data, i) != quote:
                    return row, -1
                i += 1
            if field + 1 < n_fields:
                if i == n or number(data, i) != delimiter:
                    return row, -1
                i += 1
            elif i < n:
                i += number(data, i) == _CR
                if i == n or number(data, i) != _LF:
                    return row, -1
                i += 1
    return len(y), i


@partial(kernel, fastmath=False)
def number_at(data: Pointer, i: int, n: int, decimal: int, powers: Pointer) -> tuple[int, float]:
    """Return where a number such as -12.5 ends, or -1 where none stands, and the number."""
    is_negative = i < n and number(data, i) == _MINUS
    i += is_negative
    first, digits, n_decimals = i, 0, 0
    while i < n and _ZERO <= number(data, i) < _ZERO + 10 and i - first < _MOST_DIGITS:
        digits = 10 * digits + (number(data, i) - _ZERO)
        i += 1
    n_digits = i - first
    if n_digits == 0:
        return -1, 0.0
    if i < n and decimal != 0 and number(data, i) == decimal:
        i += 1
        first = i
        while i < n and _ZERO <= number(data, i) < _ZERO + 10 and n_digits + i - first < _MOST_DIGITS:
            digits = 10 * digits + (number(data, i) - _ZERO)
            i += 1
        n_decimals = i - first
        if n_decimals == 0:
            return -1, 0.0
    if digits >= EXACT_BELOW:
        return -1, 0.0
    value = digits / number(powers, n_decimals)
    return i, -value if is_negative else value


@kernel
def _end_of_text(data: Pointer, i: int, n: int, delimiter: int, quote: int, is_quoted: bool) -> int:
    """Return where a field ends, or the byte that may not stand in it."""
    if is_quoted:
        while i < n and number(data, i) != quote:
            i += 1
    else:
        while (
            i < n
            and number(data, i) != delimiter
            and number(data, i) != _LF
            and number(data, i) != quote
            and number(data, i) != _CR
        ):
            i += 1
    return i


@kernel
def _key(data: Pointer, start: int, stop: int) -> int:
    """Return a number that tells an id from all others if it is short, and from most; -1 of no plain id."""
    length = stop - start
    if not 0 < length <= MAX_ID_BYTES:
        return -1
    key = 0
    for i in range(start, stop):
        if number(data, i) == 0:
            return -1
        if length <= _SHORT_BYTES:
            key = key << 8 | number(data, i)
        else:
            key = (key ^ number(data, i) ^ key >> 29) * _MIXER
    return key & (1 << 56) - 1 | min(length, _SHORT_BYTES + 1) << 56


@kernel
def _number(
    content: NDArray[np.uint8],
    keys: IntArray,
    spots: IntArray,
    start: int,
    n_tasks: int,
    slots: NDArray[np.int32],
    known: IntArray,
    ends: IntArray,
    stored: NDArray[np.uint8],
    tasks: IntArray,
) -> tuple[int, int]:
    """Number the tasks of rows from ``start`` on while there is room; return the row after, or -1."""
    data, text = pointer(content), pointer(stored)
    for row in range(start, len(keys)):
        key, first, length = keys[row], spots[row] >> _LENGTH_BITS, spots[row] & (1 << _LENGTH_BITS) - 1
        at, n_probes = _first_slot(key, len(slots)), 0
        task = slots[at] - 1
        while task >= 0 and not (
            known[task] == key
            and (length <= _SHORT_BYTES or _is_text(data, first, length, text, ends[task], ends[task + 1]))
        ):
            at, n_probes = (at + 1) & (len(slots) - 1), n_probes + 1
            if n_probes == _PROBES:
                return -1, n_tasks
            task = slots[at] - 1
        if task < 0:
            if n_tasks == len(known) or ends[n_tasks] + length > len(stored):
                return row, n_tasks
            task, n_tasks = n_tasks, n_tasks + 1
            for k in range(length):
                stored[ends[task] + k] = number(data, first + k)
            ends[n_tasks], known[task], slots[at] = ends[task] + length, key, n_tasks
        tasks[row] = task
    return len(keys), n_tasks


@kernel
def _is_text(data: Pointer, first: int, length: int, text: Pointer, start: int, stop: int) -> bool:
    is_same = stop - start == length
    k = 0
    while is_same and k < length:
        is_same = number(data, first + k) == number(text, start + k)
        k += 1
    return is_same


@kernel
def _first_slot(key: int, n_slots: int) -> int:
    mixed = (key ^ key >> 29) * _MIXER
    return (mixed ^ mixed >> 32) & n_slots - 1


@kernel
def _fill_slots(slots: NDArray[np.int32], keys: IntArray, n: int) -> None:
    """Put n tasks into empty slots."""
    for task in range(n):
        at = _first_slot(keys[task], len(slots))
        while slots[at] != 0:
            at = (at + 1) & (len(slots) - 1)
        slots[at] = task + 1
