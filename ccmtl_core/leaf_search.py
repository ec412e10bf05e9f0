"""Points in, the k nearest points of each out: exact, and leaf against leaf.

In a cloud of ten dimensions each search looks into very many leaves of a k-d tree, and walking down to them
costs far more than the distances. Here the points of a leaf search together: the other leaves are visited
from the nearest box outwards until none can hold a nearer point, and the distances from a point to a leaf
are one vector loop.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from ccmtl_core._types import FloatArray, IntArray
from ccmtl_core.compiled import kernel
from ccmtl_core.threads import sharing, slices

_LEAF = 64  # points, at most
_PARTS = 8  # of the leaves, shared between threads
_SURELY = 1.0 - 1e-12  # bounds and distances are rounded


def nearest_by_leaves(points: FloatArray, k: int) -> IntArray:
    """Find the k nearest points of each point, itself among them unless k others lie on it.

    Parameters
    ----------
    points : (n, P) float64
        k at least.
    k : int
        How many.

    Returns
    -------
    (n, k) int64
        Nearest first; of equally near points those of lower number.

    Examples
    --------
    >>> nearest_by_leaves(np.array([[0.0], [1.0], [3.0]]), 2)
    array([[0, 1],
           [1, 0],
           [2, 1]])
    """
    tree = cKDTree(points, leafsize=_LEAF)
    order, bounds = np.asarray(tree.indices, dtype=np.int64), _leaf_bounds(tree)
    columns = np.ascontiguousarray(points[order].T)
    low = np.minimum.reduceat(columns, bounds[:-1], axis=1).T.copy()
    high = np.maximum.reduceat(columns, bounds[:-1], axis=1).T.copy()
    found = np.empty((len(points), k), dtype=np.int64)

    def search(leaves: slice) -> None:
        _search(columns, order, bounds, low, high, leaves.start, leaves.stop, found)

    with sharing(_PARTS) as share:
        share(search, slices(len(low), _PARTS))
    return found


def _leaf_bounds(tree: cKDTree) -> IntArray:
    """(L + 1,) Where each leaf begins in ``tree.indices``."""
    todo: list[Any] = [tree.tree]
    begins = []
    while todo:
        node = todo.pop()
        if node.split_dim == -1:
            begins.append(node.start_idx)
        else:
            todo += [node.greater, node.lesser]
    return np.array([*sorted(begins), tree.n], dtype=np.int64)


@kernel
def _search(
    columns: FloatArray,
    order: IntArray,
    bounds: IntArray,
    low: FloatArray,
    high: FloatArray,
    first_leaf: int,
    last_leaf: int,
    found: IntArray,
) -> None:
    """Fill in the neighbours of the points of some leaves."""
    P, k, L = len(columns), found.shape[1], len(low)
    gap, distance = np.empty(L), np.empty(_LEAF)
    near, number = np.empty((_LEAF, k)), np.empty((_LEAF, k), dtype=np.int64)
    for A in range(first_leaf, last_leaf):
        begin, end = bounds[A], bounds[A + 1]
        near[:], number[:] = np.inf, len(order)
        for B in range(L):
            gap[B] = 0.0
            for p in range(P):
                between = max(low[B, p] - high[A, p], low[A, p] - high[B, p], 0.0)
                gap[B] += between * between
        gap[A] = -1.0
        worst = _visit(columns, order, bounds, low, high, A, begin, end, distance, near, number)
        candidates = np.flatnonzero(gap * _SURELY <= worst)
        for B in candidates[np.argsort(gap[candidates])]:
            if gap[B] * _SURELY > worst:
                break
            if B != A:
                worst = _visit(columns, order, bounds, low, high, B, begin, end, distance, near, number)
        for a in range(end - begin):
            found[order[begin + a]] = number[a]


@kernel
def _visit(
    columns: FloatArray,
    order: IntArray,
    bounds: IntArray,
    low: FloatArray,
    high: FloatArray,
    B: int,
    begin: int,
    end: int,
    distance: FloatArray,
    near: FloatArray,
    number: IntArray,
) -> float:
    """Let the points begin:end look into leaf B; return the farthest k-th distance among them."""
    P, k = len(columns), near.shape[1]
    first, size = bounds[B], bounds[B + 1] - bounds[B]
    worst = 0.0
    for a in range(end - begin):
        least = 0.0
        for p in range(P):
            x = columns[p, begin + a]
            outside = max(low[B, p] - x, x - high[B, p], 0.0)
            least += outside * outside
        if least * _SURELY <= near[a, k - 1]:
            distance[:size] = 0.0
            for p in range(P):
                x = columns[p, begin + a]
                for j in range(size):
                    step = columns[p, first + j] - x
                    distance[j] += step * step
            for j in range(size):
                if distance[j] <= near[a, k - 1]:
                    _insert(distance[j], order[first + j], near[a], number[a])
        worst = max(worst, near[a, k - 1])
    return worst


@kernel
def _insert(distance: float, point: int, near: FloatArray, number: IntArray) -> None:
    """Put a point in its place among the nearest so far, if it belongs there."""
    place = len(near) - 1
    if distance == near[place] and point > number[place]:
        return
    while place > 0 and (
        distance < near[place - 1] or (distance == near[place - 1] and point < number[place - 1])
    ):
        near[place], number[place] = near[place - 1], number[place - 1]
        place -= 1
    near[place], number[place] = distance, point
