"""The expectation step of random coefficients: what rows say of weights that have a normal prior.

With w = m + L z, z has the posterior precision B = I + Lᵀ G L / σ² and the mean B⁻¹ Lᵀ (c − G m) / σ². One
thread, no GIL, nothing of the size of the data beside it. Many features go to BLAS, some tasks at a time.
"""

from __future__ import annotations

import numpy as np

from ccmtl_core.base.types import FloatArray
from ccmtl_core.kernels.block_products import quadratic, times
from ccmtl_core.kernels.cholesky import factorise, invert_factor
from ccmtl_core.kernels.compiled import kernel
from ccmtl_core.kernels.vectors import ANY
from ccmtl_core.kernels.wide_blocks import inverses

_AT_A_TIME = 64  # tasks: their blocks stay in the second-level cache


def expect_wide(
    gram: FloatArray,
    xty: FloatArray,
    alone: FloatArray,
    residual: FloatArray,
    m: FloatArray,
    L: FloatArray,
    noise: float,
    scores: FloatArray,
    square: FloatArray,
    sums: FloatArray,
) -> None:
    """As :func:`expect`, faster from some twenty features on."""
    P, to_scores = len(m), L / np.sqrt(noise)
    for first in range(0, len(xty), _AT_A_TIME):
        some = slice(first, first + _AT_A_TIME)
        G = gram[some]
        telling = np.asarray(np.diagonal(G, axis1=1, axis2=2).any(axis=1))
        B = np.matmul(to_scores.T, np.matmul(G, to_scores))
        inverse, log_determinant = inverses(B, 1.0)
        z = telling[:, None] * times(inverse, (xty[some] - G @ m) @ L / noise)
        scores[some] = z
        square += z.T @ z + np.tensordot(telling.astype(np.float64), inverse, axes=1)
        left = telling @ np.einsum("tpp->t", inverse)
        misfit = telling @ (residual[some] + np.maximum(quadratic(G, m + z @ L.T - alone[some]), 0.0))
        sums[0] += misfit + noise * (P * telling.sum() - left)
        sums[1] += misfit / noise + np.vdot(z, z)
        sums[2] += telling @ log_determinant


@kernel
def expect(
    gram: FloatArray,
    xty: FloatArray,
    alone: FloatArray,
    residual: FloatArray,
    m: FloatArray,
    L: FloatArray,
    noise: float,
    scores: FloatArray,
    square: FloatArray,
    sums: FloatArray,
) -> None:
    """Fill in the scores (T, P); add to Σ E zzᵀ (P, P) and to error, misfit and log-determinant (3,)."""
    T, P = xty.shape
    B = np.empty((P, P))
    K = np.empty((P, P))
    z = np.empty(P)
    w = np.empty(P)
    for t in range(T):
        G = gram[t]
        if not _half_precision(G, L, noise, K, B):
            continue
        for p in range(P):
            w[p] = xty[t, p]
            for q in range(P):
                w[p] -= G[p, q] * m[q]
        for p in range(P):
            z[p] = 0.0
            for q in range(p + 1):
                z[p] += L[q, p] * w[q]
            z[p] /= noise
        factorise(B, 1.0, B, 0.0, 1.0, False, ANY)
        for p in range(P):
            sums[2] -= 2.0 * np.log(B[p, p])
        invert_factor(B, K, ANY)
        left = 0.0  # of the variance of z: the trace of B⁻¹
        for p in range(P):
            mean = 0.0
            for q in range(P):
                mean += K[p, q] * z[q]
            scores[t, p] = mean
            left += K[p, p]
        for p in range(P):
            sums[1] += scores[t, p] * scores[t, p]
            for q in range(P):
                square[p, q] += scores[t, p] * scores[t, q] + K[p, q]
        for p in range(P):
            w[p] = m[p] - alone[t, p]
            for q in range(p, P):
                w[p] += L[p, q] * scores[t, q]
        quadratic = 0.0
        for p in range(P):
            for q in range(P):
                quadratic += w[p] * G[p, q] * w[q]
        misfit = residual[t] + max(quadratic, 0.0)
        sums[0] += misfit + noise * (P - left)
        sums[1] += misfit / noise


@kernel
def _half_precision(G: FloatArray, L: FloatArray, noise: float, A: FloatArray, B: FloatArray) -> bool:
    """B = Lᵀ G L / σ², with A as working space; false where G is zero."""
    P = len(G)
    some = False
    for p in range(P):
        some |= G[p, p] > 0.0
    if not some:
        return False
    for p in range(P):
        for q in range(P):
            A[p, q] = 0.0
            for r in range(q + 1):
                A[p, q] += G[p, r] * L[r, q]
    for p in range(P):
        for q in range(p + 1):
            entry = 0.0
            for r in range(p + 1):
                entry += L[r, p] * A[r, q]
            B[p, q] = entry / noise
    return True
