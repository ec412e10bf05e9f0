"""Loops over edges, compiled: what an edge holds is read and used in one pass, without arrays in between.

Rows of P numbers are taken in vectors (``vectors.py``), so all arrays of floats are contiguous.
"""

from __future__ import annotations

import numpy as np

from ccmtl_core.base.types import FloatArray, IndexArray
from ccmtl_core.kernels.compiled import kernel
from ccmtl_core.kernels.vectors import (
    Lanes,
    Pointer,
    Vector,
    later,
    load,
    number,
    pointer,
    store,
    total,
    width,
)


@kernel
def _difference(rows: Pointer, i: int, j: int, P: int, c: int, lanes: Lanes) -> Vector:
    """Numbers c and on of the difference of two rows, with zeros in place of those before."""
    at = min(c, P - len(lanes))
    return later(load(rows, i * P + at, lanes) - load(rows, j * P + at, lanes), c - at)


@kernel
def _add_to_both(v: Vector, rows: Pointer, i: int, j: int, P: int, at: int, lanes: Lanes) -> None:
    """Add to one row, and subtract from another, the numbers from ``at`` on."""
    store(load(rows, i * P + at, lanes) + v, rows, i * P + at)
    store(load(rows, j * P + at, lanes) - v, rows, j * P + at)


@kernel
def edge_lengths(head: IndexArray, tail: IndexArray, W: FloatArray, out: FloatArray, lanes: Lanes) -> None:
    """out_e = ‖W_i − W_j‖."""
    P, rows = width(lanes, W.shape[1]), pointer(W)
    for e in range(head.size):
        square = 0.0
        for c in range(0, P, len(lanes)):
            d = _difference(rows, head[e], tail[e], P, c, lanes)
            square += total(d * d)
        out[e] = np.sqrt(square)


@kernel
def slack_and_penalty(
    head: IndexArray, tail: IndexArray, W: FloatArray, U: FloatArray, r: FloatArray, lanes: Lanes
) -> tuple[float, float]:
    """Σ (r ‖d‖ − U·d), which is not negative where ‖U_e‖ ≤ r_e, and Σ r ‖d‖, with d = W_i − W_j."""
    P, rows, flows = width(lanes, W.shape[1]), pointer(W), pointer(U)
    slack, penalty = 0.0, 0.0
    for e in range(head.size):
        square, product = 0.0, 0.0
        for c in range(0, P, len(lanes)):
            d = _difference(rows, head[e], tail[e], P, c, lanes)
            square += total(d * d)
            product += total(d * load(flows, e * P + min(c, P - len(lanes)), lanes))
        long = r[e] * np.sqrt(square)
        slack += long - product
        penalty += long
    return slack, penalty


@kernel
def project(r: FloatArray, U: FloatArray, lanes: Lanes) -> None:
    """Project each U_e, in place, on the ball of radius r_e."""
    P = width(lanes, U.shape[1])
    for e in range(r.size):
        square = 0.0
        for p in range(P):
            square += U[e, p] * U[e, p]
        if square > r[e] * r[e]:
            shrink = r[e] / np.sqrt(square)
            for p in range(P):
                U[e, p] *= shrink


@kernel
def scale_into_balls(r: FloatArray, cell: IndexArray, U: FloatArray, worst: FloatArray, lanes: Lanes) -> None:
    """Divide all U_e of a cell, in place, by how much the longest exceeds its ball; ``worst`` holds ones."""
    P = width(lanes, U.shape[1])
    for e in range(r.size):
        square = 0.0
        for p in range(P):
            square += U[e, p] * U[e, p]
        worst[cell[e]] = max(worst[cell[e]], np.sqrt(square) / r[e])
    for e in range(r.size):
        if worst[cell[e]] > 1.0:
            for p in range(P):
                U[e, p] /= worst[cell[e]]


@kernel
def add_conducted(
    head: IndexArray, tail: IndexArray, conductance: FloatArray, x: FloatArray, U: FloatArray, lanes: Lanes
) -> None:
    """Add to each U_e, in place, κ_e (x_i − x_j)."""
    P, rows, flows = width(lanes, x.shape[1]), pointer(x), pointer(U)
    for e in range(head.size):
        for c in range(0, P, len(lanes)):
            place = e * P + min(c, P - len(lanes))
            more = conductance[e] * _difference(rows, head[e], tail[e], P, c, lanes)
            store(load(flows, place, lanes) + more, flows, place)


@kernel
def edge_differences(
    head: IndexArray, tail: IndexArray, W: FloatArray, out: FloatArray, lanes: Lanes
) -> None:
    """out_e = W_i − W_j."""
    P, L = width(lanes, W.shape[1]), len(lanes)
    rows, to = pointer(W), pointer(out)
    for e in range(head.size):
        for c in range(0, P, L):
            at = min(c, P - L)
            d = load(rows, head[e] * P + at, lanes) - load(rows, tail[e] * P + at, lanes)
            store(d, to, e * P + at)


@kernel
def add_divergence(head: IndexArray, tail: IndexArray, U: FloatArray, out: FloatArray, lanes: Lanes) -> None:
    """Add Dᵀ U to out: +U_e at the head, −U_e at the tail."""
    P, flows, to = width(lanes, U.shape[1]), pointer(U), pointer(out)
    for e in range(head.size):
        for c in range(0, P, len(lanes)):
            at = min(c, P - len(lanes))
            u = later(load(flows, e * P + at, lanes), c - at)
            _add_to_both(u, to, head[e], tail[e], P, at, lanes)


@kernel
def smooth_edges(
    head: IndexArray,
    tail: IndexArray,
    W: FloatArray,
    r: FloatArray,
    smoothing: float,
    v: FloatArray,
    w: FloatArray,
    lanes: Lanes,
) -> float:
    """With d = W_i − W_j and s = √(‖d‖² + ε²): v = d/s, w = r/s; returns the smoothed penalty Σ r s."""
    P, L = width(lanes, W.shape[1]), len(lanes)
    rows, to = pointer(W), pointer(v)
    penalty = 0.0
    for e in range(head.size):
        square = smoothing * smoothing
        for c in range(0, P, L):
            d = _difference(rows, head[e], tail[e], P, c, lanes)
            square += total(d * d)
        s = np.sqrt(square)
        w[e] = r[e] / s
        penalty += r[e] * s
        for c in range(0, P, L):
            at = min(c, P - L)
            d = load(rows, head[e] * P + at, lanes) - load(rows, tail[e] * P + at, lanes)
            store(1.0 / s * d, to, e * P + at)
    return penalty


@kernel
def smoothed_penalty(
    head: IndexArray, tail: IndexArray, W: FloatArray, r: FloatArray, smoothing: float, lanes: Lanes
) -> float:
    """Σ r √(‖W_i − W_j‖² + ε²)."""
    P, rows = width(lanes, W.shape[1]), pointer(W)
    penalty = 0.0
    for e in range(head.size):
        square = smoothing * smoothing
        for c in range(0, P, len(lanes)):
            d = _difference(rows, head[e], tail[e], P, c, lanes)
            square += total(d * d)
        penalty += r[e] * np.sqrt(square)
    return penalty


@kernel
def subtract_scaled_divergence(
    head: IndexArray, tail: IndexArray, r: FloatArray, v: FloatArray, out: FloatArray, lanes: Lanes
) -> None:
    """Subtract Dᵀ (r v) from out."""
    P, edges, to = width(lanes, v.shape[1]), pointer(v), pointer(out)
    for e in range(head.size):
        for c in range(0, P, len(lanes)):
            at = min(c, P - len(lanes))
            z = later(-r[e] * load(edges, e * P + at, lanes), c - at)
            _add_to_both(z, to, head[e], tail[e], P, at, lanes)


@kernel
def subtract_curvature(
    head: IndexArray,
    tail: IndexArray,
    w: FloatArray,
    u: FloatArray,
    v: FloatArray,
    x: FloatArray,
    out: FloatArray,
    lanes: Lanes,
) -> None:
    """Subtract from out Dᵀ [w/2 (u vᵀ + v uᵀ)] D x, edge by edge."""
    P, L = width(lanes, x.shape[1]), len(lanes)
    rows, dual, smooth, to = pointer(x), pointer(u), pointer(v), pointer(out)
    for e in range(head.size):
        along_u, along_v = 0.0, 0.0
        for c in range(0, P, L):
            d = _difference(rows, head[e], tail[e], P, c, lanes)
            place = e * P + min(c, P - L)
            along_u += total(d * load(dual, place, lanes))
            along_v += total(d * load(smooth, place, lanes))
        along_u *= -0.5 * w[e]
        along_v *= -0.5 * w[e]
        for c in range(0, P, L):
            at = min(c, P - L)
            z = along_v * load(dual, e * P + at, lanes) + along_u * load(smooth, e * P + at, lanes)
            _add_to_both(later(z, c - at), to, head[e], tail[e], P, at, lanes)


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
    lanes: Lanes,
) -> tuple[float, float, float]:
    """Newton's step of u, back on the unit balls, and how far W (new) and u are from a solution.

    Returns, at the new pair, the slack Σ r (‖d‖ − u·d) over the edges longer than ``fused``, the same
    over all edges, and the mismatch Σ r ‖s u − d‖.
    """
    P = width(lanes, W.shape[1])
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
def send_to_roots(
    order: IndexArray,
    parent: IndexArray,
    edge: IndexArray,
    sign: FloatArray,
    residual: FloatArray,
    U: FloatArray,
) -> None:
    """Add to the flows U (E, P), in place, what carries the residual (T, P) of every task to its root."""
    for place in range(order.size - 1, -1, -1):
        t = order[place]
        if parent[t] < 0:
            continue
        for p in range(residual.shape[1]):
            U[edge[t], p] += sign[t] * residual[t, p]
            residual[parent[t], p] += residual[t, p]
            residual[t, p] = 0.0


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
    lanes: Lanes,
) -> None:
    """Send along a forest, leaves first, each part of the residual that its own task cannot absorb cheaply.

    A part b of the residual along an eigenvector of the scaled G_t with eigenvalue w costs the dual bound
    about min(b²/2w, bound_t stretch |b|); where that is more than ``affordable``, it moves to the parent.
    """
    P = width(lanes, residual.shape[1])
    parts, rows = np.empty(P), pointer(vectors)
    for place in range(order.size - 1, -1, -1):
        t = order[place]
        if parent[t] < 0:
            continue
        parts[:] = 0.0
        for p in range(P):
            share = residual[t, p] / scale[t, p]
            for a in range(P):
                parts[a] += share * number(rows, (t * P + p) * P + a)
        moves = False
        for a in range(P):
            cost = bound[t] * stretch[t, a] * abs(parts[a])
            if values[t, a] > 0.0:
                cost = min(cost, parts[a] * parts[a] / (2.0 * values[t, a]))
            if cost > affordable:
                moves = True
            else:
                parts[a] = 0.0
        if not moves:
            continue
        for p in range(P):
            moved = 0.0
            for a in range(P):
                moved += parts[a] * number(rows, (t * P + p) * P + a)
            moved *= scale[t, p]
            residual[t, p] -= moved
            residual[parent[t], p] += moved
            U[edge[t], p] += sign[t] * moved
