"""Update the triangular factor of [X_t y_t] or [X_t y_t 1] with grouped rows, in place.

Householder reflections of a triangle with a rectangle below it (Elmroth and Gustavson, IBM J.
Res. Dev. 2000; LAPACK's ``tpqrt``): rows arrive in any pieces, and the triangle of the whole is
found without ever holding more than ``CHUNK`` rows. One thread, no GIL.
"""

from __future__ import annotations

import numpy as np

from ccmtl_core.base.arrays import read_only
from ccmtl_core.base.types import FloatArray, IntArray
from ccmtl_core.kernels.compiled import kernel

CHUNK = 128

_TINY = 1e-250  # a sum of squares whose own square root is far above the smallest number


def accumulate_factor(
    X: FloatArray, y: FloatArray, order: IntArray, offsets: IntArray, slot: IntArray, factor: FloatArray
) -> None:
    """Add the rows of each group to the factor of its slot.

    Parameters
    ----------
    X, y, order, offsets, slot
        As in ``accumulate_gram``.
    factor : (T, P + 1, P + 1) or (T, P + 2, P + 2) float64, changed
        Upper triangular, of [X y] or of [X y 1].
    """
    rows = map(read_only, (X, y, order, offsets, slot))  # one combination of types: compiled once
    _accumulate(*rows, factor)


@kernel
def _accumulate(
    X: FloatArray, y: FloatArray, order: IntArray, offsets: IntArray, slot: IntArray, factor: FloatArray
) -> None:
    Q = factor.shape[1]
    columns = np.zeros((Q, CHUNK))
    for s in range(len(slot)):
        for first in range(offsets[s], offsets[s + 1], CHUNK):
            m = min(CHUNK, offsets[s + 1] - first)
            _load_columns(X, y, order, first, m, columns)
            columns[X.shape[1] + 1 :, :m] = 1.0
            _fold_in(columns, m, factor[slot[s]])


@kernel
def _load_columns(
    X: FloatArray, y: FloatArray, order: IntArray, first: int, m: int, columns: FloatArray
) -> None:
    """Copy m rows of [X y], from position ``first`` of the order on, into ``columns[:, :m]``."""
    P = X.shape[1]
    for i in range(m):
        row = order[first + i] if len(order) else first + i
        for p in range(P):
            columns[p, i] = X[row, p]
        columns[P, i] = y[row]


@kernel
def _fold_in(columns: FloatArray, m: int, R: FloatArray) -> None:
    """Triangle R of [R; columns[:, :m]ᵀ]; the columns are used up."""
    for k in range(len(R)):
        below = 0.0
        for i in range(m):
            below += columns[k, i] * columns[k, i]
        if below == 0.0:
            continue
        diagonal, size = R[k, k], 1.0
        if below < _TINY:  # what rounding leaves of rows that are used up: its square would lose its digits
            size = max(abs(diagonal), np.abs(columns[k, :m]).max())
            diagonal /= size
            below = 0.0
            for i in range(m):
                columns[k, i] /= size
                below += columns[k, i] * columns[k, i]
        norm = np.sqrt(diagonal * diagonal + below)
        # v = (head, columns[k]) reflects (diagonal, columns[k]) to (∓norm, 0); the sign avoids cancellation
        head = diagonal + norm if diagonal >= 0.0 else diagonal - norm
        R[k, k] = -norm * size if diagonal >= 0.0 else norm * size
        scale = 2.0 / (head * head + below)
        for j in range(k + 1, len(R)):
            projection = head * R[k, j]
            for i in range(m):
                projection += columns[k, i] * columns[j, i]
            projection *= scale
            R[k, j] -= projection * head
            for i in range(m):
                columns[j, i] -= projection * columns[k, i]
