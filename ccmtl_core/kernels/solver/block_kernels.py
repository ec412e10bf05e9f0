"""Inverses of many Gram blocks at once, for the smoother of the multigrid and for the dual ascent."""

from __future__ import annotations

import numpy as np

from ccmtl_core.base.types import FloatArray
from ccmtl_core.kernels.cholesky import SAFE_PIVOT, factorise, invert_factor
from ccmtl_core.kernels.compiled import kernel
from ccmtl_core.kernels.vectors import Lanes, width


@kernel
def invert_blocks(G: FloatArray, diagonal: FloatArray, B: FloatArray, lanes: Lanes) -> None:
    """B_t = (diagonal_t I + G_t)⁻¹ by Cholesky; a pivot lost to rounding is lifted to the rounding level."""
    P = width(lanes, G.shape[1])
    L = np.empty((P, P))
    for t in range(diagonal.size):
        top = 0.0
        for a in range(P):
            top = max(top, G[t, a, a])
        top += diagonal[t]
        floor = max(1e-15 * top, 1e-290) if top > 0.0 else 1.0
        factorise(G[t], diagonal[t] + floor, L, 0.0, floor, False, lanes)
        invert_factor(L, B[t], lanes)


@kernel
def invert_definite(G: FloatArray, inverse: FloatArray, norm: FloatArray, lanes: Lanes) -> bool:
    """Fill in G_t⁻¹ and an upper bound on ‖G_t⁻¹‖₂; stop and say so at a block not safely definite."""
    P = width(lanes, G.shape[1])
    L = np.empty((P, P))
    A = np.empty((P, P))
    for t in range(G.shape[0]):
        if not factorise(G[t], 0.0, L, SAFE_PIVOT, 0.0, False, lanes):
            return False
        invert_factor(L, inverse[t], lanes)
        norm[t] = _norm_bound(inverse[t], A, lanes)
    return True


@kernel
def _norm_bound(inverse: FloatArray, A: FloatArray, lanes: Lanes) -> float:
    """(tr G⁻⁸)^(1/8), at least ‖G⁻¹‖₂ and at most P^(1/8) times as much; A is overwritten."""
    P = width(lanes, len(inverse))
    size = 0.0
    for a in range(P):
        size = max(size, inverse[a, a])
    for a in range(P):
        for b in range(P):
            s = 0.0
            for k in range(P):
                s += inverse[a, k] * inverse[b, k]
            A[a, b] = s / (size * size)
    total = 0.0
    for a in range(P):
        for b in range(P):
            s = 0.0
            for k in range(P):
                s += A[a, k] * A[b, k]
            total += s * s
    bound: float = size * total**0.125
    return bound
