"""Loops of the dual ascent, compiled: one pass over edges and tasks a step."""

from __future__ import annotations

import numpy as np

from ccmtl_core._types import FloatArray, IndexArray
from ccmtl_core.compiled import kernel
from ccmtl_core.solver.kernels import Dims, width


@kernel
def weights_of_flow(
    inverse: FloatArray,
    center: FloatArray,
    outflow: FloatArray,
    first: int,
    last: int,
    W: FloatArray,
    dims: Dims,
) -> None:
    """W_t = ŵ_t − G_t⁻¹ (DᵀU)_t for some tasks, the minimiser for flows U; DᵀU is the sum of ``outflow``."""
    P = width(dims)
    own = np.empty(P)
    for t in range(first, last):
        for p in range(P):
            own[p] = outflow[0, t, p]
        for k in range(1, outflow.shape[0]):
            for p in range(P):
                own[p] += outflow[k, t, p]
        for p in range(P):
            s = center[t, p]
            for q in range(P):
                s -= inverse[t, p, q] * own[q]
            W[t, p] = s


@kernel
def ascend(
    head: IndexArray,
    tail: IndexArray,
    r: FloatArray,
    step: FloatArray,
    W: FloatArray,
    U: FloatArray,
    V: FloatArray,
    outflow: FloatArray,
    momentum: float,
    dims: Dims,
) -> float:
    """U ← V + step D W, back on the balls; V ← U + momentum (U − old U); outflow ← Dᵀ V.

    Returns ⟨D W, U − old U⟩: below zero, the momentum leads away from the maximum.
    """
    P = width(dims)
    outflow[:] = 0.0
    along = 0.0
    for e in range(head.size):
        i, j = head[e], tail[e]
        square = 0.0
        for p in range(P):
            V[e, p] += step[e] * (W[i, p] - W[j, p])
            square += V[e, p] * V[e, p]
        shrink = r[e] / np.sqrt(square) if square > r[e] * r[e] else 1.0
        for p in range(P):
            new = shrink * V[e, p]
            change = new - U[e, p]
            along += (W[i, p] - W[j, p]) * change
            U[e, p] = new
            V[e, p] = new + momentum * change
            outflow[i, p] += V[e, p]
            outflow[j, p] -= V[e, p]
    return along


@kernel
def loss_of_flow(
    G: FloatArray,
    norm: FloatArray,
    center: FloatArray,
    outflow: FloatArray,
    W: FloatArray,
    dims: Dims,
) -> tuple[float, float, float]:
    """With D = W − ŵ: 1/2 Σ Dᵀ G D, a bound on 1/2 Σ ρᵀ G⁻¹ ρ for ρ = −(G D + Dᵀ U), and Σ |D|ᵀ |G| |D|.

    The residual ρ is of rounding only; its bound, ‖G⁻¹‖ ‖ρ‖², has a factor of two to spare.
    """
    P = width(dims)
    D = np.empty(P)
    quadratic, unexplained, terms = 0.0, 0.0, 0.0
    for t in range(W.shape[0]):
        for p in range(P):
            D[p] = W[t, p] - center[t, p]
        square = 0.0
        for p in range(P):
            s, a = 0.0, 0.0
            for q in range(P):
                z = G[t, p, q] * D[q]
                s += z
                a += abs(z)
            quadratic += D[p] * s
            terms += abs(D[p]) * a
            rest = s + outflow[t, p]
            square += rest * rest
        unexplained += norm[t] * square
    return 0.5 * quadratic, unexplained, terms


@kernel
def sum_flows(edge: IndexArray, sign: FloatArray, flows: FloatArray, merged: FloatArray) -> None:
    """Add the flow of each edge to that of the edge between groups that it belongs to (−1: none)."""
    for e in range(edge.size):
        if edge[e] >= 0:
            for p in range(flows.shape[1]):
                merged[edge[e], p] += sign[e] * flows[e, p]
