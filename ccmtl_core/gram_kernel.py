"""Grouped rows in, X_tᵀX_t, X_tᵀy_t and y_tᵀy_t added in place: the one pass over the data.

Rows are turned, up to ``CHUNK`` at a time, into columns that stay in the cache; each entry of
[X y]ᵀ[X y] then is a dot product of two contiguous columns. Sums over a chunk are added to sums
of chunks, so that rounding errors of a task with a million rows stay small. One thread, no GIL:
callers spread blocks over cores.
"""

from __future__ import annotations

import numba
import numpy as np

from ccmtl_core._types import FloatArray, IntArray

CHUNK = 128

REASSOCIATE = {"reassoc", "contract", "nsz"}
"""Sums may be taken in vectors; NaN and infinity keep their meaning."""


@numba.njit(cache=True, nogil=True)
def accumulate_gram(
    X: FloatArray,
    y: FloatArray,
    order: IntArray,
    offsets: IntArray,
    slot: IntArray,
    gram: FloatArray,
    xty: FloatArray,
    yty: FloatArray,
) -> None:
    """Add the rows of each group to the statistics of its slot.

    Parameters
    ----------
    X : (n, P) float64
        Features.
    y : (n,) float64
        Targets.
    order : (n,) int64, or (0,)
        Row numbers, group after group; empty where the rows themselves are grouped.
    offsets : (S + 1,) int64
        Bounds of each group in ``order``.
    slot : (S,) int64
        Where in the statistics each group goes.
    gram : (T, P, P) float64, changed
    xty : (T, P) float64, changed
    yty : (T,) float64, changed
    """
    P = X.shape[1]
    size = P + 1 + (P + 1) % 2  # even, for the tiles of two by two; the odd column stays zero
    columns = np.zeros((size, CHUNK))
    products = np.zeros((size, size))
    for s in range(len(slot)):
        if offsets[s] == offsets[s + 1]:
            continue
        products[:] = 0.0
        for first in range(offsets[s], offsets[s + 1], CHUNK):
            m = min(CHUNK, offsets[s + 1] - first)
            load_columns(X, y, order, first, m, columns)
            _add_products(columns, m, products)
        t = slot[s]
        for p in range(P):
            for q in range(p):
                gram[t, p, q] += products[p, q]
                gram[t, q, p] += products[p, q]
            gram[t, p, p] += products[p, p]
            xty[t, p] += products[P, p]
        yty[t] += products[P, P]


@numba.njit(cache=True, nogil=True)
def load_columns(
    X: FloatArray, y: FloatArray, order: IntArray, first: int, m: int, columns: FloatArray
) -> None:
    """Copy m rows of [X y], from position ``first`` of the order on, into ``columns[:, :m]``."""
    P = X.shape[1]
    for i in range(m):
        row = order[first + i] if len(order) else first + i
        for p in range(P):
            columns[p, i] = X[row, p]
        columns[P, i] = y[row]


@numba.njit(cache=True, nogil=True, fastmath=REASSOCIATE)
def _add_products(columns: FloatArray, m: int, products: FloatArray) -> None:
    """Add the dot products of all pairs of columns, lower triangle, two by two of them at a time."""
    for p in range(0, len(columns), 2):
        for q in range(0, p + 1, 2):
            a = b = c = d = 0.0
            for i in range(m):
                a += columns[p, i] * columns[q, i]
                b += columns[p, i] * columns[q + 1, i]
                c += columns[p + 1, i] * columns[q, i]
                d += columns[p + 1, i] * columns[q + 1, i]
            products[p, q] += a
            products[p, q + 1] += b
            products[p + 1, q] += c
            products[p + 1, q + 1] += d
