"""Grouped rows in, X_tᵀX_t, X_tᵀy_t, y_tᵀy_t and sums added in place: the one pass over the data.

All of them are entries of [X y 1]ᵀ[X y 1]. Its columns are cut into blocks of four, a vector each: features
in their order, and last y, 1 and the last two features. No vector reaches beyond its row, for which blocks
may share features; products of those are computed twice and read once. The products of two or three blocks
stay in registers while ``ROWS`` rows pass by, and are added up in the cache over ``PIECE`` rows: sums of sums
of sums, so that rounding errors stay small even where all rows are equal and all errors have one sign. One
thread, no GIL: callers spread blocks over cores.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ccmtl_core._types import FloatArray, IntArray
from ccmtl_core.arrays import read_only
from ccmtl_core.compiled import kernel
from ccmtl_core.vectors import (
    LANES,
    Pointer,
    add_products,
    add_to,
    load,
    no_products,
    number,
    pointer,
    replace_two,
    vector,
)

ROWS = 12
PIECE = 16 * ROWS
CACHED = 2048
"""Numbers of X that all pairs of blocks pass over before the next rows are read."""


class _Rows(NamedTuple):
    """Rows ``order[first:stop] + shift`` of [X y]."""

    X: Pointer
    y: Pointer
    width: int
    order: Pointer
    first: int
    stop: int
    shift: int


class _Target(NamedTuple):
    """Where products are added, or where it is fresh written: a square of ``width``, from ``place`` on."""

    products: Pointer
    place: int
    width: int
    fresh: bool


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
    P = X.shape[1]
    starts, groups, places = _layout(P)
    in_place = np.arange(max(ROWS, CACHED // P // ROWS * ROWS))
    products = np.empty((LANES * len(starts)) ** 2)
    arrays = X.reshape(-1), y, order, offsets, slot, in_place, starts, groups, places
    # contiguous, as pointers know no strides; read-only, so that there is one combination of types to compile
    given = map(read_only, map(np.ascontiguousarray, arrays))
    _accumulate(*given, products, gram, xty, yty, x_sum, y_sum)


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
) -> None:
    P, width = xty.shape[1], LANES * len(starts)
    ordered = len(order) > 0
    row_of = pointer(order) if ordered else pointer(in_place)
    for s in range(len(slot)):
        t = slot[s]
        for first in range(offsets[s], offsets[s + 1], PIECE):
            i, end = first, min(first + PIECE, offsets[s + 1])
            while i < end:
                m = min(len(in_place), end - i)
                at, shift = (i, 0) if ordered else (0, i)
                rows = _Rows(pointer(X), pointer(y), P, row_of, at, at + m, shift)
                target = _Target(pointer(products), 0, width, i == first)
                _add_rows(rows, pointer(starts), pointer(groups), len(groups) - 1, target)
                i += m
            for p in range(P):
                for q in range(P):
                    gram[t, p, q] += products[places[p, q]]
                xty[t, p] += products[places[p, P]]
                x_sum[t, p] += products[places[p, P + 1]]
            yty[t] += products[places[P, P]]
            y_sum[t] += products[places[P, P + 1]]


@kernel
def _add_rows(rows: _Rows, starts: Pointer, groups: Pointer, n_groups: int, target: _Target) -> None:
    """Add the products of each block with itself and with those after it."""
    if rows.width < LANES:
        _add_short_rows(rows, target)
        return
    products, _, width, fresh = target
    n_blocks = number(groups, n_groups)
    for g in range(n_groups):
        b, end = number(groups, g), number(groups, g + 1)
        first, second, third = number(starts, b), number(starts, b + 1), number(starts, end - 1)
        of_group = _Target(products, LANES * b * (width + 1), width, fresh)
        if end - b == 3:
            _add_three_blocks(rows, (first, second, third), end == n_blocks, of_group)
        else:
            _add_two_blocks(rows, (first, second), end == n_blocks, of_group)
        for h in range(g + 1, n_groups):
            c, after = number(groups, h), number(groups, h + 1)
            first, second, third = number(starts, c), number(starts, c + 1), number(starts, after - 1)
            for p in range(b, end):
                of_pairs = _Target(products, LANES * (p * width + c), width, fresh)
                start = number(starts, p)
                if after - c == 3:
                    _add_block_by_three(rows, start, (first, second, third), after == n_blocks, of_pairs)
                else:
                    _add_block_by_two(rows, start, (first, second), after == n_blocks, of_pairs)


@kernel
def _add_three_blocks(rows: _Rows, starts: tuple[int, int, int], last: bool, target: _Target) -> None:
    X, y, width, order, first, stop, shift = rows
    products, place, size, fresh = target
    for i in range(first, stop, ROWS):
        a, b, c = no_products(starts), no_products(starts[1:]), no_products(starts[2:])
        for j in range(i, min(i + ROWS, stop)):
            row = number(order, j) + shift
            at = row * width
            u, v, w = load(X, at + starts[0]), load(X, at + starts[1]), load(X, at + starts[2])
            w = replace_two(w, number(y, row), 1.0, last)
            a = add_products(a, u, (u, v, w))
            b = add_products(b, v, (v, w))
            c = add_products(c, w, (w,))
        step = LANES * (size + 1)
        add_to(a, products, place, size, fresh)
        add_to(b, products, place + step, size, fresh)
        add_to(c, products, place + 2 * step, size, fresh)
        fresh = False


@kernel
def _add_two_blocks(rows: _Rows, starts: tuple[int, int], last: bool, target: _Target) -> None:
    X, y, width, order, first, stop, shift = rows
    products, place, size, fresh = target
    for i in range(first, stop, ROWS):
        a, b = no_products(starts), no_products(starts[1:])
        for j in range(i, min(i + ROWS, stop)):
            row = number(order, j) + shift
            at = row * width
            u, v = load(X, at + starts[0]), load(X, at + starts[1])
            v = replace_two(v, number(y, row), 1.0, last)
            a = add_products(a, u, (u, v))
            b = add_products(b, v, (v,))
        add_to(a, products, place, size, fresh)
        add_to(b, products, place + LANES * (size + 1), size, fresh)
        fresh = False


@kernel
def _add_block_by_three(
    rows: _Rows, start: int, starts: tuple[int, int, int], last: bool, target: _Target
) -> None:
    X, y, width, order, first, stop, shift = rows
    products, place, size, fresh = target
    for i in range(first, stop, ROWS):
        a = no_products(starts)
        for j in range(i, min(i + ROWS, stop)):
            row = number(order, j) + shift
            at = row * width
            u, v, w = load(X, at + starts[0]), load(X, at + starts[1]), load(X, at + starts[2])
            w = replace_two(w, number(y, row), 1.0, last)
            a = add_products(a, load(X, at + start), (u, v, w))
        add_to(a, products, place, size, fresh)
        fresh = False


@kernel
def _add_block_by_two(rows: _Rows, start: int, starts: tuple[int, int], last: bool, target: _Target) -> None:
    X, y, width, order, first, stop, shift = rows
    products, place, size, fresh = target
    for i in range(first, stop, ROWS):
        a = no_products(starts)
        for j in range(i, min(i + ROWS, stop)):
            row = number(order, j) + shift
            at = row * width
            u, v = load(X, at + starts[0]), load(X, at + starts[1])
            v = replace_two(v, number(y, row), 1.0, last)
            a = add_products(a, load(X, at + start), (u, v))
        add_to(a, products, place, size, fresh)
        fresh = False


@kernel
def _add_short_rows(rows: _Rows, target: _Target) -> None:
    """Add the products of up to three features and y with each other and with 1."""
    X, y, width, order, first, stop, shift = rows
    products, place, size, fresh = target
    second, third = min(1, width - 1), width - 1
    one = vector(1.0, 1.0, 1.0, 1.0)
    for i in range(first, stop, ROWS):
        a = no_products((0, 0))
        for j in range(i, min(i + ROWS, stop)):
            row = number(order, j) + shift
            at = row * width
            u = vector(number(X, at), number(X, at + second), number(X, at + third), number(y, row))
            a = add_products(a, u, (u, one))
        add_to(a, products, place, size, fresh)
        fresh = False
