"""Read the rows of a CSV file of series whose cells are all plain: ids, times and numbers, in one pass.

Ids and times are numbered as they appear; rows keep the numbers. What stood after a text the last time mostly
stands there again, in files by series and in files by time, so that a text is mostly compared with the one
that is expected and seldom looked up.
"""

# mypy: no-warn-return-any

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ccmtl_core.base.types import FloatArray, IntArray
from ccmtl_core.kernels.compiled import kernel
from ccmtl_core.kernels.csv_rows import MAX_ID_BYTES, POWERS, NotPlain, number_at
from ccmtl_core.kernels.csv_texts import (
    FIRST_ROW,
    IS_QUOTED,
    KIND,
    LAST_ID,
    LEFT,
    N_ID_CHANGES,
    N_PAIRS,
    N_ROWS,
    N_TEXTS,
    N_TIMES,
    NEXT,
    NO_ROOM,
    NOT_PLAIN,
    PADDING,
    PREVIOUS,
    RIGHT,
    ROWS,
    ROWS_OF_PAIR,
    fill_pair_slots,
    fill_slots,
    is_same,
    pair,
    place_of,
)
from ccmtl_core.kernels.vectors import Pointer, number, pointer

NUMBER = -1
"""What a field holds that is neither ignored nor a text; texts count from 0, and the last one is the time."""
_LF, _CR, _NUL = 10, 13, 0
_FULL, _PIECE_ENDS = 0, 1  # why a pass ends, beside those of texts


@dataclass(frozen=True)
class Fields:
    """What the fields of each row are.

    Parameters
    ----------
    kinds : (F,) int64
        Of each field ``IGNORED``, ``NUMBER``, or the number of its text: the columns of the id in their
        order, then the time.
    decimal : int
        The byte of the decimal sign, 0 where numbers are whole.
    delimiter, quote : int
        Bytes.
    may_be_empty : bool
        Whether a row may have no number.
    """

    kinds: IntArray
    decimal: int
    delimiter: int
    quote: int
    may_be_empty: bool

    @property
    def n_texts(self) -> int:
        """How many fields of a row are texts."""
        return int(self.kinds.max()) + 1


class SeriesReader:
    """Reads pieces of a file in their order, and knows the ids and times that were there."""

    def __init__(self, fields: Fields, sign: str) -> None:
        self._fields, self._sign = fields, sign
        self._state = np.zeros(PREVIOUS + 2 * fields.n_texts, dtype=np.int64)
        self._state[LAST_ID] = -1
        self._slots = np.zeros(1 << 12, dtype=np.int32)  # the number of a text plus 1; half are free
        self._text = np.zeros(1 << 16, dtype=np.uint8)
        self._ends = np.zeros((1 << 11) + 1, dtype=np.int64)
        self._of_text = np.zeros((1 << 11, 5), dtype=np.int64)  # see the places below
        self._pair_slots = np.zeros(1 << 12, dtype=np.int32)
        self._pairs = np.zeros((1 << 11, 4), dtype=np.int64)

    @property
    def n_rows(self) -> int:
        """Rows that were read."""
        return int(self._state[N_ROWS])

    @property
    def n_times(self) -> int:
        """Different times that were read."""
        return int(self._state[N_TIMES])

    @property
    def n_id_changes(self) -> int:
        """Rows with another id than the row before; as many as there are ids if their rows stand together."""
        return int(self._state[N_ID_CHANGES])

    def read(
        self,
        piece: NDArray[np.uint8],
        start: int,
        n: int,
        ids: NDArray[np.int32],
        times: NDArray[np.int32],
        y: FloatArray,
    ) -> tuple[int, int]:
        """Read the rows of a piece into arrays with room for some, and return how many, and where they end.

        Parameters
        ----------
        piece : (n + PADDING or more,) uint8
            The bytes, then zeros.
        start, n : int
            Where rows begin, and where the piece ends.
        ids, times : (m,) int32
            Take the number of each row's id and time.
        y : (m,) float64
            Takes the number of each row.

        Returns
        -------
        n_rows, end : int
            The rest, from ``end`` on, did not fit, or is the beginning of a row.

        Raises
        ------
        NotPlain
            A cell is for other readers.
        """
        fields, row = self._fields, 0
        while True:
            row, start, why = _read(
                piece, start, n, fields.kinds, fields.decimal, fields.delimiter, fields.quote,
                fields.may_be_empty, POWERS, self._state, self._slots, self._text, self._ends, self._of_text,
                self._pair_slots, self._pairs, row, ids, times, y,
            )  # fmt: skip
            if why == NOT_PLAIN and start == 0:  # elsewhere it may be a row that goes on in the next piece
                raise NotPlain
            if why != NO_ROOM:
                return row, start
            self._grow()

    def _grow(self) -> None:
        """Double what is nearly full."""
        n, n_pairs = int(self._state[N_TEXTS]), int(self._state[N_PAIRS])
        if self._ends[n] + MAX_ID_BYTES + PADDING > len(self._text):
            self._text = np.concatenate([self._text, np.zeros_like(self._text)])
        if n == len(self._of_text):
            self._ends = np.concatenate([self._ends, np.zeros(n, dtype=np.int64)])
            self._of_text = np.concatenate([self._of_text, np.zeros_like(self._of_text)])
            self._slots = np.zeros(2 * len(self._slots), dtype=np.int32)
            fill_slots(self._slots, self._text, self._ends, self._of_text, n)
        if n_pairs == len(self._pairs):
            self._pairs = np.concatenate([self._pairs, np.zeros_like(self._pairs)])
            self._pair_slots = np.zeros(2 * len(self._pair_slots), dtype=np.int32)
            fill_pair_slots(self._pair_slots, self._pairs, n_pairs)

    def ids(self) -> tuple[pl.Series, IntArray, IntArray]:
        """Return the ids as they appeared, the numbers that rows have for them, and how many have each."""
        texts, of_text = self._texts()
        if self._fields.n_texts == 2:
            places = np.flatnonzero(of_text[:, KIND] == 0)
            return texts.gather(places), places, of_text[places, ROWS]
        pairs = self._pairs[: int(self._state[N_PAIRS])]
        places, parts = np.flatnonzero(pairs[:, ROWS_OF_PAIR]), self._fields.n_texts - 1
        whole = texts.gather(np.maximum(pairs[:, LEFT], 0))
        for _ in range(parts - 1):
            left = pl.Series(pairs[:, LEFT])
            before = whole.gather(np.maximum(-pairs[:, LEFT] - 1, 0))
            whole = texts.gather(np.maximum(pairs[:, LEFT], 0)).zip_with(left >= 0, before)
            whole = whole + self._sign + texts.gather(pairs[:, RIGHT])
        return whole.gather(places), places, pairs[places, ROWS_OF_PAIR]

    def times(self) -> tuple[pl.Series, IntArray, IntArray, IntArray]:
        """Return the times as :meth:`ids` does the ids, and the first row of each, counted from 0."""
        texts, of_text = self._texts()
        places = np.flatnonzero(of_text[:, KIND] == self._fields.n_texts - 1)
        return texts.gather(places), places, of_text[places, ROWS], of_text[places, FIRST_ROW]

    def _texts(self) -> tuple[pl.Series, IntArray]:
        """All texts, and what is known of each."""
        n = int(self._state[N_TEXTS])
        text, ends = self._text[: self._ends[n]].tobytes(), self._ends[: n + 1].tolist()
        texts = pl.Series([text[start:end].decode() for start, end in pairwise(ends)], dtype=pl.String)
        return texts, self._of_text[:n]


@partial(kernel, fastmath=False)
def _read(
    piece: NDArray[np.uint8],
    start: int,
    n: int,
    kinds: IntArray,
    decimal: int,
    delimiter: int,
    quote: int,
    may_be_empty: bool,
    powers_of_ten: FloatArray,
    state: IntArray,
    slots: NDArray[np.int32],
    text: NDArray[np.uint8],
    ends: IntArray,
    of_text: IntArray,
    pair_slots: NDArray[np.int32],
    pairs: IntArray,
    row: int,
    ids: NDArray[np.int32],
    times: NDArray[np.int32],
    y: FloatArray,
) -> tuple[int, int, int]:
    """Read rows while there is room; return how many there are then, where the next begins, and why."""
    data, stored, powers = pointer(piece), pointer(text), pointer(powers_of_ten)
    n_fields, n_texts, i = len(kinds), (len(state) - PREVIOUS) // 2, start
    found = np.zeros(n_texts, dtype=np.int64)
    while row < len(y):
        if i >= n:
            return row, i, _PIECE_ENDS
        begin, value = i, math.nan
        for field in range(n_fields):
            kind = kinds[field]
            is_quoted = number(data, i) == quote
            i += is_quoted
            if kind >= 0:
                before = state[PREVIOUS + kind]
                at = of_text[before, NEXT] - 1
                end = i
                if at >= 0 and of_text[at, KIND] == kind and (is_quoted or of_text[at, IS_QUOTED] == 0):
                    first = ends[at]
                    length = ends[at + 1] - first
                    if is_same(data, i, stored, first, length):
                        end = i + length
                byte = number(data, end)
                closes = byte == quote if is_quoted else byte in (delimiter, _LF, _CR)
                if end == i or not closes:
                    end = _end_of_text(data, i, delimiter, quote, is_quoted)
                    byte = number(data, end)
                    if byte == _NUL or (byte == quote) != is_quoted:
                        return row, begin, NOT_PLAIN
                    at = place_of(data, i, end - i, kind, delimiter, state, slots, text, ends, of_text)
                    if at < 0:
                        return row, begin, -at
                    of_text[before, NEXT] = at + 1
                i, found[kind], state[PREVIOUS + kind] = end, at, at
            elif kind == NUMBER:
                byte = number(data, i)
                is_end = byte == quote if is_quoted else byte in (delimiter, _LF, _CR)
                if not (may_be_empty and is_end):
                    i, value = number_at(data, i, n, decimal, powers)
                    if i < 0:
                        return row, begin, NOT_PLAIN
            else:
                i = _end_of_text(data, i, delimiter, quote, is_quoted)
                while is_quoted and number(data, i) == quote and number(data, i + 1) == quote:
                    i = _end_of_text(data, i + 2, delimiter, quote, True)
            if is_quoted:
                if number(data, i) != quote:
                    return row, begin, NOT_PLAIN
                i += 1
            if field + 1 < n_fields:
                if number(data, i) != delimiter:
                    return row, begin, NOT_PLAIN
            else:
                i += number(data, i) == _CR
                if number(data, i) != _LF:
                    return row, begin, NOT_PLAIN
            i += 1
        one = found[0]
        for level in range(1, n_texts - 1):
            left = one if level == 1 else -one - 1
            one = pair(left, found[level], PREVIOUS + n_texts + level, state, pair_slots, pairs)
            if one < 0:
                return row, begin, -one
        time = found[n_texts - 1]
        if n_texts == 2:
            of_text[one, ROWS] += 1
        else:
            pairs[one, ROWS_OF_PAIR] += 1
        if of_text[time, ROWS] == 0:
            of_text[time, FIRST_ROW] = state[N_ROWS]
        of_text[time, ROWS] += 1
        state[N_ROWS] += 1
        state[N_ID_CHANGES] += one != state[LAST_ID]
        state[LAST_ID] = one
        ids[row], times[row], y[row] = one, time, value
        row += 1
    return row, i, _FULL


@kernel
def _end_of_text(data: Pointer, i: int, delimiter: int, quote: int, is_quoted: bool) -> int:
    """Return where a field ends, or the byte that may not stand in it."""
    byte = number(data, i)
    while byte not in (quote, _LF, _NUL) and (is_quoted or byte not in (delimiter, _CR)):
        i += 1
        byte = number(data, i)
    return i
