"""Least squares of the tasks whose columns are safely independent, from either form of the statistics."""

from __future__ import annotations

import numpy as np

from ccmtl_core.base.types import BoolArray, FloatArray
from ccmtl_core.kernels.cholesky import SAFE_PIVOT, factorise
from ccmtl_core.kernels.compiled import kernel
from ccmtl_core.kernels.vectors import ANY


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
                L[p, q] = gram[t, p, q] / (scale[t, p] * scale[t, q])
        definite[t] = factorise(L, 0.0, L, SAFE_PIVOT, 0.0, True, ANY)
        if not definite[t]:
            continue
        for p in range(P):
            z[p] = xty[t, p] / scale[t, p]
            for r in range(p):
                z[p] -= L[p, r] * z[r]
            z[p] /= L[p, p]
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
