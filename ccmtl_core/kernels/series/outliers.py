"""Find values far from the others of their series."""

# mypy: no-warn-return-any

from __future__ import annotations

from functools import partial

import numpy as np

from ccmtl_core.base.arrays import read_only
from ccmtl_core.base.types import BoolArray, FloatArray, IntArray
from ccmtl_core.kernels.compiled import kernel

_NORMAL = 1.4826
"""Standard deviation of a normal distribution, over its median distance from the median."""
_ROUNDING = 1 + 1e-12


def far_from_median(value: FloatArray, offsets: IntArray, fewest: int, spreads: float) -> BoolArray:
    """Return which values are far from the median of their series, of its values that are not zero.

    Parameters
    ----------
    value : (m,) float64
    offsets : (T + 1,) int64
        Where each series begins, and the end.
    fewest : int
        Values other than zero that a series needs.
    spreads : float
        A value is far if its distance is more than so many spreads, by the median distance as if it were of a
        normal distribution, and more than the median itself.

    Returns
    -------
    (m,) bool
    """
    is_far = np.zeros(len(value), dtype=np.bool_)
    room = np.empty(np.diff(offsets).max(initial=0))
    _mark(read_only(np.ascontiguousarray(value)), read_only(offsets), fewest, spreads, room, is_far)
    return is_far


@partial(kernel, fastmath=False)
def _mark(
    value: FloatArray, offsets: IntArray, fewest: int, spreads: float, room: FloatArray, is_far: BoolArray
) -> None:
    """Mark the values that are far; ``room`` takes those of a series."""
    for series in range(len(offsets) - 1):
        begin, end, n = offsets[series], offsets[series + 1], 0
        for i in range(begin, end):
            room[n] = value[i]
            n += value[i] != 0
        if n < fewest:
            continue
        middle = _median(room[:n])
        farthest = 0.0
        for i in range(n):
            room[i] = abs(room[i] - middle)
            farthest = max(farthest, room[i])
        if not _is_near(room[:n], farthest / (spreads * _NORMAL) * _ROUNDING):
            continue
        spread = _NORMAL * _median(room[:n])
        if spread > 0:
            for i in range(begin, end):
                away = abs(value[i] - middle)
                is_far[i] = value[i] != 0 and away > spreads * spread and away > abs(middle)


@partial(kernel, fastmath=False)
def _is_near(away: FloatArray, distance: float) -> bool:
    """Whether the median may be below ``distance``, so that the farthest value may be an outlier."""
    n_near = 0
    for i in range(len(away)):
        n_near += away[i] <= distance
    return n_near >= len(away) // 2


@partial(kernel, fastmath=False)
def _median(values: FloatArray) -> float:
    """The median of some values, which change their order."""
    left, right, k = 0, len(values) - 1, len(values) // 2
    while left < right:  # Hoare's selection: what is left of the place k is no more, what is right no less
        pivot, i, j = values[(left + right) // 2], left, right
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if k <= j:
            right = j
        elif k >= i:
            left = i
        else:
            break
    if len(values) % 2:
        return values[k]
    below = values[0]
    for i in range(1, k):
        below = max(below, values[i])
    return (below + values[k]) / 2
