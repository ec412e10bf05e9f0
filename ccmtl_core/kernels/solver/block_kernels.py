"""Gram blocks in, their inverses out, compiled: by Cholesky, a block at a time."""

from __future__ import annotations

import numpy as np

from ccmtl_core.base.types import FloatArray
from ccmtl_core.kernels.compiled import kernel
from ccmtl_core.kernels.statistics.least_squares_kernels import SAFE_PIVOT
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
        for a in range(P):
            for b in range(a + 1):
                s = G[t, a, b]
                if a == b:
                    s += diagonal[t] + floor
                for k in range(b):
                    s -= L[a, k] * L[b, k]
                L[a, b] = 1.0 / np.sqrt(max(s, floor)) if a == b else s * L[b, b]
        _invert_factored(L, t, B, lanes)


@kernel
def invert_definite(G: FloatArray, inverse: FloatArray, norm: FloatArray, lanes: Lanes) -> bool:
    """Fill in G_t⁻¹ and an upper bound on ‖G_t⁻¹‖₂; stop and say so at a block not safely definite."""
    P = width(lanes, G.shape[1])
    L = np.empty((P, P))
    A = np.empty((P, P))
    for t in range(G.shape[0]):
        for a in range(P):
            for b in range(a + 1):
                s = G[t, a, b]
                for k in range(b):
                    s -= L[a, k] * L[b, k]
                if a == b:
                    if not s > SAFE_PIVOT * G[t, a, a]:
                        return False
                    L[a, a] = 1.0 / np.sqrt(s)
                else:
                    L[a, b] = s * L[b, b]
        _invert_factored(L, t, inverse, lanes)
        norm[t] = _norm_bound(inverse, t, A, lanes)
    return True


@kernel
def _invert_factored(L: FloatArray, t: int, inverse: FloatArray, lanes: Lanes) -> None:
    """Fill in inverse_t = (L Lᵀ)⁻¹ from L, which holds 1 / L_aa on its diagonal and is overwritten."""
    P = width(lanes, inverse.shape[1])
    for a in range(P):  # L ← L⁻¹
        for b in range(a):
            s = 0.0
            for k in range(b, a):
                s += L[a, k] * L[k, b]
            L[a, b] = -s * L[a, a]
    for a in range(P):
        for b in range(a + 1):
            s = 0.0
            for k in range(a, P):
                s += L[k, a] * L[k, b]
            inverse[t, a, b] = s
            inverse[t, b, a] = s


@kernel
def _norm_bound(inverse: FloatArray, t: int, A: FloatArray, lanes: Lanes) -> float:
    """(tr G_t⁻⁸)^(1/8), at least ‖G_t⁻¹‖₂ and at most P^(1/8) times as much; A is overwritten."""
    P = width(lanes, inverse.shape[1])
    size = 0.0
    for a in range(P):
        size = max(size, inverse[t, a, a])
    for a in range(P):
        for b in range(P):
            s = 0.0
            for k in range(P):
                s += inverse[t, a, k] * inverse[t, b, k]
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
