"""Find the k nearest points of each point exactly, searching for whole blocks of points at once.

In a cloud of ten dimensions each search looks at very many cells of a k-d tree, and what counts is how fast
a box or a point is ruled out. The points of a block search together, through the other blocks from the
nearest centre outwards, and through the leaves of a block: squared distances to boxes and to the points of a
leaf are vector loops over single precision. Only what these cannot rule out, with a margin for all that
rounding can have done, is measured in double precision, so that the answer is that of double precision.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ccmtl_core.base.threads import sharing, slices
from ccmtl_core.base.types import FloatArray, IntArray
from ccmtl_core.graph.leaf_order import leaf_order
from ccmtl_core.kernels.compiled import kernel
from ccmtl_core.kernels.vectors import Lanes

_LEAF = 32  # points
_LEAVES = 16  # of a block; a number below 2²⁴ says which of them
_BLOCK = _LEAF * _LEAVES
_PARTS = 8  # of the blocks, shared between threads
_WIDTHS = 2  # features are filled up to a multiple of it, for each of which there is one compilation
_FINE = 1e-3  # of a small leaf: the margin that single precision may need
_SMALL = 1  # per cent of the leaves are smaller

AnyFloats = NDArray[np.floating[Any]]  # single precision or double
_BITS = 2.0 ** np.arange(_LEAVES)


class _Blocks(NamedTuple):
    """Points in blocks of leaves, in single precision where that is fine enough (R), and their boxes.

    The last block is filled up with points at infinity, which no box contains.
    """

    order: IntArray  # (n,) the number of each point
    exact: FloatArray  # (L, width, leaf) float64
    rounded: AnyFloats  # (L, width, leaf) R
    low: AnyFloats  # (B, width, 16) R, of the leaves of each block
    high: AnyFloats
    block_low: AnyFloats  # (width, B) R
    block_high: AnyFloats
    bits: AnyFloats  # (16,) R, powers of two
    margin: float  # what rounding of the coordinates can add to a distance
    stretch: float  # what rounding of the sums can, as a factor


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
    blocks = _blocks(points)
    found = np.empty((len(points), k), dtype=np.int64)

    def search(part: slice) -> None:
        for A in range(part.start, part.stop):
            _search_block(blocks, A, found)

    with sharing(_PARTS) as share:
        share(search, slices(blocks.block_low.shape[1], _PARTS))
    return found


def _blocks(points: FloatArray) -> _Blocks:
    """Arrange the points, and draw boxes around the leaves and the blocks."""
    (n, P), eps = points.shape, np.finfo(np.float32).eps
    order = leaf_order(points, _LEAF, _BLOCK)
    n_blocks = -(-n // _BLOCK)
    exact = np.zeros((n_blocks * _BLOCK, -(-P // _WIDTHS) * _WIDTHS))
    exact[:n, :P] = np.ldexp(points[order], -np.frexp(np.abs(points).max())[1])  # squares keep in range
    centred = exact - exact[:n].mean(axis=0)
    exact[n:] = np.inf
    reach = float(np.abs(centred[:n]).max())
    centred[n:] = np.inf
    low = centred.reshape(n_blocks, _LEAVES, _LEAF, -1).min(axis=2)
    centred[n:] = -np.inf
    high = centred.reshape(n_blocks, _LEAVES, _LEAF, -1).max(axis=2)
    centred[n:] = np.inf
    diagonal = np.sqrt(((high - low) ** 2).sum(axis=2)).ravel()[: -(-n // _LEAF)]
    is_fine = np.sqrt(P) * eps * reach <= _FINE * np.percentile(diagonal, _SMALL)
    single = np.float32 if is_fine else np.float64
    eps = np.finfo(single).eps
    rounded: AnyFloats = centred.astype(single)
    box_low: AnyFloats = np.ascontiguousarray(low.transpose(0, 2, 1), dtype=single)
    box_high: AnyFloats = np.ascontiguousarray(high.transpose(0, 2, 1), dtype=single)
    return _Blocks(
        order,
        np.asarray(_in_leaves(exact), dtype=np.float64),
        _in_leaves(rounded),
        box_low,
        box_high,
        np.ascontiguousarray(box_low.min(axis=2).T),
        np.ascontiguousarray(box_high.max(axis=2).T),
        _BITS.astype(single),
        float(np.sqrt(P) * eps * reach),
        float(1.0 + (exact.shape[1] + 8) * eps),
    )


def _in_leaves(points: AnyFloats) -> AnyFloats:
    """(n, P) to (L, P, leaf)."""
    leaves = points.reshape(-1, _LEAF, points.shape[1])
    return np.ascontiguousarray(leaves.transpose(0, 2, 1))


def _search_block(blocks: _Blocks, A: int, found: IntArray) -> None:
    """Fill in the neighbours of the points of one block."""
    n, k, leaves = len(found), found.shape[1], slice(A * _LEAVES, (A + 1) * _LEAVES)
    rounded, margin, stretch = blocks.rounded, blocks.margin, blocks.stretch
    own = blocks.order[A * _BLOCK : (A + 1) * _BLOCK]
    x = rounded[leaves].transpose(1, 0, 2).reshape(rounded.shape[1], _BLOCK)
    limit = np.full(_BLOCK, np.inf, dtype=rounded.dtype)
    near, number = np.full((len(own), k), np.inf), np.full((len(own), k), n)

    def look_into(others: IntArray, between: AnyFloats) -> float:
        worst: float = _look_into(
            others, between, A, x, blocks.order, blocks.exact, rounded, blocks.low, blocks.high,
            blocks.block_low, blocks.block_high, blocks.bits, margin, stretch, limit, near, number,
            (0,) * len(x),
        )  # fmt: skip
        return worst

    worst = look_into(np.array([A]), np.zeros(1, dtype=rounded.dtype))
    low, high = blocks.block_low, blocks.block_high
    apart = np.maximum(low - high[:, A, None], low[:, A, None] - high)
    between = (np.maximum(apart, 0) ** 2).sum(axis=0)
    others = np.flatnonzero((between <= worst) & (np.arange(len(between)) != A))
    center = low[:, others] + high[:, others]
    nearest_first = np.argsort(((center - low[:, A, None] - high[:, A, None]) ** 2).sum(axis=0))
    others = others[nearest_first]
    look_into(others, between[others])
    found[own] = number


@kernel
def _look_into(
    others: IntArray,
    between: AnyFloats,
    A: int,
    x: AnyFloats,
    order: IntArray,
    exact: FloatArray,
    rounded: AnyFloats,
    low: AnyFloats,
    high: AnyFloats,
    block_low: AnyFloats,
    block_high: AnyFloats,
    bits: AnyFloats,
    margin: float,
    stretch: float,
    limit: AnyFloats,
    near: FloatArray,
    number: IntArray,
    lanes: Lanes,
) -> float:
    """Let the points x of block A look into other blocks; return the largest of their limits.

    A limit bounds the rounded squared distance to whatever is as near as the k-th of the nearest so far.
    """
    size, k = near.shape
    gap, distance, worst = np.empty_like(limit), np.empty(_LEAF), limit[0]
    for a in range(size):
        worst = max(worst, limit[a])
    for v in range(len(others)):
        if between[v] > worst:
            continue
        B = others[v]
        _gaps_to_box(x, block_low, block_high, B, bits, gap, lanes)
        worst = bits[0] - bits[0]
        for a in range(size):
            if gap[a] <= limit[a]:
                leaves = _leaves_within(x, a, low, high, B, limit[a], bits, lanes)
                while leaves > 0:
                    place = _highest_bit(leaves)
                    leaves -= 1 << place
                    leaf = B * _LEAVES + place
                    if _count_within(x, a, rounded, leaf, limit[a], bits, lanes) > 0:
                        _measure(exact, A * _LEAVES + a // _LEAF, a, leaf, order, near, number, distance)
                        radius = (np.sqrt(near[a, k - 1]) + margin) * stretch
                        limit[a] = radius * radius * stretch
            worst = max(worst, limit[a])
    return float(worst)


@kernel
def _gaps_to_box(
    x: AnyFloats, low: AnyFloats, high: AnyFloats, B: int, bits: AnyFloats, gap: AnyFloats, lanes: Lanes
) -> None:
    """Squared distance of each point to a box, zero inside."""
    P, zero = len(lanes), bits[0] - bits[0]
    for a in range(x.shape[1]):
        square = zero
        for p in range(P):
            below, above = low[p, B] - x[p, a], x[p, a] - high[p, B]
            outside = below if below > above else above
            outside = outside if outside > zero else zero
            square += outside * outside
        gap[a] = square


@kernel
def _leaves_within(
    x: AnyFloats, a: int, low: AnyFloats, high: AnyFloats, B: int, limit: float, bits: AnyFloats, lanes: Lanes
) -> int:
    """The leaves of block B whose box is within the limit of point a, as the bits of a number.

    A sum of powers of two, because sums are what compilers turn into vector loops.
    """
    P, zero = len(lanes), bits[0] - bits[0]
    which = zero
    for j in range(_LEAVES):
        square = zero
        for p in range(P):
            below, above = low[B, p, j] - x[p, a], x[p, a] - high[B, p, j]
            outside = below if below > above else above
            outside = outside if outside > zero else zero
            square += outside * outside
        which += bits[j] if square <= limit else zero
    return int(which)


@kernel
def _count_within(
    x: AnyFloats, a: int, rounded: AnyFloats, leaf: int, limit: float, bits: AnyFloats, lanes: Lanes
) -> float:
    """How many points of a leaf are within the limit of point a."""
    P, zero = len(lanes), bits[0] - bits[0]
    count = zero
    for j in range(_LEAF):
        square = zero
        for p in range(P):
            step = rounded[leaf, p, j] - x[p, a]
            square += step * step
        count += bits[0] if square <= limit else zero
    return float(count)


@kernel
def _highest_bit(number: int) -> int:
    """The place of the highest bit of a number from 1 to 2²⁴ − 1: the exponent, as float32."""
    return int(np.float32(number).view(np.int32) >> 23) - 127


@kernel
def _measure(
    exact: FloatArray,
    own: int,
    a: int,
    leaf: int,
    order: IntArray,
    near: FloatArray,
    number: IntArray,
    distance: FloatArray,
) -> None:
    """Put the points of a leaf that are near enough to point a, of leaf ``own``, among its nearest so far."""
    last, size = near.shape[1] - 1, min(len(order) - leaf * _LEAF, _LEAF)
    distance[:] = 0.0
    for p in range(exact.shape[1]):
        x = exact[own, p, a % _LEAF]
        for j in range(_LEAF):
            step = exact[leaf, p, j] - x
            distance[j] += step * step
    for j in range(size):
        if distance[j] <= near[a, last]:
            _insert(distance[j], order[leaf * _LEAF + j], a, near, number)


@kernel
def _insert(distance: float, point: int, a: int, near: FloatArray, number: IntArray) -> None:
    """Put a point in its place among the nearest so far to point a, if it belongs there."""
    place = near.shape[1] - 1
    if distance == near[a, place] and point > number[a, place]:
        return
    while place > 0 and (
        distance < near[a, place - 1] or (distance == near[a, place - 1] and point < number[a, place - 1])
    ):
        near[a, place], number[a, place] = near[a, place - 1], number[a, place - 1]
        place -= 1
    near[a, place], number[a, place] = distance, point
