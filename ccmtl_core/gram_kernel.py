"""Rows in, X_tᵀX_t, X_tᵀy_t and y_tᵀy_t added in place: the one pass over the data.

Both kernels run on one thread without the GIL; callers spread blocks over cores.
"""

from __future__ import annotations

import numba

from ccmtl_core._types import FloatArray, IntArray


@numba.njit(cache=True, nogil=True)
def _accumulate(
    X: FloatArray, y: FloatArray, task_index: IntArray, gram: FloatArray, xty: FloatArray, yty: FloatArray
) -> None:
    n, P = X.shape
    for i in range(n):
        t = task_index[i]
        for p in range(P):
            for q in range(p + 1):
                gram[t, p, q] += X[i, p] * X[i, q]
            xty[t, p] += X[i, p] * y[i]
        yty[t] += y[i] * y[i]
    for t in range(len(yty)):
        for p in range(P):
            for q in range(p):
                gram[t, q, p] = gram[t, p, q]


def accumulate_scattered(
    X: FloatArray, y: FloatArray, task_index: IntArray, gram: FloatArray, xty: FloatArray, yty: FloatArray
) -> None:
    """Add rows whose tasks come in any order."""
    _accumulate(X, y, task_index, gram, xty, yty)


def accumulate_grouped(
    X: FloatArray, y: FloatArray, offsets: IntArray, gram: FloatArray, xty: FloatArray, yty: FloatArray
) -> None:
    """Add rows grouped by task."""
    import numpy as np

    _accumulate(X, y, np.repeat(np.arange(len(yty)), np.diff(offsets)), gram, xty, yty)
