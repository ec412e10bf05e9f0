"""Loops over tasks and their neighbours, compiled once and cached; one thread each, without the GIL.

Letters as in ``base.types``. Adjacency is in compressed rows: the neighbours of task i are
``nbr[ptr[i]:ptr[i + 1]]``, those with a smaller number first, up to ``split[i]``; ``eid`` names the edge of
each entry. Rows of P numbers are taken in vectors (``vectors.py``), so all arrays of floats are contiguous.
Blocks are symmetric; narrow ones are read by columns, wide ones row by row (``block_products.py``). What
rows of neighbours hold is read by pointers: for an array, numba looks at each place whether it is counted
from the end, which takes as long as a product.
"""

from __future__ import annotations

import numpy as np

from ccmtl_core.base.types import FloatArray, IndexArray
from ccmtl_core.kernels.block_products import is_wide, put_product, room
from ccmtl_core.kernels.compiled import kernel
from ccmtl_core.kernels.vectors import Lanes, Pointer, later, load, number, pointer, store, width, zeros


@kernel
def adjacency(
    n: int, head: IndexArray, tail: IndexArray
) -> tuple[IndexArray, IndexArray, IndexArray, IndexArray]:
    """Compressed rows (ptr, split, nbr, eid) of the edges head[e] < tail[e]."""
    ptr = np.zeros(n + 1, np.int64)
    for e in range(head.size):
        ptr[head[e] + 1] += 1
        ptr[tail[e] + 1] += 1
    for i in range(n):
        ptr[i + 1] += ptr[i]
    place = ptr[:-1].copy()
    nbr = np.empty(2 * head.size, np.int32)
    eid = np.empty(2 * head.size, np.int32)
    for e in range(head.size):
        k = place[tail[e]]
        nbr[k], eid[k] = head[e], e
        place[tail[e]] += 1
    split = place.copy()
    for e in range(head.size):
        k = place[head[e]]
        nbr[k], eid[k] = tail[e], e
        place[head[e]] += 1
    return ptr, split, nbr, eid


@kernel
def spread_edge_weights(
    ptr: IndexArray, eid: IndexArray, w: FloatArray, data: FloatArray, diagonal: FloatArray
) -> None:
    """Copy edge weights into the rows and sum each row."""
    for i in range(diagonal.size):
        total = 0.0
        for k in range(ptr[i], ptr[i + 1]):
            data[k] = w[eid[k]]
            total += data[k]
        diagonal[i] = total


@kernel
def apply_system(
    ptr: IndexArray,
    nbr: IndexArray,
    data: FloatArray,
    diagonal: FloatArray,
    G: FloatArray,
    x: FloatArray,
    out: FloatArray,
    lanes: Lanes,
) -> None:
    """out = (graph Laplacian ⊗ I + blockdiag(G)) x."""
    P, L = width(lanes, x.shape[1]), len(lanes)
    near, ties = pointer(nbr), pointer(data)
    rows, blocks, to = pointer(x), pointer(G), pointer(out)
    own, sums = np.empty(room(P, lanes)), np.empty(room(P, lanes))
    for i in range(diagonal.size):
        if is_wide(P, lanes):
            _take(rows, i, 1.0, P, pointer(own), lanes)
            _close(pointer(own), P, lanes)
            put_product(blocks, i, pointer(own), P, to, lanes)
            _take(rows, i, -diagonal[i], P, pointer(sums), lanes)
            _add_ties(near, ties, ptr[i], ptr[i + 1], rows, P, pointer(sums), lanes)
            for c in range(0, P, L):
                at = min(c, P - L)
                less = later(load(pointer(sums), c, lanes), c - at)
                store(load(to, i * P + at, lanes) - less, to, i * P + at)
            continue
        for c in range(0, P, L):
            at = min(c, P - L)
            s = diagonal[i] * load(rows, i * P + at, lanes)
            for k in range(ptr[i], ptr[i + 1]):
                s -= number(ties, k) * load(rows, number(near, k) * P + at, lanes)
            for q in range(P):
                s += x[i, q] * load(blocks, (i * P + q) * P + at, lanes)
            store(s, to, i * P + at)
    own[0] = sums[0] = 0.0  # they are kept for as long as their pointers are used


@kernel
def _take(rows: Pointer, i: int, factor: float, P: int, own: Pointer, lanes: Lanes) -> None:
    """Put the vectors of a multiple of row i one behind the other."""
    for c in range(0, P, len(lanes)):
        store(factor * load(rows, i * P + min(c, P - len(lanes)), lanes), own, c)


@kernel
def _add_ties(
    near: Pointer, ties: Pointer, first: int, end: int, rows: Pointer, P: int, own: Pointer, lanes: Lanes
) -> None:
    """Add the rows of some neighbours, each times its tie, to vectors that are one behind the other."""
    for k in range(first, end):
        tie, j = number(ties, k), number(near, k) * P
        for c in range(0, P, len(lanes)):
            more = tie * load(rows, j + min(c, P - len(lanes)), lanes)
            store(load(own, c, lanes) + more, own, c)


@kernel
def _close(own: Pointer, P: int, lanes: Lanes) -> None:
    """Put zeros in the last vector for what the one before it holds."""
    last = room(P, lanes) - len(lanes)
    store(later(load(own, last, lanes), last + len(lanes) - P), own, last)


@kernel
def _multiply_block(blocks: Pointer, i: int, P: int, own: FloatArray, to: Pointer, lanes: Lanes) -> None:
    """Row i of ``to`` is the product of block i and the P numbers ``own``."""
    for c in range(0, P, len(lanes)):
        at = min(c, P - len(lanes))
        s = zeros(lanes)
        for q in range(P):
            s += own[q] * load(blocks, (i * P + q) * P + at, lanes)
        store(s, to, i * P + at)


@kernel
def smooth_forward(
    ptr: IndexArray,
    split: IndexArray,
    nbr: IndexArray,
    data: FloatArray,
    B: FloatArray,
    shift: FloatArray,
    r: FloatArray,
    x: FloatArray,
    residual: FloatArray,
    lanes: Lanes,
) -> None:
    """One block Gauss-Seidel sweep from x = 0, and the residual it leaves: one pass in all.

    The blocks B are inverses of the diagonal blocks plus shift_i I, of a shift above −1/2 of the task's ties.
    """
    n, P, L = x.shape[0], width(lanes, x.shape[1]), len(lanes)
    own = np.empty(room(P, lanes))
    near, ties = pointer(nbr), pointer(data)
    rows, right, blocks, left = pointer(x), pointer(r), pointer(B), pointer(residual)
    for i in range(n):
        if is_wide(P, lanes):
            _take(right, i, 1.0, P, pointer(own), lanes)
            _add_ties(near, ties, ptr[i], split[i], rows, P, pointer(own), lanes)
            _close(pointer(own), P, lanes)
            put_product(blocks, i, pointer(own), P, rows, lanes)
            continue
        for c in range(0, P, L):
            at = min(c, P - L)
            s = load(right, i * P + at, lanes)
            for k in range(ptr[i], split[i]):
                s += number(ties, k) * load(rows, number(near, k) * P + at, lanes)
            store(s, pointer(own), at)
        _multiply_block(blocks, i, P, own, rows, lanes)
    for i in range(n):  # task i saw its later neighbours as zero: what they have become since is the residual
        if is_wide(P, lanes):
            _take(rows, i, shift[i], P, pointer(own), lanes)
            _add_ties(near, ties, split[i], ptr[i + 1], rows, P, pointer(own), lanes)
            for c in range(0, P, L):
                store(load(pointer(own), c, lanes), left, i * P + min(c, P - L))
            continue
        for c in range(0, P, L):
            at = min(c, P - L)
            s = shift[i] * load(rows, i * P + at, lanes)
            for k in range(split[i], ptr[i + 1]):
                s += number(ties, k) * load(rows, number(near, k) * P + at, lanes)
            store(s, left, i * P + at)
    own[0] = 0.0  # it is kept for as long as its pointer is used


@kernel
def smooth_backward(
    ptr: IndexArray,
    nbr: IndexArray,
    data: FloatArray,
    B: FloatArray,
    shift: FloatArray,
    r: FloatArray,
    x: FloatArray,
    lanes: Lanes,
) -> None:
    """One block Gauss-Seidel sweep in reverse order, the adjoint of the forward sweep."""
    n, P, L = x.shape[0], width(lanes, x.shape[1]), len(lanes)
    own = np.empty(room(P, lanes))
    near, ties = pointer(nbr), pointer(data)
    rows, right, blocks = pointer(x), pointer(r), pointer(B)
    for i in range(n - 1, -1, -1):
        if is_wide(P, lanes):
            _take(right, i, 1.0, P, pointer(own), lanes)
            for c in range(0, P, L):
                mine = shift[i] * load(rows, i * P + min(c, P - L), lanes)
                store(load(pointer(own), c, lanes) + mine, pointer(own), c)
            _add_ties(near, ties, ptr[i], ptr[i + 1], rows, P, pointer(own), lanes)
            _close(pointer(own), P, lanes)
            put_product(blocks, i, pointer(own), P, rows, lanes)
            continue
        for c in range(0, P, L):
            at = min(c, P - L)
            s = load(right, i * P + at, lanes) + shift[i] * load(rows, i * P + at, lanes)
            for k in range(ptr[i], ptr[i + 1]):
                s += number(ties, k) * load(rows, number(near, k) * P + at, lanes)
            store(s, pointer(own), at)
        _multiply_block(blocks, i, P, own, rows, lanes)
    own[0] = 0.0  # it is kept for as long as its pointer is used


@kernel
def strong_neighbours(
    ptr: IndexArray, nbr: IndexArray, data: FloatArray, threshold: float, of_both: bool
) -> tuple[IndexArray, IndexArray]:
    """Rows (ptr, nbr) of ties that reach ``threshold`` of the largest tie, at both ends or at either."""
    n = ptr.size - 1
    near, ties = pointer(nbr), pointer(data)
    largest = np.zeros(n)
    for i in range(n):
        for k in range(ptr[i], ptr[i + 1]):
            largest[i] = max(largest[i], number(ties, k))
    rows = np.zeros(n + 1, np.int32)
    strong = np.empty(nbr.size + n, np.int32)
    count = 0
    for i in range(n):
        strong[count] = i
        count += 1
        for k in range(ptr[i], ptr[i + 1]):
            j = number(near, k)
            a, b = largest[i], largest[j]
            if number(ties, k) >= threshold * (max(a, b) if of_both else min(a, b)):
                strong[count] = j
                count += 1
        rows[i + 1] = count
    return rows, strong[:count].copy()


@kernel
def coarse_edges(
    ptr: IndexArray, nbr: IndexArray, eid: IndexArray, aggregate: IndexArray, n_coarse: int
) -> tuple[IndexArray, IndexArray, IndexArray]:
    """Edges (head, tail) between aggregates, and the coarse edge of each fine one (−1: inside one)."""
    n = aggregate.size
    start = np.zeros(n_coarse + 1, np.int64)
    for i in range(n):
        start[aggregate[i] + 1] += 1
    for a in range(n_coarse):
        start[a + 1] += start[a]
    member = np.empty(n, np.int64)
    place = start[:-1].copy()
    for i in range(n):
        member[place[aggregate[i]]] = i
        place[aggregate[i]] += 1
    n_fine = nbr.size // 2
    head, tail = np.empty(n_fine, np.int32), np.empty(n_fine, np.int32)
    edge_map = np.full(n_fine, -1, np.int32)
    seen_by = np.full(n_coarse, -1, np.int64)
    slot = np.empty(n_coarse, np.int32)
    near, edge, of = pointer(nbr), pointer(eid), pointer(aggregate)
    count = 0
    for a in range(n_coarse):
        for m in range(start[a], start[a + 1]):
            i = member[m]
            for k in range(ptr[i], ptr[i + 1]):
                b = number(of, number(near, k))
                if b <= a:
                    continue
                if seen_by[b] != a:
                    seen_by[b], slot[b] = a, count
                    head[count], tail[count] = a, b
                    count += 1
                edge_map[number(edge, k)] = slot[b]
    return head[:count].copy(), tail[:count].copy(), edge_map


@kernel
def sum_edge_weights(edge_map: IndexArray, w: FloatArray, coarse: FloatArray) -> None:
    """Sum the fine edges of each coarse edge."""
    coarse[:] = 0.0
    for e in range(w.size):
        if edge_map[e] >= 0:
            coarse[edge_map[e]] += w[e]


@kernel
def sum_blocks(aggregate: IndexArray, G: FloatArray, coarse: FloatArray) -> None:
    """Sum the Gram blocks of each aggregate: the pooled regression of its tasks."""
    coarse[:] = 0.0
    blocks, sums = G.reshape(len(G), -1), coarse.reshape(len(coarse), -1)
    for i in range(aggregate.size):
        for k in range(blocks.shape[1]):
            sums[aggregate[i], k] += blocks[i, k]


@kernel
def restrict(aggregate: IndexArray, fine: FloatArray, coarse: FloatArray, lanes: Lanes) -> None:
    """Sum over each aggregate."""
    P, L = width(lanes, fine.shape[1]), len(lanes)
    rows, sums = pointer(fine), pointer(coarse)
    coarse[:] = 0.0
    for i in range(aggregate.size):
        for c in range(0, P, L):
            at = min(c, P - L)
            place = aggregate[i] * P + at
            store(load(sums, place, lanes) + later(load(rows, i * P + at, lanes), c - at), sums, place)


@kernel
def prolong_add(aggregate: IndexArray, coarse: FloatArray, fine: FloatArray, lanes: Lanes) -> None:
    """Add to each task what its aggregate says."""
    P, L = width(lanes, fine.shape[1]), len(lanes)
    rows, sums = pointer(fine), pointer(coarse)
    for i in range(aggregate.size):
        for c in range(0, P, L):
            at = min(c, P - L)
            more = later(load(sums, aggregate[i] * P + at, lanes), c - at)
            store(load(rows, i * P + at, lanes) + more, rows, i * P + at)
