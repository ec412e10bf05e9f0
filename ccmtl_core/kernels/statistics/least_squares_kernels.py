"""Statistics in, least squares of the tasks whose columns are safely independent out, compiled."""

from __future__ import annotations

import numpy as np

from ccmtl_core.base.types import BoolArray, FloatArray
from ccmtl_core.kernels.compiled import kernel

SAFE_PIVOT = 1e-6
"""Squared sine of a column's angle to those before it, above which it counts as independent."""


@kernel
def solve_cholesky(
    gram: FloatArray, xty: FloatArray, scale: FloatArray, weights: FloatArray, explained: FloatArray
) -> BoolArray:
    """From the Gram form: fill in the weights and w_tᵀ X_tᵀ y_t of the safe tasks; say which they are."""
    T, P = xty.shape
    L = np.empty((P, P))
    z = np.empty(P)
    definite = np.ones(T, dtype=np.bool_)
    for t in range(T):
        for p in range(P):
            for q in range(p + 1):
                entry = gram[t, p, q] / (scale[t, p] * scale[t, q])
                for r in range(q):
                    entry -= L[p, r] * L[q, r]
                if q < p:
                    L[p, q] = entry / L[q, q]
            if not entry > SAFE_PIVOT:
                definite[t] = False
                break
            L[p, p] = np.sqrt(entry)
            z[p] = xty[t, p] / scale[t, p]
            for r in range(p):
                z[p] -= L[p, r] * z[r]
            z[p] /= L[p, p]
        if definite[t]:
            for p in range(P):
                explained[t] += z[p] * z[p]
            for p in range(P - 1, -1, -1):
                for r in range(p + 1, P):
                    z[p] -= L[r, p] * z[r]
                z[p] /= L[p, p]
                weights[t, p] = z[p] / scale[t, p]
    return definite


@kernel
def solve_triangular(factor: FloatArray, scale: FloatArray, weights: FloatArray) -> BoolArray:
    """From the triangular form: fill in the weights of the safe tasks; say which they are."""
    T, P = weights.shape
    definite = np.ones(T, dtype=np.bool_)
    for t in range(T):
        R = factor[t]
        for p in range(P):
            if not (R[p, p] / scale[t, p]) ** 2 > SAFE_PIVOT:
                definite[t] = False
        if definite[t]:
            for p in range(P - 1, -1, -1):
                entry = R[p, P]
                for q in range(p + 1, P):
                    entry -= R[p, q] * weights[t, q]
                weights[t, p] = entry / R[p, p]
    return definite
