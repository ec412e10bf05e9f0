"""Number the different texts of a file, and pairs of texts, as they appear.

What is known of them lies in arrays of the reader of rows, which makes them longer where they are full.
"""

# mypy: no-warn-return-any

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numpy.typing import NDArray

from ccmtl_core.base.types import IntArray
from ccmtl_core.kernels.compiled import kernel
from ccmtl_core.kernels.csv_rows import MAX_ID_BYTES
from ccmtl_core.kernels.vectors import Pointer, instruction, number, pointer

PADDING = 16
"""Zeros that must follow the bytes of a piece."""
NO_ROOM, NOT_PLAIN = 2, 3
"""Why a text or a pair has no number."""
KIND, NEXT, ROWS, FIRST_ROW, IS_QUOTED = range(5)
"""What is known of a text: its column, the number of what follows plus 1, how many rows have it, the first of
them, and whether it must be quoted."""
LEFT, RIGHT, NEXT_PAIR, ROWS_OF_PAIR = range(4)
"""What is known of a pair; the left one is a text, or -1 minus a pair."""
N_TEXTS, N_TIMES, N_PAIRS, LAST_ID, N_ID_CHANGES, N_ROWS, PREVIOUS = range(7)
"""Places in the state of a reader; from the last one on, what stood in the row before."""
PROBES = 1000
"""Texts that were made to collide are for other readers."""

_LF, _CR = 10, 13
_WORD = 8
_MIXER = 0x1E3779B97F4A7C15


@instruction
def _word(typing: Any, pointer: Any, i: Any) -> Any:
    """The eight bytes from position i on."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        at = builder.bitcast(builder.gep(arguments[0], [arguments[1]]), ir.IntType(64).as_pointer())
        return builder.load(at, align=1)

    return types.int64(pointer, types.int64), generate


@kernel
def is_same(data: Pointer, i: int, text: Pointer, first: int, length: int) -> bool:
    """Return whether the same bytes stand at i in the data as in a text from the first one on."""
    k = 0
    while k + _WORD <= length:
        if _word(data, i + k) != _word(text, first + k):
            return False
        k += _WORD
    rest = _WORD * (length - k)
    mask = (1 << rest) - 1
    return (_word(data, i + k) ^ _word(text, first + k)) & mask == 0


@kernel
def _slot_of(data: Pointer, i: int, length: int, kind: int, n_slots: int) -> int:
    mixed = (kind + 1) * _MIXER
    for k in range(0, length, _WORD):
        word = _word(data, i + k)
        if length - k < _WORD:
            word &= (1 << _WORD * (length - k)) - 1
        mixed = (mixed ^ word ^ mixed >> 29) * _MIXER
    return (mixed ^ mixed >> 32) & n_slots - 1


@kernel
def place_of(
    data: Pointer,
    i: int,
    length: int,
    kind: int,
    delimiter: int,
    state: IntArray,
    slots: NDArray[np.int32],
    text: NDArray[np.uint8],
    ends: IntArray,
    of_text: IntArray,
) -> int:
    """Return the place of a text, which may be new, or why there is none with its sign turned."""
    if not 0 < length <= MAX_ID_BYTES:
        return -NOT_PLAIN
    stored, n_texts = pointer(text), state[N_TEXTS]
    slot, n_probes = _slot_of(data, i, length, kind, len(slots)), 0
    at = slots[slot] - 1
    while at >= 0 and not (
        of_text[at, KIND] == kind
        and ends[at + 1] - ends[at] == length
        and is_same(data, i, stored, ends[at], length)
    ):
        slot, n_probes = (slot + 1) & (len(slots) - 1), n_probes + 1
        if n_probes == PROBES:
            return -NOT_PLAIN
        at = slots[slot] - 1
    if at < 0:
        if n_texts == len(of_text) or ends[n_texts] + length + PADDING > len(text):
            return -NO_ROOM
        at = n_texts
        for k in range(i, i + length):
            byte = number(data, k)
            text[ends[at] + k - i] = byte
            of_text[at, IS_QUOTED] |= byte in (delimiter, _CR)
        ends[at + 1], of_text[at, KIND] = ends[at] + length, kind
        slots[slot], state[N_TEXTS] = at + 1, at + 1
        state[N_TIMES] += kind + 1 == (len(state) - PREVIOUS) // 2
    return at


@kernel
def pair(
    left: int, right: int, previous: int, state: IntArray, slots: NDArray[np.int32], pairs: IntArray
) -> int:
    """Return the place of a pair, which may be new, or why there is none with its sign turned."""
    before = state[previous]
    at = pairs[before, NEXT_PAIR] - 1
    if at < 0 or pairs[at, LEFT] != left or pairs[at, RIGHT] != right:
        slot, n_probes = _pair_slot(left, right, len(slots)), 0
        at = slots[slot] - 1
        while at >= 0 and (pairs[at, LEFT] != left or pairs[at, RIGHT] != right):
            slot, n_probes = (slot + 1) & (len(slots) - 1), n_probes + 1
            if n_probes == PROBES:
                return -NOT_PLAIN
            at = slots[slot] - 1
        if at < 0:
            at = state[N_PAIRS]
            if at == len(pairs):
                return -NO_ROOM
            pairs[at, LEFT], pairs[at, RIGHT] = left, right
            slots[slot], state[N_PAIRS] = at + 1, at + 1
        pairs[before, NEXT_PAIR] = at + 1
    state[previous] = at
    return at


@kernel
def _pair_slot(left: int, right: int, n_slots: int) -> int:
    mixed = (left * _MIXER ^ right) * _MIXER
    return (mixed ^ mixed >> 29 ^ mixed >> 47) & n_slots - 1


@kernel
def fill_slots(
    slots: NDArray[np.int32], text: NDArray[np.uint8], ends: IntArray, of_text: IntArray, n: int
) -> None:
    """Put n texts into empty slots."""
    stored = pointer(text)
    for at in range(n):
        slot = _slot_of(stored, ends[at], ends[at + 1] - ends[at], of_text[at, KIND], len(slots))
        while slots[slot] != 0:
            slot = (slot + 1) & (len(slots) - 1)
        slots[slot] = at + 1


@kernel
def fill_pair_slots(slots: NDArray[np.int32], pairs: IntArray, n: int) -> None:
    """Put n pairs into empty slots."""
    for at in range(n):
        slot = _pair_slot(pairs[at, LEFT], pairs[at, RIGHT], len(slots))
        while slots[slot] != 0:
            slot = (slot + 1) & (len(slots) - 1)
        slots[slot] = at + 1
