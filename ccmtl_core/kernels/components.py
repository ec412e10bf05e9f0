"""Find the connected components of a graph in one pass over its edges."""

from __future__ import annotations

import numpy as np

from ccmtl_core.base.types import BoolArray, FloatArray, IntArray
from ccmtl_core.kernels.compiled import kernel


@kernel
def components(edges: IntArray, joins: BoolArray, n_tasks: int) -> tuple[int, IntArray]:
    """Number of components, and that of each task (T,), along the edges (E, 2) marked in ``joins`` (E,).

    They are numbered in the order of their first tasks. Union-find, with the first task of each as its root
    and paths halved on the way (Tarjan & van Leeuwen, J. ACM 31, 1984).
    """
    root = np.arange(n_tasks)
    for e in range(joins.size):
        if joins[e]:
            i, j = _first(root, edges[e, 0]), _first(root, edges[e, 1])
            root[max(i, j)] = min(i, j)
    count = 0
    for t in range(n_tasks):  # a root comes before all others that lead to it
        if root[t] == t:
            root[t] = count
            count += 1
        else:
            root[t] = root[root[t]]
    return count, root


@kernel
def _first(root: IntArray, t: int) -> int:
    while root[t] != t:
        root[t] = root[root[t]]
        t = root[t]
    return t


@kernel
def equal_ends(edges: IntArray, W: FloatArray) -> BoolArray:
    """Which edges (E, 2) join tasks with exactly equal rows of W (T, P); (E,)."""
    equal = np.ones(len(edges), np.bool_)
    for e in range(len(edges)):
        i, j = edges[e]
        for p in range(W.shape[1]):
            if W[i, p] != W[j, p]:
                equal[e] = False
                break
    return equal
