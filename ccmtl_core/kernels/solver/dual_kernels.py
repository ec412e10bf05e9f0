"""Loops of the dual ascent, compiled: one pass over edges and tasks a step.

Rows of P numbers are taken in vectors (``vectors.py``), so all arrays of floats are contiguous. Blocks are
symmetric, and read by columns.
"""

from __future__ import annotations

import numpy as np

from ccmtl_core.base.types import FloatArray, IndexArray
from ccmtl_core.kernels.compiled import kernel
from ccmtl_core.kernels.vectors import (
    Lanes,
    absolute,
    later,
    load,
    pointer,
    replaced,
    store,
    total,
    width,
    zeros,
)


@kernel
def weights_of_flow(
    inverse: FloatArray,
    center: FloatArray,
    outflow: FloatArray,
    first: int,
    last: int,
    W: FloatArray,
    lanes: Lanes,
) -> None:
    """W_t = ŵ_t − G_t⁻¹ (DᵀU)_t for some tasks, the minimiser for flows U; DᵀU is the sum of ``outflow``."""
    P, L = width(lanes, W.shape[1]), len(lanes)
    own = np.empty(P)
    blocks, centers, rows = pointer(inverse), pointer(center), pointer(W)
    for t in range(first, last):
        for p in range(P):
            own[p] = outflow[0, t, p]
        for k in range(1, outflow.shape[0]):
            for p in range(P):
                own[p] += outflow[k, t, p]
        for c in range(0, P, L):
            at = min(c, P - L)
            s = load(centers, t * P + at, lanes)
            for q in range(P):
                s -= own[q] * load(blocks, (t * P + q) * P + at, lanes)
            store(s, rows, t * P + at)


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
    lanes: Lanes,
) -> float:
    """U ← V + step D W, back on the balls; V ← U + momentum (U − old U); outflow ← Dᵀ V.

    Returns ⟨D W, U − old U⟩: below zero, the momentum leads away from the maximum.
    """
    P, L = width(lanes, W.shape[1]), len(lanes)
    rows, flows, ahead, out = pointer(W), pointer(U), pointer(V), pointer(outflow)
    outflow[:] = 0.0
    along = 0.0
    for e in range(head.size):
        i, j = head[e] * P, tail[e] * P
        square = 0.0
        for c in range(0, P, L):
            at = min(c, P - L)
            d = load(rows, i + at, lanes) - load(rows, j + at, lanes)
            v = load(ahead, e * P + at, lanes) + step[e] * d
            square += total(later(v * v, c - at))
        shrink = r[e] / np.sqrt(square) if square > r[e] * r[e] else 1.0
        for c in range(0, P, L):
            at = min(c, P - L)
            d = load(rows, i + at, lanes) - load(rows, j + at, lanes)
            old, before = load(flows, e * P + at, lanes), load(ahead, e * P + at, lanes)
            new = shrink * (before + step[e] * d)
            change = later(new - old, c - at)
            v = new + momentum * change
            along += total(d * change)
            store(replaced(old, new, c - at), flows, e * P + at)
            store(replaced(before, v, c - at), ahead, e * P + at)
            v = later(v, c - at)
            store(load(out, i + at, lanes) + v, out, i + at)
            store(load(out, j + at, lanes) - v, out, j + at)
    return along


@kernel
def loss_of_flow(
    G: FloatArray,
    norm: FloatArray,
    center: FloatArray,
    outflow: FloatArray,
    W: FloatArray,
    lanes: Lanes,
) -> tuple[float, float, float]:
    """With D = W − ŵ: 1/2 Σ Dᵀ G D, a bound on 1/2 Σ ρᵀ G⁻¹ ρ for ρ = −(G D + Dᵀ U), and Σ |D|ᵀ |G| |D|.

    The residual ρ is of rounding only; its bound, ‖G⁻¹‖ ‖ρ‖², has a factor of two to spare.
    """
    P, L = width(lanes, W.shape[1]), len(lanes)
    D = np.empty(P)
    blocks, own, outflows = pointer(G), pointer(D), pointer(outflow)
    quadratic, unexplained, terms = 0.0, 0.0, 0.0
    for t in range(W.shape[0]):
        for p in range(P):
            D[p] = W[t, p] - center[t, p]
        square = 0.0
        for c in range(0, P, L):
            at = min(c, P - L)
            s, a = zeros(lanes), zeros(lanes)
            for q in range(P):
                z = D[q] * load(blocks, (t * P + q) * P + at, lanes)
                s += z
                a += absolute(z)
            d = later(load(own, at, lanes), c - at)
            quadratic += total(d * s)
            terms += total(absolute(d) * a)
            rest = later(s + load(outflows, t * P + at, lanes), c - at)
            square += total(rest * rest)
        unexplained += norm[t] * square
    return 0.5 * quadratic, unexplained, terms


@kernel
def sum_flows(edge: IndexArray, sign: FloatArray, flows: FloatArray, merged: FloatArray) -> None:
    """Add the flow of each edge to that of the edge between groups that it belongs to (−1: none)."""
    for e in range(edge.size):
        if edge[e] >= 0:
            for p in range(flows.shape[1]):
                merged[edge[e], p] += sign[e] * flows[e, p]
