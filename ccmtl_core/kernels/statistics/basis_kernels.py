"""Weights and Gram blocks in another basis of the features, task after task: equal ones stay equal."""

from __future__ import annotations

import numpy as np

from ccmtl_core.base.types import FloatArray
from ccmtl_core.kernels.compiled import kernel


@kernel
def times(Z: FloatArray, L: FloatArray) -> FloatArray:
    """L z of each row z of (T, P), L upper triangular."""
    T, P = Z.shape
    W = np.zeros((T, P))
    for t in range(T):
        for p in range(P):
            for q in range(p, P):
                W[t, p] += L[p, q] * Z[t, q]
    return W


@kernel
def solve(W: FloatArray, L: FloatArray) -> FloatArray:
    """L⁻¹ w of each row w of (T, P), L upper triangular."""
    T, P = W.shape
    Z = np.empty((T, P))
    for t in range(T):
        for p in range(P - 1, -1, -1):
            entry = W[t, p]
            for q in range(p + 1, P):
                entry -= L[p, q] * Z[t, q]
            Z[t, p] = entry / L[p, p]
    return Z


@kernel
def change(
    gram: FloatArray, xty: FloatArray, L: FloatArray, new_gram: FloatArray, new_xty: FloatArray
) -> None:
    """Lᵀ G L, symmetric to the bit, and Lᵀ c."""
    T, P = xty.shape
    half = np.empty((P, P))
    for t in range(T):
        for p in range(P):
            new_xty[t, p] = 0.0
            for r in range(p + 1):
                new_xty[t, p] += L[r, p] * xty[t, r]
            for q in range(P):
                half[q, p] = 0.0
                for r in range(p + 1):
                    half[q, p] += gram[t, q, r] * L[r, p]
        for p in range(P):
            for q in range(p + 1):
                entry = 0.0
                for r in range(q + 1):
                    entry += L[r, q] * half[r, p]
                new_gram[t, p, q] = entry
                new_gram[t, q, p] = entry
            new_gram[t, p, p] = max(new_gram[t, p, p], 0.0)
