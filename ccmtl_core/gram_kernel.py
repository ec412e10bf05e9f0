"""Grouped rows in, X_tᵀX_t, X_tᵀy_t, y_tᵀy_t and sums added in place: the one pass over the data.

Rows are turned, up to ``CHUNK`` at a time, into columns that stay in the cache; each entry of
[X y]ᵀ[X y] then is a dot product of two contiguous columns. Sums over a chunk are added to sums
of chunks, so that rounding errors of a task with a million rows stay small. One thread, no GIL:
callers spread blocks over cores.
"""

from __future__ import annotations

import numpy as np

from ccmtl_core._types import FloatArray, IntArray
from ccmtl_core.arrays import read_only
from ccmtl_core.compiled import kernel

CHUNK = 128


def accumulate_gram(
    X: FloatArray,
    y: FloatArray,
    order: IntArray,
    offsets: IntArray,
    slot: IntArray,
    gram: FloatArray,
    xty: FloatArray,
    yty: FloatArray,
    x_sum: FloatArray,
    y_sum: FloatArray,
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
    x_sum : (T, P) float64, changed
    y_sum : (T,) float64, changed
    """
    rows = map(read_only, (X, y, order, offsets, slot))  # one combination of types: compiled once
    _accumulate(*rows, gram, xty, yty, x_sum, y_sum)


@kernel
def _accumulate(
    X: FloatArray,
    y: FloatArray,
    order: IntArray,
    offsets: IntArray,
    slot: IntArray,
    gram: FloatArray,
    xty: FloatArray,
    yty: FloatArray,
    x_sum: FloatArray,
    y_sum: FloatArray,
) -> None:
    P = X.shape[1]
    size = (P + 4) // 4 * 4  # whole tiles; the columns beyond y stay zero
    columns = np.zeros((size, CHUNK))
    products = np.zeros((size, size))
    sums = np.zeros(size)
    for s in range(len(slot)):
        if offsets[s] == offsets[s + 1]:
            continue
        products[:] = 0.0
        sums[:] = 0.0
        for first in range(offsets[s], offsets[s + 1], CHUNK):
            m = min(CHUNK, offsets[s + 1] - first)
            load_columns(X, y, order, first, m, columns)
            _add_first_products(columns, P + 1, m, products, sums)
            _add_products(columns, P + 1, m, products)
        t = slot[s]
        for p in range(P):
            for q in range(p):
                gram[t, p, q] += products[p, q]
                gram[t, q, p] += products[p, q]
            gram[t, p, p] += products[p, p]
            xty[t, p] += products[P, p]
            x_sum[t, p] += sums[p]
        yty[t] += products[P, P]
        y_sum[t] += sums[P]


@kernel
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


@kernel
def _add_first_products(
    columns: FloatArray, used: int, m: int, products: FloatArray, sums: FloatArray
) -> None:
    """Add the dot products of all columns with the first four, and, the columns being at hand, their sums."""
    for p in range(0, used, 2):
        a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = sa = sb = 0.0
        for i in range(m):
            a, b = columns[p, i], columns[p + 1, i]
            c0, c1, c2, c3 = columns[0, i], columns[1, i], columns[2, i], columns[3, i]
            sa += a
            sb += b
            a0 += a * c0
            a1 += a * c1
            a2 += a * c2
            a3 += a * c3
            b0 += b * c0
            b1 += b * c1
            b2 += b * c2
            b3 += b * c3
        sums[p] += sa
        sums[p + 1] += sb
        products[p, 0] += a0
        products[p, 1] += a1
        products[p, 2] += a2
        products[p, 3] += a3
        products[p + 1, 0] += b0
        products[p + 1, 1] += b1
        products[p + 1, 2] += b2
        products[p + 1, 3] += b3


@kernel
def _add_products(columns: FloatArray, used: int, m: int, products: FloatArray) -> None:
    """Add the other dot products of pairs of columns, lower triangle, in tiles of two by four."""
    for p in range(4, used, 2):
        for q in range(4, p + 1, 4):
            a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = 0.0
            for i in range(m):
                a, b = columns[p, i], columns[p + 1, i]
                c0, c1, c2, c3 = columns[q, i], columns[q + 1, i], columns[q + 2, i], columns[q + 3, i]
                a0 += a * c0
                a1 += a * c1
                a2 += a * c2
                a3 += a * c3
                b0 += b * c0
                b1 += b * c1
                b2 += b * c2
                b3 += b * c3
            products[p, q] += a0
            products[p, q + 1] += a1
            products[p, q + 2] += a2
            products[p, q + 3] += a3
            products[p + 1, q] += b0
            products[p + 1, q + 1] += b1
            products[p + 1, q + 2] += b2
            products[p + 1, q + 3] += b3
