"""Inverses of many wide symmetric positive definite blocks: the sweep operator, four rows at a time.

Sweeping all rows of A leaves −A⁻¹ (Goodnight, The American Statistician 33, 1979). What is between is
symmetric as well, so that its upper triangle will do; a block stays in the first-level cache.
"""

from __future__ import annotations

import numpy as np

from ccmtl_core.base.arrays import read_only
from ccmtl_core.base.types import FloatArray, IntArray
from ccmtl_core.kernels.cholesky import factorise, invert_factor
from ccmtl_core.kernels.compiled import inlined, kernel
from ccmtl_core.kernels.vectors import ANY, Lanes, load, pointer, store

_EIGHT: Lanes = (0,) * 8
_SWEPT = 4  # rows at a time; a block is filled up to a multiple of eight by the identity
_ROUNDING = 1e-15  # of the trace: smaller pivots are lifted to it


def inverses(A: FloatArray, shift: float) -> tuple[FloatArray, FloatArray]:
    """(A_t + shift I)⁻¹ of each block, (T, P, P), and the logarithms (T,) of the determinants.

    Examples
    --------
    >>> inverse, log_determinant = inverses(np.array([[[2.0, 1.0], [1.0, 2.0]]]), 1.0)
    >>> inverse.round(3).tolist(), np.exp(log_determinant).round(3).tolist()
    ([[[0.375, -0.125], [-0.125, 0.375]]], [8.0])
    """
    inverse = np.empty(A.shape)
    return inverse, invert_wide(A, np.arange(len(A)), np.full(len(A), shift), inverse)


def invert_wide(A: FloatArray, chosen: IntArray, shift: FloatArray, inverse: FloatArray) -> FloatArray:
    """Fill in the inverses of the chosen blocks A_t + shift_t I; return the logarithms of all determinants.

    Of A_t only the upper triangle is read. Inverses are symmetric to the last bit, and may be of single
    precision. Where rounding leaves less than a positive pivot, it is lifted to the rounding level.
    """
    log_determinant = np.zeros(len(A))
    _invert(read_only(A), chosen, shift, inverse, log_determinant)
    return log_determinant


@kernel
def _invert(
    A: FloatArray, chosen: IntArray, shift: FloatArray, inverse: FloatArray, log_determinant: FloatArray
) -> None:
    P = A.shape[1]
    size = (P + 7) // 8 * 8
    work, own, ratio = np.empty((size, size)), np.empty((_SWEPT, size)), np.empty((_SWEPT, size))
    corner, L = np.empty((_SWEPT, _SWEPT)), np.empty((_SWEPT, _SWEPT))
    for t in chosen:
        top = 0.0
        for a in range(P):
            for b in range(P):
                work[a, b] = A[t, a, b]
            work[a, P:] = 0.0
            work[a, a] += shift[t]
            top += work[a, a]
        floor = _ROUNDING * top if top > 0.0 else 1.0
        for a in range(P):
            work[a, a] += floor
        for a in range(P, size):
            work[a] = 0.0
            work[a, a] = 1.0
        log_determinant[t] = 0.0
        for k in range(0, P, _SWEPT):
            for a in range(_SWEPT):
                for i in range(k + a):
                    own[a, i] = work[i, k + a]
                for i in range(k + a, size):
                    own[a, i] = work[k + a, i]
            for a in range(_SWEPT):
                for b in range(a + 1):
                    corner[a, b] = own[a, k + b]
            factorise(corner, 0.0, L, 0.0, floor, False, ANY)
            for a in range(_SWEPT):
                log_determinant[t] -= 2.0 * np.log(L[a, a])
            _take_out(work, L, own, ratio)
            invert_factor(L, corner, ANY)
            _exchange(work, k, corner, ratio)
        for a in range(P):
            for b in range(a):
                inverse[t, a, b] = -work[b, a]
            for b in range(a, P):
                inverse[t, a, b] = -work[a, b]


@inlined
def _take_out(work: FloatArray, L: FloatArray, own: FloatArray, ratio: FloatArray) -> None:
    """Take the rows ``own`` out of all others, as Cholesky's method does; fill in their ratio to the corner.

    L holds the factor of the corner, with 1 / L_aa on its diagonal.
    """
    size = work.shape[1]
    rows, mine, divided = pointer(work), pointer(own), pointer(ratio)
    for c in range(0, size, 8):
        y0 = L[0, 0] * load(mine, c, _EIGHT)
        y1 = L[1, 1] * (load(mine, size + c, _EIGHT) - L[1, 0] * y0)
        y2 = L[2, 2] * (load(mine, 2 * size + c, _EIGHT) - L[2, 0] * y0 - L[2, 1] * y1)
        y3 = L[3, 3] * (load(mine, 3 * size + c, _EIGHT) - L[3, 0] * y0 - L[3, 1] * y1 - L[3, 2] * y2)
        store(y0, mine, c)
        store(y1, mine, size + c)
        store(y2, mine, 2 * size + c)
        store(y3, mine, 3 * size + c)
        y3 = L[3, 3] * y3
        y2 = L[2, 2] * (y2 - L[3, 2] * y3)
        y1 = L[1, 1] * (y1 - L[2, 1] * y2 - L[3, 1] * y3)
        store(L[0, 0] * (y0 - L[1, 0] * y1 - L[2, 0] * y2 - L[3, 0] * y3), divided, c)
        store(y1, divided, size + c)
        store(y2, divided, 2 * size + c)
        store(y3, divided, 3 * size + c)
    for i in range(size):
        f0, f1, f2, f3 = own[0, i], own[1, i], own[2, i], own[3, i]
        for c in range(i // 8 * 8, size, 8):
            s = load(rows, i * size + c, _EIGHT)
            s -= f0 * load(mine, c, _EIGHT) + f1 * load(mine, size + c, _EIGHT)
            s -= f2 * load(mine, 2 * size + c, _EIGHT) + f3 * load(mine, 3 * size + c, _EIGHT)
            store(s, rows, i * size + c)


@inlined
def _exchange(work: FloatArray, first: int, corner: FloatArray, ratio: FloatArray) -> None:
    """Put the ratio in place of the rows from the first on, with the inverse of their corner."""
    for a in range(_SWEPT):
        for i in range(first):
            work[i, first + a] = ratio[a, i]
        for i in range(first + _SWEPT, len(work)):
            work[first + a, i] = ratio[a, i]
        for b in range(a, _SWEPT):
            work[first + a, first + b] = -corner[a, b]
