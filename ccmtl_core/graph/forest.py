"""Grow breadth-first trees of a graph, along which flows that do not balance are sent to the roots."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

from ccmtl_core.base.types import BoolArray, FloatArray, IndexArray
from ccmtl_core.graph.knn_graph import TaskGraph


class Forest(NamedTuple):
    """Trees that reach every task; all arrays are (T,)."""

    order: IndexArray
    """The tasks in breadth-first order."""
    parent: IndexArray
    """The parent of each task, −1 at a root."""
    edge: IndexArray
    """The edge to the parent."""
    sign: FloatArray
    """The sign of a flow from task to parent on that edge."""


def spanning_forest(graph: TaskGraph, preferred: BoolArray | None = None) -> Forest:
    """Grow trees from the preferred tasks (T,), or from one task of a component that has none.

    Examples
    --------
    >>> forest = spanning_forest(TaskGraph([[0, 1], [1, 2]], [1, 1], n_tasks=3))
    >>> forest.order, forest.parent
    (array([0, 1, 2]), array([-1,  0,  1]))
    """
    T, (i, j) = graph.n_tasks, graph.edges.T
    is_root = np.zeros(T, dtype=bool) if preferred is None else preferred.copy()
    by_component = np.lexsort((~is_root, graph.component))
    first = np.r_[True, np.diff(graph.component[by_component]) > 0]
    is_root[by_component[first]] = True
    roots = np.flatnonzero(is_root)
    rows, columns = np.concatenate([i, j, np.full(len(roots), T)]), np.concatenate([j, i, roots])
    adjacency = csr_array((np.ones(len(rows)), (rows, columns)), shape=(T + 1, T + 1))
    order, parent = breadth_first_order(adjacency, T, directed=True)
    order = order[order != T].astype(np.int64)
    parent = np.where(parent[:T] == T, -1, parent[:T]).astype(np.int64)

    child = np.flatnonzero(parent >= 0)
    low, high = np.minimum(child, parent[child]), np.maximum(child, parent[child])
    edge, sign = np.zeros(T, dtype=np.int64), np.zeros(T)
    edge[child] = np.searchsorted(i * T + j, low * T + high)
    sign[child] = np.where(child == low, 1.0, -1.0)
    return Forest(order, parent, edge, sign)
