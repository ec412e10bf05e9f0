"""Loops over edges, compiled: what an edge holds is read and used in one pass, without arrays in between."""

from __future__ import annotations

import numpy as np

from ccmtl_core._types import FloatArray, IndexArray
from ccmtl_core.compiled import kernel
from ccmtl_core.solver.kernels import Dims, width


@kernel
def edge_lengths(head: IndexArray, tail: IndexArray, W: FloatArray, out: FloatArray, dims: Dims) -> None:
    """out_e = ‖W_i − W_j‖."""
    P = width(dims)
    for e in range(head.size):
        square = 0.0
        for p in range(P):
            d = W[head[e], p] - W[tail[e], p]
            square += d * d
        out[e] = np.sqrt(square)


@kernel
def slack_and_penalty(
    head: IndexArray, tail: IndexArray, W: FloatArray, U: FloatArray, r: FloatArray, dims: Dims
) -> tuple[float, float]:
    """Σ (r ‖d‖ − U·d), which is not negative where ‖U_e‖ ≤ r_e, and Σ r ‖d‖, with d = W_i − W_j."""
    P = width(dims)
    slack, penalty = 0.0, 0.0
    for e in range(head.size):
        square, product = 0.0, 0.0
        for p in range(P):
            d = W[head[e], p] - W[tail[e], p]
            square += d * d
            product += U[e, p] * d
        long = r[e] * np.sqrt(square)
        slack += long - product
        penalty += long
    return slack, penalty


@kernel
def project(r: FloatArray, U: FloatArray, dims: Dims) -> None:
    """Project each U_e, in place, on the ball of radius r_e."""
    P = width(dims)
    for e in range(r.size):
        square = 0.0
        for p in range(P):
            square += U[e, p] * U[e, p]
        if square > r[e] * r[e]:
            shrink = r[e] / np.sqrt(square)
            for p in range(P):
                U[e, p] *= shrink


@kernel
def add_conducted(
    head: IndexArray, tail: IndexArray, conductance: FloatArray, x: FloatArray, U: FloatArray, dims: Dims
) -> None:
    """Add to each U_e, in place, κ_e (x_i − x_j)."""
    P = width(dims)
    for e in range(head.size):
        for p in range(P):
            U[e, p] += conductance[e] * (x[head[e], p] - x[tail[e], p])


@kernel
def edge_differences(head: IndexArray, tail: IndexArray, W: FloatArray, out: FloatArray, dims: Dims) -> None:
    """out_e = W_i − W_j."""
    P = width(dims)
    for e in range(head.size):
        for p in range(P):
            out[e, p] = W[head[e], p] - W[tail[e], p]


@kernel
def add_divergence(head: IndexArray, tail: IndexArray, U: FloatArray, out: FloatArray, dims: Dims) -> None:
    """Add Dᵀ U to out: +U_e at the head, −U_e at the tail."""
    P = width(dims)
    for e in range(head.size):
        for p in range(P):
            out[head[e], p] += U[e, p]
            out[tail[e], p] -= U[e, p]


@kernel
def smooth_edges(
    head: IndexArray,
    tail: IndexArray,
    W: FloatArray,
    r: FloatArray,
    smoothing: float,
    v: FloatArray,
    w: FloatArray,
    dims: Dims,
) -> float:
    """With d = W_i − W_j and s = √(‖d‖² + ε²): v = d/s, w = r/s; returns the smoothed penalty Σ r s."""
    P = width(dims)
    total = 0.0
    for e in range(head.size):
        square = smoothing * smoothing
        for p in range(P):
            d = W[head[e], p] - W[tail[e], p]
            v[e, p] = d
            square += d * d
        s = np.sqrt(square)
        w[e] = r[e] / s
        total += r[e] * s
        for p in range(P):
            v[e, p] /= s
    return total


@kernel
def smoothed_penalty(
    head: IndexArray, tail: IndexArray, W: FloatArray, r: FloatArray, smoothing: float, dims: Dims
) -> float:
    """Σ r √(‖W_i − W_j‖² + ε²)."""
    P = width(dims)
    total = 0.0
    for e in range(head.size):
        square = smoothing * smoothing
        for p in range(P):
            d = W[head[e], p] - W[tail[e], p]
            square += d * d
        total += r[e] * np.sqrt(square)
    return total


@kernel
def subtract_scaled_divergence(
    head: IndexArray, tail: IndexArray, r: FloatArray, v: FloatArray, out: FloatArray, dims: Dims
) -> None:
    """Subtract Dᵀ (r v) from out."""
    P = width(dims)
    for e in range(head.size):
        for p in range(P):
            out[head[e], p] -= r[e] * v[e, p]
            out[tail[e], p] += r[e] * v[e, p]


@kernel
def subtract_curvature(
    head: IndexArray,
    tail: IndexArray,
    w: FloatArray,
    u: FloatArray,
    v: FloatArray,
    x: FloatArray,
    out: FloatArray,
    dims: Dims,
) -> None:
    """Subtract from out Dᵀ [w/2 (u vᵀ + v uᵀ)] D x, edge by edge."""
    P = width(dims)
    for e in range(head.size):
        i, j = head[e], tail[e]
        along_u, along_v = 0.0, 0.0
        for p in range(P):
            d = x[i, p] - x[j, p]
            along_u += u[e, p] * d
            along_v += v[e, p] * d
        along_u *= 0.5 * w[e]
        along_v *= 0.5 * w[e]
        for p in range(P):
            z = along_v * u[e, p] + along_u * v[e, p]
            out[i, p] -= z
            out[j, p] += z


@kernel
def dual_step(
    head: IndexArray,
    tail: IndexArray,
    r: FloatArray,
    w: FloatArray,
    v: FloatArray,
    dW: FloatArray,
    W: FloatArray,
    smoothing: float,
    fused: float,
    u: FloatArray,
    dims: Dims,
) -> tuple[float, float, float]:
    """Newton's step of u, back on the unit balls, and how far W (new) and u are from a solution.

    Returns, at the new pair, the slack Σ r (‖d‖ − u·d) over the edges longer than ``fused``, the same
    over all edges, and the mismatch Σ r ‖s u − d‖.
    """
    P = width(dims)
    open_slack, slack, mismatch = 0.0, 0.0, 0.0
    for e in range(head.size):
        i, j = head[e], tail[e]
        along = 0.0
        for p in range(P):
            along += v[e, p] * (dW[i, p] - dW[j, p])
        inverse = w[e] / r[e]
        size = 0.0
        for p in range(P):
            new = v[e, p] + (dW[i, p] - dW[j, p] - along * u[e, p]) * inverse
            u[e, p] = new
            size += new * new
        shrink = 1.0 / max(np.sqrt(size), 1.0)
        square, product = 0.0, 0.0
        for p in range(P):
            u[e, p] *= shrink
            d = W[i, p] - W[j, p]
            square += d * d
            product += u[e, p] * d
        s = np.sqrt(square + smoothing * smoothing)
        off = 0.0
        for p in range(P):
            t = s * u[e, p] - (W[i, p] - W[j, p])
            off += t * t
        slack += r[e] * (np.sqrt(square) - product)
        if square > fused * fused:
            open_slack += r[e] * (np.sqrt(square) - product)
        mismatch += r[e] * np.sqrt(off)
    return open_slack, slack, mismatch


@kernel
def push_to_roots(
    order: IndexArray,
    parent: IndexArray,
    edge: IndexArray,
    sign: FloatArray,
    values: FloatArray,
    vectors: FloatArray,
    scale: FloatArray,
    stretch: FloatArray,
    bound: FloatArray,
    affordable: float,
    residual: FloatArray,
    U: FloatArray,
    dims: Dims,
) -> None:
    """Send along a forest, leaves first, each part of the residual that its own task cannot absorb cheaply.

    A part b of the residual along an eigenvector of the scaled G_t with eigenvalue w costs the dual bound
    about min(b²/2w, bound_t stretch |b|); where that is more than ``affordable``, it moves to the parent.
    """
    P = width(dims)
    for place in range(order.size - 1, -1, -1):
        t = order[place]
        if parent[t] < 0:
            continue
        for a in range(P):
            b = 0.0
            for p in range(P):
                b += vectors[t, p, a] * residual[t, p] / scale[t, p]
            cost = bound[t] * stretch[t, a] * abs(b)
            if values[t, a] > 0.0:
                cost = min(cost, b * b / (2.0 * values[t, a]))
            if cost > affordable:
                for p in range(P):
                    part = b * vectors[t, p, a] * scale[t, p]
                    residual[t, p] -= part
                    residual[parent[t], p] += part
                    U[edge[t], p] += sign[t] * part
