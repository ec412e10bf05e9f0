"""Statistics and a graph in, an upper bound on the strength at which every component is wholly fused out.

A component is fused from λ_fuse = min over U of max_e 2 ‖U_e‖ / m_e on, subject to DᵀU = g with
g_t = c_t − G_t w_pooled, the forces that the tasks exert on their common weights: with such a U the fused
weights are optimal. Any flow gives an upper bound. This one is a Laplacian flow U = m ρ D φ whose
conductances ρ are lowered, step by step, where the load is largest.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from ccmtl_core import TaskGraph
from ccmtl_core._types import FloatArray
from ccmtl_core.objective import row_norms
from ccmtl_core.single_task import Statistics

STEPS = 12
_LEAST_SHARE = 1e-6  # of the largest load: an idle edge must not become infinitely wide


def fusing_strength(statistics: Statistics, graph: TaskGraph) -> float:
    """Return the least load found, an upper bound on λ_fuse that further steps hardly lower."""
    i, j = graph.edges.T
    m = graph.multiplicity.astype(np.float64)
    g = statistics.xty - np.einsum("tpq,tq->tp", statistics.gram, fused_weights(statistics, graph))
    rho, least = np.ones(len(m)), np.inf
    for _ in range(STEPS):
        phi = _potentials(graph, m * rho, g)
        load = 2.0 * rho * row_norms(phi[i] - phi[j])
        most = float(load.max())
        least = min(least, most)
        rho /= np.sqrt(np.maximum(load / most, _LEAST_SHARE))
    return least


def fused_weights(statistics: Statistics, graph: TaskGraph) -> FloatArray:
    """Minimum-norm least squares of each component's pooled rows, (T, P)."""
    weights = np.empty_like(statistics.xty)
    for c in range(graph.n_components):
        inside = graph.component == c
        G, b = statistics.gram[inside].sum(axis=0), statistics.xty[inside].sum(axis=0)
        weights[inside] = np.linalg.lstsq(G, b)[0]
    return weights


def _potentials(graph: TaskGraph, conductance: FloatArray, g: FloatArray) -> FloatArray:
    """φ (T, P) with Dᵀ diag(conductance) D φ = g; each component's first task is held near zero."""
    T, (i, j) = graph.n_tasks, graph.edges.T
    total = np.bincount(i, conductance, T) + np.bincount(j, conductance, T)
    first = np.unique(graph.component, return_index=True)[1]
    total[first] += total[first] + (total[first] == 0)
    rows, columns = np.r_[i, j, np.arange(T)], np.r_[j, i, np.arange(T)]
    L = sparse.csc_array((np.r_[-conductance, -conductance, total], (rows, columns)), shape=(T, T))
    phi: FloatArray = splu(L).solve(g)
    return phi
