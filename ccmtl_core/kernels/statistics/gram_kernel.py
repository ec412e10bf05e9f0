"""The one pass over the data: add up X_tᵀX_t, X_tᵀy_t, y_tᵀy_t and sums, task by task.

All of them are entries of [X y 1]ᵀ[X y 1]. Its columns are cut into blocks of four, a vector each: features
in their order, and last y, 1 and the last two features. No vector reaches beyond its row, for which blocks
may share features; products of those are computed twice and read once. The products of two or three blocks
stay in registers while ``ROWS`` rows pass by, and are added up in the cache over ``PIECE`` rows; pieces are
added in pairs, pairs in pairs, and so on, so that rounding errors stay small even where all rows are equal
and all errors have one sign. One thread, no GIL: callers spread blocks over cores.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ccmtl_core.base.arrays import read_only
from ccmtl_core.base.types import FloatArray, IntArray
from ccmtl_core.kernels.compiled import kernel
from ccmtl_core.kernels.statistics.gram_blocks import ROWS, Rows, Target, add_rows
from ccmtl_core.kernels.statistics.gram_vectors import LANES
from ccmtl_core.kernels.vectors import pointer

PIECE = 16 * ROWS
CACHED = 2048
"""Numbers of X that all pairs of blocks pass over before the next rows are read."""
SLACK = 1e-9
"""By how much, relatively, rounding may have moved sums beyond what rows can have."""
SMALL = 1e-280


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
) -> bool:
    """Add the rows of each group to the statistics of its slot; return whether their sums are beyond doubt.

    Doubtful are those in which squares have, or may have, overflowed or underflowed.

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

    Returns
    -------
    bool
        Whether no square has overflowed or underflowed.
    """
    P = X.shape[1]
    starts, groups, places = _layout(P)
    in_place = np.arange(max(ROWS, CACHED // P // ROWS * ROWS))
    n_levels = int(np.diff(offsets).max(initial=0) // PIECE).bit_length()
    products = np.empty((1 + n_levels, (LANES * len(starts)) ** 2))
    arrays = X.reshape(-1), y, order, offsets, slot, in_place, starts, groups, places
    # contiguous, as pointers know no strides; read-only, so that there is one combination of types to compile
    given = map(read_only, map(np.ascontiguousarray, arrays))
    return bool(_accumulate(*given, products, gram, xty, yty, x_sum, y_sum))


def _layout(P: int) -> tuple[IntArray, IntArray, NDArray[np.uint64]]:
    """How the columns of [X y 1] are cut.

    Returns
    -------
    starts : (B,) int64
        Where in a row each block starts. A row shorter than a block is one, with y, and the ones are another.
    groups : (G + 1,) int64
        Bounds of the groups, of two or three blocks.
    places : (P + 2, P + 2) uint64
        Where the products hold that of each pair of x_1, …, x_P, y, 1. (Unsigned: compiled code then need not
        count from the end.)
    """
    p = np.arange(P)
    if P < LANES:
        starts, column = np.zeros(2, dtype=np.int64), np.array([*p, LANES - 1, LANES])
    else:
        starts = np.minimum(np.arange(0, P + 2, LANES), P - LANES)
        last = LANES * (len(starts) - 1)
        column = np.array([*(p + LANES * (p // LANES) - starts[p // LANES]), last, last + 1])
    n_groups = -(-len(starts) // 3)
    groups = len(starts) * np.arange(n_groups + 1) // n_groups
    places = np.minimum.outer(column, column) * LANES * len(starts) + np.maximum.outer(column, column)
    return starts, groups, places.astype(np.uint64)


@kernel
def _accumulate(
    X: FloatArray,
    y: FloatArray,
    order: IntArray,
    offsets: IntArray,
    slot: IntArray,
    in_place: IntArray,
    starts: IntArray,
    groups: IntArray,
    places: NDArray[np.uint64],
    products: FloatArray,
    gram: FloatArray,
    xty: FloatArray,
    yty: FloatArray,
    x_sum: FloatArray,
    y_sum: FloatArray,
) -> bool:
    beyond_doubt = True
    P, width = xty.shape[1], LANES * len(starts)
    ordered = len(order) > 0
    row_of = pointer(order) if ordered else pointer(in_place)
    for s in range(len(slot)):
        t, start, stop = slot[s], offsets[s], offsets[s + 1]
        for first in range(start, stop, PIECE):
            i, end = first, min(first + PIECE, stop)
            while i < end:
                m = min(len(in_place), end - i)
                at, shift = (i, 0) if ordered else (0, i)
                rows = Rows(pointer(X), pointer(y), P, row_of, at, at + m, shift)
                target = Target(pointer(products), 0, width, i == first)
                add_rows(rows, pointer(starts), pointer(groups), len(groups) - 1, target)
                i += m
            if stop - start > PIECE:
                _add_earlier_pieces(products, (first - start) // PIECE, end == stop)
        if start < stop:
            beyond_doubt &= _is_plausible(products, places, stop - start)
            _add_to_slot(products, places, t, gram, xty, yty, x_sum, y_sum)
    return beyond_doubt


@kernel
def _add_earlier_pieces(products: FloatArray, done: int, last: bool) -> None:
    """Add the sums of earlier pieces to that of this one: those of as many pieces, or to the last one all.

    As in counting: row 1 + b keeps the sum of 2ᵇ pieces where bit b of the number of pieces done is set.
    """
    level = 0
    while done >> level & 1 or (last and done >> level > 0):
        level += 1
        if done >> (level - 1) & 1:
            for i in range(products.shape[1]):
                products[0, i] += products[level, i]
    if not last:
        for i in range(products.shape[1]):
            products[1 + level, i] = products[0, i]


@kernel
def _add_to_slot(
    products: FloatArray,
    places: NDArray[np.uint64],
    t: int,
    gram: FloatArray,
    xty: FloatArray,
    yty: FloatArray,
    x_sum: FloatArray,
    y_sum: FloatArray,
) -> None:
    """Add the sums in row 0 to those of a task."""
    P = xty.shape[1]
    for p in range(P):
        for q in range(P):
            gram[t, p, q] += products[0, places[p, q]]
        xty[t, p] += products[0, places[p, P]]
        x_sum[t, p] += products[0, places[p, P + 1]]
    yty[t] += products[0, places[P, P]]
    y_sum[t] += products[0, places[P, P + 1]]


@kernel
def _is_plausible(products: FloatArray, places: NDArray[np.uint64], n: int) -> bool:
    """Whether squares are finite, so that products are, and as large as sums of n numbers make them."""
    P, plausible = len(places) - 1, True
    for p in range(P):
        square, total = products[0, places[p, p]], products[0, places[p, P]]
        plausible &= square < np.inf and total * total <= (1.0 + SLACK) * n * square
        plausible &= square > SMALL or total == 0.0
    return plausible
