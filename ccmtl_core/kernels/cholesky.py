"""The Cholesky factor of one small block, and its inverse, for kernels that loop over many blocks."""

from __future__ import annotations

import numpy as np

from ccmtl_core.base.types import FloatArray
from ccmtl_core.kernels.compiled import inlined
from ccmtl_core.kernels.vectors import Lanes, width

SAFE_PIVOT = 1e-6
"""Squared sine of a column's angle to those before it, above which it counts as independent."""


@inlined
def factorise(
    A: FloatArray, shift: float, L: FloatArray, safe: float, floor: float, is_exact: bool, lanes: Lanes
) -> bool:
    """Fill in the lower triangle of L, A + shift I = L Lᵀ; L may be A itself.

    Its diagonal holds L_aa where ``is_exact``, otherwise 1 / L_aa: products with these are faster than
    divisions, but rounded once more, which is enough to tell weights apart that are equal.

    Pivots below ``floor`` are lifted to it. Where one is then not above ``safe`` times its entry of A, the
    answer is false, and L of no use.
    """
    P = width(lanes, len(A))
    definite = True
    for a in range(P):
        for b in range(a + 1):
            s = A[a, b]
            if a == b:
                s += shift
            for k in range(b):
                s -= L[a, k] * L[b, k]
            if a == b:
                s = max(s, floor)
                definite &= s > safe * A[a, a]
                L[a, a] = np.sqrt(s) if is_exact else 1.0 / np.sqrt(s)
            else:
                L[a, b] = s / L[b, b] if is_exact else s * L[b, b]
    return definite


@inlined
def invert_factor(L: FloatArray, inverse: FloatArray, lanes: Lanes) -> None:
    """Fill in (L Lᵀ)⁻¹ from L with 1 / L_aa on its diagonal, which is overwritten by L⁻¹."""
    P = width(lanes, len(L))
    for a in range(P):
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
            inverse[a, b] = s
            inverse[b, a] = s
