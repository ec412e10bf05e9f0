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
