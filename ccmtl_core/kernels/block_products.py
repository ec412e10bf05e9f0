"""Multiply each of many symmetric blocks with a vector, in one pass over the blocks."""

from __future__ import annotations

import numpy as np

from ccmtl_core.base.arrays import read_only
from ccmtl_core.base.types import FloatArray
from ccmtl_core.kernels.compiled import kernel
from ccmtl_core.kernels.vectors import (
    Lanes,
    Pointer,
    absolute,
    lanes_for,
    later,
    load,
    pointer,
    store,
    total,
    width,
    zeros,
)


def times(A: FloatArray, v: FloatArray) -> FloatArray:
    """A_t v_t of each task, (T, P)."""
    out = np.empty(v.shape)
    _multiply(_readable(A), _readable(v), out, lanes_for(*v.shape))
    return out


def quadratic(A: FloatArray, v: FloatArray) -> FloatArray:
    """v_tᵀ A_t v_t of each task, (T,)."""
    out = np.empty(len(v))
    _quadratic(_readable(A), _readable(v), False, out, lanes_for(*v.shape))
    return out


def absolute_quadratic(A: FloatArray, v: FloatArray) -> FloatArray:
    """|v_t|ᵀ |A_t| |v_t| of each task, (T,)."""
    out = np.empty(len(v))
    _quadratic(_readable(A), _readable(np.abs(v)), True, out, lanes_for(*v.shape))
    return out


def _readable(array: FloatArray) -> FloatArray:
    """Contiguous, and of one type for compiled code whether it can be written to or not."""
    return read_only(np.ascontiguousarray(array))


@kernel
def is_wide(P: int, lanes: Lanes) -> bool:
    """Whether a row takes so many vectors that a block is better read row by row than column by column."""
    return P > 4 * len(lanes) > 4


@kernel
def room(P: int, lanes: Lanes) -> int:
    """How many numbers the vectors of a row hold, one behind the other."""
    return (P + len(lanes) - 1) // len(lanes) * len(lanes)


@kernel
def put_product(blocks: Pointer, i: int, x: Pointer, P: int, to: Pointer, lanes: Lanes) -> None:
    """Put the product of the wide block i and the row x in row i of ``to``.

    The vectors of x are one behind the other, the last one with zeros for what the one before it holds. The
    block is read once, from its first number to its last: column by column, a processor would wait for each
    vector, as it foresees no jumps from row to row.
    """
    for q in range(i * P, i * P + P):
        along = zeros(lanes)
        for c in range(0, P, len(lanes)):
            along += load(x, c, lanes) * load(blocks, q * P + min(c, P - len(lanes)), lanes)
        to[q] = total(along)


@kernel
def _multiply(A: FloatArray, v: FloatArray, out: FloatArray, lanes: Lanes) -> None:
    P, L = width(lanes, v.shape[1]), len(lanes)
    blocks, rows, to = pointer(A), pointer(v), pointer(out)
    own = np.empty(room(P, lanes))
    for t in range(len(v)):
        if is_wide(P, lanes):
            for c in range(0, P, L):
                at = min(c, P - L)
                store(later(load(rows, t * P + at, lanes), c - at), pointer(own), c)
            put_product(blocks, t, pointer(own), P, to, lanes)
            continue
        for c in range(0, P, L):
            at = min(c, P - L)
            s = zeros(lanes)
            for q in range(P):
                s += v[t, q] * load(blocks, (t * P + q) * P + at, lanes)
            store(s, to, t * P + at)
    own[0] = 0.0  # it is kept for as long as its pointer is used


@kernel
def _quadratic(A: FloatArray, v: FloatArray, of_sizes: bool, out: FloatArray, lanes: Lanes) -> None:
    P, L = width(lanes, v.shape[1]), len(lanes)
    blocks, rows = pointer(A), pointer(v)
    for t in range(len(v)):
        out[t] = 0.0
        if is_wide(P, lanes):
            for q in range(P):
                along = zeros(lanes)
                for c in range(0, P, L):
                    at = min(c, P - L)
                    row = load(blocks, (t * P + q) * P + at, lanes)
                    row = absolute(row) if of_sizes else row
                    along += later(row, c - at) * load(rows, t * P + at, lanes)
                out[t] += v[t, q] * total(along)
            continue
        for c in range(0, P, L):
            at = min(c, P - L)
            s = zeros(lanes)
            for q in range(P):
                row = load(blocks, (t * P + q) * P + at, lanes)
                s += v[t, q] * (absolute(row) if of_sizes else row)
            out[t] += total(later(load(rows, t * P + at, lanes), c - at) * s)
