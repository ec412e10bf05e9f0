"""Measure how many bytes per second a plain copy moves: the limit of loops that move data."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.stopwatch import best_of
from ccmtl_core.base.types import FloatArray
from ccmtl_core.kernels.compiled import kernel

SIZES = {"16 kB": 1 << 14, "256 kB": 1 << 18, "8 MB": 1 << 23, "512 MB": 1 << 29}
"""Together, both arrays of a copy: in the first, second and third cache of usual machines, and in memory."""
_BYTES_TO_MOVE = 1 << 30
_REPEATS = 5


def copy_bandwidth(size: int) -> float:
    """Return the bytes read and written per second while ``size / 2`` bytes are copied to as many others."""
    source, target = np.ones(size // 16), np.zeros(size // 16)
    times = max(1, _BYTES_TO_MOVE // size)
    _copy(source, target, 1)
    _, seconds = best_of(_REPEATS, partial(_copy, source, target, times))
    return size * times / seconds.cpu


@kernel
def _copy(source: FloatArray, target: FloatArray, times: int) -> None:
    """Copy, adding the number of the round: else all rounds but the last could be left out."""
    for n in range(times):
        for i in range(source.size):
            target[i] = source[i] + n
