"""Order points so that equal slices of them are the leaves of a k-d tree."""

from __future__ import annotations

import numpy as np

from ccmtl_core.base.arrays import read_only
from ccmtl_core.base.types import FloatArray, IntArray
from ccmtl_core.kernels.compiled import kernel


def leaf_order(points: FloatArray, leaf: int, block: int) -> IntArray:
    """Order points (n, P) so that each run of ``leaf``, and each run of ``block``, lies in a small box.

    A block has a multiple of a leaf's points; the last leaf and the last block may be short. Each part is cut
    in two across the longest side of its box, as near the middle as whole blocks, or leaves, allow.

    Examples
    --------
    >>> leaf_order(np.array([[0.0], [9.0], [1.0], [8.0], [2.0]]), 2, 4).reshape(-1)[4:]
    array([1])
    """
    order = np.arange(len(points))
    _arrange(read_only(np.ascontiguousarray(points)), order, leaf, block)
    return order


@kernel
def _arrange(points: FloatArray, order: IntArray, leaf: int, block: int) -> None:
    """Part the points by quickselect, again and again."""
    n, P = points.shape
    key = np.empty(n)
    low, high = np.empty(P), np.empty(P)
    todo, left = np.empty((128, 2), dtype=np.int64), 1
    todo[0, 0], todo[0, 1] = 0, n
    while left > 0:
        left -= 1
        begin, end = todo[left]
        if end - begin <= leaf:
            continue
        low[:], high[:] = np.inf, -np.inf
        for i in range(begin, end):
            for p in range(P):
                low[p] = min(low[p], points[order[i], p])
                high[p] = max(high[p], points[order[i], p])
        across = np.argmax(high - low)
        for i in range(begin, end):
            key[i] = points[order[i], across]
        unit = block if end - begin > block else leaf
        cut = begin + ((end - begin + unit - 1) // unit + 1) // 2 * unit
        first, last = begin, end - 1
        while first < last:
            x, y, z = key[first], key[(first + last) // 2], key[last]
            pivot = max(min(x, y), min(max(x, y), z))
            i, j = first, last
            while i <= j:
                while key[i] < pivot:
                    i += 1
                while key[j] > pivot:
                    j -= 1
                if i <= j:
                    key[i], key[j] = key[j], key[i]
                    order[i], order[j] = order[j], order[i]
                    i += 1
                    j -= 1
            if cut > j and cut < i:
                break
            if cut <= j:
                last = j
            else:
                first = i
        todo[left, 0], todo[left, 1] = begin, cut
        todo[left + 1, 0], todo[left + 1, 1] = cut, end
        left += 2
