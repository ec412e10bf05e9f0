"""One step of the network lasso's splitting: weights of tasks, copies at the ends of edges, multipliers."""

from __future__ import annotations

import numpy as np

from ccmtl_core.base.types import FloatArray, IndexArray
from ccmtl_core.kernels.compiled import kernel

RELAXATION = 1.6


@kernel
def block_step(
    head: IndexArray,
    tail: IndexArray,
    r: FloatArray,
    penalty: float,
    inverse: FloatArray,
    c: FloatArray,
    by_entry: bool,
    z: FloatArray,
    u: FloatArray,
    W: FloatArray,
) -> tuple[float, float, float, float]:
    """Take one step of W, z and u; return the squares of both residuals, each followed by its scale's.

    z minimises r ‖z_0 − z_1‖ + penalty/2 Σ ‖z − u‖², the norm Euclidean or, by entry, a sum of sizes: both
    ends approach each other, at most to the middle.
    """
    T, P = W.shape
    right = c.copy()
    for e in range(head.size):
        i, j = head[e], tail[e]
        for p in range(P):
            right[i, p] += penalty * (z[e, 0, p] - u[e, 0, p])
            right[j, p] += penalty * (z[e, 1, p] - u[e, 1, p])
    for t in range(T):
        for p in range(P):
            s = 0.0
            for q in range(P):
                s += inverse[t, p, q] * right[t, q]
            W[t, p] = s
    primal = dual = weights = copies = multipliers = 0.0
    for e in range(head.size):
        i, j = head[e], tail[e]
        square = 0.0
        for p in range(P):
            u[e, 0, p] += RELAXATION * W[i, p] + (1.0 - RELAXATION) * z[e, 0, p]
            u[e, 1, p] += RELAXATION * W[j, p] + (1.0 - RELAXATION) * z[e, 1, p]
            square += (u[e, 0, p] - u[e, 1, p]) ** 2
        kept = max(1.0 - r[e] / (penalty * np.sqrt(square)), 0.5) if square > 0.0 else 0.5
        for p in range(P):
            a, b = u[e, 0, p], u[e, 1, p]
            if by_entry:
                apart = penalty * abs(a - b)
                kept = max(1.0 - r[e] / apart, 0.5) if apart > 0.0 else 0.5
            new_a, new_b = kept * a + (1.0 - kept) * b, (1.0 - kept) * a + kept * b
            dual += (new_a - z[e, 0, p]) ** 2 + (new_b - z[e, 1, p]) ** 2
            primal += (W[i, p] - new_a) ** 2 + (W[j, p] - new_b) ** 2
            weights += W[i, p] ** 2 + W[j, p] ** 2
            copies += new_a**2 + new_b**2
            z[e, 0, p], z[e, 1, p] = new_a, new_b
            u[e, 0, p], u[e, 1, p] = a - new_a, b - new_b
            multipliers += u[e, 0, p] ** 2 + u[e, 1, p] ** 2
    return primal, max(weights, copies), dual, multipliers
