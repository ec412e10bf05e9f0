"""Weights in another basis of the features, task after task: equal ones stay equal."""

from __future__ import annotations

import numpy as np

from ccmtl_core.base.types import FloatArray
from ccmtl_core.kernels.compiled import kernel


@kernel
def times_rows(Z: FloatArray, A: FloatArray) -> FloatArray:
    """z A of each row z of (T, K), for A (K, P)."""
    T, (K, P) = len(Z), A.shape
    W = np.zeros((T, P))
    for t in range(T):
        for k in range(K):
            for p in range(P):
                W[t, p] += Z[t, k] * A[k, p]
    return W
