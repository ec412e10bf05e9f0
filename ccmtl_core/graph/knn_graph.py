"""The graph of tasks: each is joined to its k nearest tasks, found exactly by Euclidean distance.

The penalty sums over *directed* neighbour pairs, so two tasks that are each other's neighbours
count twice: one undirected edge of multiplicity 2 (He et al., AAAI 2019, section "Graph structure").
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.spatial import KDTree

from ccmtl_core.base.arguments import check_integer
from ccmtl_core.base.arrays import as_float64, as_integers, frozen, is_whole
from ccmtl_core.base.display import counted, shown
from ccmtl_core.base.exceptions import DataError, ParameterError
from ccmtl_core.base.frozen_value import FrozenValue
from ccmtl_core.base.types import FloatArray, IntArray
from ccmtl_core.graph.leaf_search import nearest_by_leaves
from ccmtl_core.kernels.components import components

TIE_RULE = (
    "Tasks with identical weights form a group. In a group of at most k tasks each task takes all the "
    "others, then the nearest other weights; among equally near tasks of one group the choice goes round "
    "the group, so that no task is preferred. In a larger group the tasks stand in a ring by index and each "
    "takes the k after it, except the first, which takes the k nearest tasks outside, as far as there are so "
    "many, and so ties the group to the rest. A task never takes itself."
)

_LEAVES_UP_TO = 32  # features; beyond, leaves overlap too much to be searched together
_BRUTE_FORCE_FROM = 65  # features; from there on, a k-d tree visits nearly every point
_BLOCK_BYTES = 64 * 1024**2
_MOST_TASKS = 2**31 - 1  # SciPy's graphs count in 32 bits
_MANY_POINTS = 10_000  # from which blocks of points search together


@dataclass(frozen=True, eq=False)
class TaskGraph(FrozenValue):
    """Undirected graph on tasks.

    Parameters
    ----------
    edges : (E, 2) int64
        Pairs i < j in lexicographic order, none twice.
    multiplicity : (E,) int64
        How often the pair counts in the penalty, 1 or 2 for a kNN graph.
    n_tasks : int
        T.
    tie_rule : str
        How equally near neighbours were chosen, in words.

    Raises
    ------
    DataError
        Pairs that are out of range, out of order or repeated; multiplicities below 1; what is no integer.

    Examples
    --------
    >>> graph = TaskGraph([[0, 1], [1, 2]], [2, 1], n_tasks=4)
    >>> graph.n_components
    2
    >>> graph.degree
    array([1, 2, 1, 0])
    """

    edges: IntArray
    multiplicity: IntArray
    n_tasks: int
    tie_rule: str = "given by the caller"

    def __post_init__(self) -> None:
        edges = as_integers(self.edges, "edges", also="f")
        multiplicity = as_integers(self.multiplicity, "multiplicity", also="f")
        if not is_whole(self.n_tasks) or not 0 <= self.n_tasks <= _MOST_TASKS:
            raise DataError(f"n_tasks must be an integer from 0 to {_MOST_TASKS}, not {self.n_tasks!r}")
        edges = edges.reshape(0, 2) if edges.shape == (0,) else edges
        if edges.ndim != 2 or edges.shape[1] != 2:
            raise DataError(f"edges must be (E, 2), a pair of tasks for each; got {edges.shape}")
        if multiplicity.shape != (len(edges),) or (multiplicity < 1).any():
            raise DataError(f"multiplicity must be ({len(edges)},) whole numbers from 1 up")
        if len(edges):
            low, high = edges[:, 0], edges[:, 1]
            if low.min() < 0 or high.max() >= self.n_tasks or (low >= high).any():
                raise DataError(f"each edge must be a pair i < j of tasks in [0, {self.n_tasks})")
            if (np.diff(low * self.n_tasks + high) <= 0).any():
                raise DataError("edges must be in lexicographic order, none twice")
        object.__setattr__(self, "edges", frozen(edges))
        object.__setattr__(self, "multiplicity", frozen(multiplicity))

    def __repr__(self) -> str:
        return shown(self, counted(self.n_tasks, "task"), counted(len(self.edges), "edge"))

    @classmethod
    def from_directed(
        cls, source: ArrayLike, target: ArrayLike, n_tasks: int, tie_rule: str = "given by the caller"
    ) -> TaskGraph:
        """Fold directed pairs into undirected edges that count how often each pair occurs.

        Raises
        ------
        DataError
            Pairs of one task, or out of range; numbers of tasks that are no integers.

        Examples
        --------
        >>> TaskGraph.from_directed([0, 1, 2], [1, 0, 1], n_tasks=3).multiplicity
        array([2, 1])
        """
        i, j = as_integers(source, "source"), as_integers(target, "target")
        if i.ndim != 1 or i.shape != j.shape:
            raise DataError(f"source and target must be two lists of one length; got {i.shape} and {j.shape}")
        if not is_whole(n_tasks):
            raise DataError(f"n_tasks must be an integer, not {n_tasks!r}")
        if ((i == j) | (np.minimum(i, j) < 0) | (np.maximum(i, j) >= n_tasks)).any():
            raise DataError(f"pairs must join two different tasks in [0, {n_tasks})")
        key, count = np.unique(np.minimum(i, j) * n_tasks + np.maximum(i, j), return_counts=True)
        return cls(np.stack(np.divmod(key, n_tasks), axis=1), count, n_tasks, tie_rule)

    @cached_property
    def component(self) -> IntArray:
        """(T,) The connected component of each task, numbered from 0."""
        return self._components[1]

    @cached_property
    def n_components(self) -> int:
        """How many connected components there are."""
        return self._components[0]

    @cached_property
    def degree(self) -> IntArray:
        """(T,) Edges at each task."""
        return np.bincount(self.edges.ravel(), minlength=self.n_tasks)

    def locality_order(self) -> IntArray:
        """(T,) The tasks in an order in which neighbours stand close: reverse Cuthill-McKee."""
        order: IntArray = reverse_cuthill_mckee(self._adjacency(), symmetric_mode=True).astype(np.int64)
        return order

    def reordered(self, order: IntArray) -> TaskGraph:
        """The same graph, renumbered: the new task t is the old ``order[t]``."""
        rows, _ = self._rows_in(order)
        low = np.repeat(np.arange(self.n_tasks), np.diff(rows.indptr))
        edges = np.stack([low, rows.indices], axis=1)
        return TaskGraph(edges, self.multiplicity[rows.data], self.n_tasks, self.tie_rule)

    def edges_in(self, order: IntArray) -> tuple[IntArray, IntArray]:
        """For each edge of ``reordered(order)``, its number here, and −1 where its ends have changed places.

        Examples
        --------
        >>> TaskGraph([[0, 1], [1, 2]], [1, 1], n_tasks=3).edges_in(np.array([2, 1, 0]))
        (array([1, 0]), array([-1, -1]))
        """
        rows, sign = self._rows_in(order)
        number: IntArray = rows.data.astype(np.int64)
        return number, sign[number]

    def _rows_in(self, order: IntArray) -> tuple[csr_array, IntArray]:
        """Numbers of the edges in a sparse matrix of the renumbered tasks, smaller ends first; signs."""
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        i, j = rank[self.edges].T
        numbers = np.arange(len(i), dtype=np.int32)
        ends = np.minimum(i, j), np.maximum(i, j)
        rows = csr_array((numbers, ends), shape=(self.n_tasks, self.n_tasks))
        rows.sort_indices()
        return rows, np.where(i < j, 1, -1)

    def _adjacency(self) -> csr_array:
        i, j = self.edges.T
        entries = np.ones(2 * len(i), dtype=np.int8), (np.r_[i, j], np.r_[j, i])
        return csr_array(entries, shape=(self.n_tasks, self.n_tasks))

    @cached_property
    def _components(self) -> tuple[int, IntArray]:
        count, label = components(self.edges, np.ones(len(self.edges), dtype=np.bool_), self.n_tasks)
        return count, label


def nearest_neighbour_graph(weights: ArrayLike, n_neighbors: int = 10) -> TaskGraph:
    """Join each row of ``weights`` to its ``n_neighbors`` nearest rows, by the rule :data:`TIE_RULE`.

    Deterministic, and every distance is exact. A task has at least ``n_neighbors`` edges and, ties
    included, not many times more: identical rows never make a hub.

    Parameters
    ----------
    weights : (T, P) array
        Usually the least-squares weights of each task alone.
    n_neighbors : int
        k; with fewer than k + 1 tasks each takes all the others.

    Returns
    -------
    TaskGraph
        Each task with its k nearest neighbours.

    Raises
    ------
    ParameterError
        ``n_neighbors`` that is no integer from 1 up.
    DataError
        Weights that are not finite or not two-dimensional.

    Examples
    --------
    >>> nearest_neighbour_graph([[0.0], [1.0], [3.0]], n_neighbors=1).edges
    array([[0, 1],
           [1, 2]])
    """
    W = as_float64(weights, "weights")
    check_neighbors(n_neighbors)
    if W.ndim != 2 or not np.isfinite(W).all():
        raise DataError("weights must be a (T, P) array of finite numbers")
    k = min(n_neighbors, len(W) - 1)
    if k < 1:
        none = np.empty(0, dtype=np.int64)
        return TaskGraph(none.reshape(0, 2), none, len(W), TIE_RULE)
    distinct, group = _distinct_rows(W)
    others = _nearest_others(distinct, k)
    if len(distinct) == len(W):
        source, target = np.repeat(np.arange(len(W)), k), others.ravel()
    else:
        source, target = _directed_pairs(group, others, k)
    return TaskGraph.from_directed(source, target, len(W), TIE_RULE)


def check_neighbors(n_neighbors: int) -> None:
    """Refuse a number of neighbours that is no integer, or below 1."""
    check_integer(n_neighbors, "n_neighbors")
    if n_neighbors < 1:
        raise ParameterError(f"n_neighbors must be 1 or more, not {n_neighbors}")


def check_graph(graph: object) -> None:
    """Refuse what is no graph; None means that one is to be made."""
    if graph is not None and not isinstance(graph, TaskGraph):
        raise ParameterError(f"graph must be a TaskGraph, not {graph!r}")


def _distinct_rows(W: FloatArray) -> tuple[FloatArray, IntArray]:
    """Distinct rows (D, P), in order of first appearance, and the number of each row's (T,)."""
    rows = (W + 0.0).view(np.dtype((np.void, W.itemsize * W.shape[1]))).ravel()  # + 0.0: −0 equals 0
    _, first, inverse = np.unique(rows, return_index=True, return_inverse=True)
    appearance = np.argsort(first, kind="stable")
    number = np.empty_like(appearance)
    number[appearance] = np.arange(len(appearance))
    return W[first[appearance]], number[inverse.ravel()]


def _nearest_others(points: FloatArray, k: int) -> IntArray:
    """(D, min(k, D − 1)) The nearest other points of each, itself excluded by index, nearest first."""
    n = len(points)
    k = min(k, n - 1)
    if k < 1:
        return np.empty((n, 0), dtype=np.int64)
    points = np.ldexp(points, -np.frexp(np.abs(points).max())[1])  # exact, and squares keep in range
    if points.shape[1] <= _LEAVES_UP_TO and n >= _MANY_POINTS:
        found = nearest_by_leaves(points, k + 1)
    elif points.shape[1] < _BRUTE_FORCE_FROM:
        found = np.asarray(KDTree(points, leafsize=32).query(points, k + 1)[1])
    else:
        found = np.concatenate(list(_brute_force(points, k + 1)))
    itself = found == np.arange(n)[:, None]
    itself[~itself.any(axis=1), -1] = True  # crowded out by ties at distance rounded to zero
    others: IntArray = found[~itself].reshape(n, k).astype(np.int64)
    return others


def _brute_force(points: FloatArray, k: int) -> Iterator[IntArray]:
    """Blocks of the (D, k) nearest points: candidates by matrix product, then exact distances."""
    points = points - points.mean(axis=0)  # a shared offset would cost the scores their digits
    squares = np.einsum("ij,ij->i", points, points)
    step = max(1, _BLOCK_BYTES // (8 * len(points)))
    n_candidates = min(len(points), 2 * k + 8)
    for start in range(0, len(points), step):
        block = points[start : start + step]
        scores = squares - 2.0 * (block @ points.T)
        candidates = np.argpartition(scores, n_candidates - 1, axis=1)[:, :n_candidates]
        candidates.sort(axis=1)
        exact = ((block[:, None, :] - points[candidates]) ** 2).sum(axis=2)
        nearest = np.argsort(exact, axis=1, kind="stable")[:, :k]
        yield np.take_along_axis(candidates, nearest, axis=1)


def _directed_pairs(group: IntArray, others: IntArray, k: int) -> tuple[IntArray, IntArray]:
    """k pairs (task, neighbour) for each task, from the groups of identical tasks and their neighbours."""
    size = np.bincount(group)
    members = np.argsort(group, kind="stable")
    first = np.concatenate([[0], np.cumsum(size)[:-1]])
    place = np.empty_like(group)
    place[members] = np.arange(len(group)) - first[group[members]]

    own_size = size[group]
    looks_outward = (own_size <= k) | (place == 0)
    outside = np.minimum(len(group) - own_size, k)
    inside = np.where(own_size > k, np.where(place == 0, k - outside, k), own_size - 1)
    source_in = np.repeat(np.arange(len(group)), inside)
    step = np.arange(len(source_in)) - np.repeat(np.cumsum(inside) - inside, inside) + 1
    g = group[source_in]
    target_in = members[first[g] + (place[source_in] + step) % size[g]]

    source_out = np.flatnonzero(looks_outward)
    wanted = k - inside[source_out]
    candidates = others[group[source_out]]
    reach = np.minimum(size[candidates], wanted[:, None])
    taken = np.clip(wanted[:, None] - (np.cumsum(reach, axis=1) - reach), 0, reach).ravel()
    chosen = np.repeat(candidates.ravel(), taken)
    source_out = np.repeat(np.repeat(source_out, candidates.shape[1]), taken)
    # Go round each group: its n-th taker, over all takers in order of index, gets member n mod size.
    by_group = np.argsort(chosen, kind="stable")
    turn = np.empty_like(chosen)
    starts = np.searchsorted(chosen[by_group], np.arange(len(size)))
    turn[by_group] = np.arange(len(chosen)) - starts[chosen[by_group]]
    target_out = members[first[chosen] + turn % size[chosen]]
    return np.concatenate([source_in, source_out]), np.concatenate([target_in, target_out])
