"""Groups of fused tasks, and the smaller problem in which each group is one task.

Where W_i = W_j on every edge inside a group, the objective is that of the groups: their Gram blocks and
cross-products add up, and so do the multiplicities of the edges between two of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ccmtl_core.base.arrays import read_only
from ccmtl_core.base.types import BoolArray, FloatArray, IntArray
from ccmtl_core.graph.knn_graph import TaskGraph
from ccmtl_core.kernels.components import components, equal_ends
from ccmtl_core.kernels.grouping import group_sums
from ccmtl_core.kernels.solver import edge_kernels
from ccmtl_core.solver.objective import FusionProblem


@dataclass(frozen=True, eq=False)
class Clusters:
    """A partition of tasks into groups that are connected by edges.

    Parameters
    ----------
    label : (T,) int64
        The group of each task, numbered from 0.
    size : (C,) int64
        Tasks of each group.

    Examples
    --------
    >>> clusters = Clusters.along(TaskGraph([[0, 1], [1, 2]], [1, 1], n_tasks=3), np.array([True, False]))
    >>> clusters.label, clusters.size
    (array([0, 0, 1]), array([2, 1]))
    """

    label: IntArray
    size: IntArray

    @classmethod
    def along(cls, graph: TaskGraph, fused: BoolArray) -> Clusters:
        """The groups that the edges marked in ``fused`` (E,) connect."""
        count, label = components(graph.edges, fused, graph.n_tasks)
        return cls(label, np.bincount(label, minlength=count))

    @classmethod
    def of_equal(cls, graph: TaskGraph, weights: FloatArray) -> Clusters:
        """The groups of tasks with exactly equal weights (T, P)."""
        return cls.along(graph, equal_ends(graph.edges, read_only(weights)))

    @property
    def n_clusters(self) -> int:
        """C, how many groups there are, single tasks included."""
        return len(self.size)

    @cached_property
    def members(self) -> tuple[IntArray, ...]:
        """The tasks of each group of two or more, largest group first."""
        order = np.argsort(self.label, kind="stable")
        groups = np.split(order, np.cumsum(self.size)[:-1])
        return tuple(sorted((g for g in groups if len(g) > 1), key=len, reverse=True))

    def mean(self, W: FloatArray) -> FloatArray:
        """Mean of the rows of W (T, P) over each group, (C, P)."""
        return group_sums(self.label, W, self.n_clusters) / self.size[:, None]


class MergedProblem:
    """The problem in which each group is one task.

    Parameters
    ----------
    problem : FusionProblem
        The problem of T tasks.
    clusters : Clusters
        Of the same tasks.

    Attributes
    ----------
    problem : FusionProblem
        The problem of C groups.
    edge : (E,) int64
        The merged edge of each edge, −1 inside a group.
    sign : (E,) float64
        +1 where both run the same way, else −1.
    """

    def __init__(self, problem: FusionProblem, clusters: Clusters) -> None:
        C, label = clusters.n_clusters, clusters.label
        head, tail = label[problem.head], label[problem.tail]
        between = head != tail
        key = np.minimum(head, tail) * C + np.maximum(head, tail)
        distinct, inverse = np.unique(key[between], return_inverse=True)
        multiplicity = np.bincount(
            inverse, problem.graph.multiplicity[between], minlength=len(distinct)
        ).astype(np.int64)
        self.edge = np.full(len(head), -1, dtype=np.int64)
        self.edge[between] = inverse
        self.sign = np.where(head < tail, 1.0, -1.0)
        graph = TaskGraph(np.stack(np.divmod(distinct, C), axis=1), multiplicity, C)
        self.problem = FusionProblem(problem.quadratic.summed(label, C), graph, problem.fusion_strength)


class Neighbourhood:
    """The problem of the tasks in groups of two or more, or of their neighbours too, all else held fast.

    The flows of edges to and among the other tasks stay as they are, so that they count as part of Xᵀy.

    Parameters
    ----------
    problem : FusionProblem
        The problem of T tasks.
    clusters : Clusters
        Of the same tasks.
    with_neighbours : bool
        Whether the neighbours of tasks that fuse may move too.

    Attributes
    ----------
    tasks : (S,) int64
        The tasks in it.
    edges : (F,) int64
        The edges between two of them.
    clusters : Clusters
        Of these tasks.
    """

    def __init__(self, problem: FusionProblem, clusters: Clusters, *, with_neighbours: bool) -> None:
        self._problem = problem
        head, tail = problem.head, problem.tail
        fused = clusters.size[clusters.label] > 1
        near = fused.copy()
        if with_neighbours:
            near[head[fused[tail]]] = near[tail[fused[head]]] = True
        self.tasks, self.edges = np.flatnonzero(near), np.flatnonzero(near[head] & near[tail])
        label, size = np.unique(clusters.label[self.tasks], return_inverse=True, return_counts=True)[1:]
        self.clusters = Clusters(label, size)

    def with_flows(self, flows: FloatArray) -> FusionProblem:
        """The problem of these tasks, for flows (E, P) of all edges."""
        problem, tasks, edges = self._problem, self.tasks, self.edges
        place = np.empty(problem.graph.n_tasks, dtype=np.int64)
        place[tasks] = np.arange(len(tasks))
        graph = TaskGraph(place[problem.graph.edges[edges]], problem.graph.multiplicity[edges], len(tasks))
        held = problem.divergence(flows)[tasks]
        edge_kernels.add_divergence(
            place[problem.head[edges]].astype(np.int32), place[problem.tail[edges]].astype(np.int32),
            -flows[edges], held, problem.lanes,
        )  # fmt: skip
        return FusionProblem(problem.quadratic.pulled(tasks, held), graph, problem.fusion_strength)
