"""Multiply each of many symmetric blocks with a vector, in one pass over the blocks."""

from __future__ import annotations

import numpy as np

from ccmtl_core.base.arrays import read_only
from ccmtl_core.base.types import FloatArray
from ccmtl_core.kernels.compiled import kernel
from ccmtl_core.kernels.vectors import (
    Lanes,
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
def _multiply(A: FloatArray, v: FloatArray, out: FloatArray, lanes: Lanes) -> None:
    P, L = width(lanes, v.shape[1]), len(lanes)
    blocks, to = pointer(A), pointer(out)
    for t in range(len(v)):
        for c in range(0, P, L):
            at = min(c, P - L)
            s = zeros(lanes)
            for q in range(P):
                s += v[t, q] * load(blocks, (t * P + q) * P + at, lanes)
            store(s, to, t * P + at)


@kernel
def _quadratic(A: FloatArray, v: FloatArray, of_sizes: bool, out: FloatArray, lanes: Lanes) -> None:
    P, L = width(lanes, v.shape[1]), len(lanes)
    blocks, rows = pointer(A), pointer(v)
    for t in range(len(v)):
        out[t] = 0.0
        for c in range(0, P, L):
            at = min(c, P - L)
            s = zeros(lanes)
            for q in range(P):
                row = load(blocks, (t * P + q) * P + at, lanes)
                s += v[t, q] * (absolute(row) if of_sizes else row)
            out[t] += total(later(load(rows, t * P + at, lanes), c - at) * s)
