"""Which tasks share their weights exactly, as fused tasks do; and the graph that they were fused along."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ccmtl_core import TaskGraph

_EDGES_PER_ROW = 64


@dataclass(frozen=True)
class Groups:
    """Groups of two or more tasks, the largest first; of those of one size, the first task decides.

    ``label`` is (T,), -1 for a task that is alone; ``size`` is (G,).
    """

    label: NDArray[np.int64]
    size: NDArray[np.int64]

    @classmethod
    def of_equal(cls, weights: NDArray[np.float64]) -> Groups:
        """Return the groups of equal rows of ``weights`` (T, P).

        Examples
        --------
        >>> Groups.of_equal(np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]])).label
        array([ 0, -1,  0])
        """
        _, inverse, count = np.unique(weights[:, 0], return_inverse=True, return_counts=True)
        perhaps = np.flatnonzero(count[inverse] > 1)  # few rows, where hardly any are equal
        found: dict[bytes, int] = {}
        raw = np.full(len(weights), -1)
        for row in perhaps.tolist():
            raw[row] = found.setdefault((weights[row] + 0.0).tobytes(), len(found))  # -0.0 is 0.0
        size = np.bincount(raw[perhaps], minlength=len(found))
        order = np.argsort(-size, kind="stable")[: int((size > 1).sum())]
        renumbered = np.full(len(found) + 1, -1)  # the last is for tasks that are alone
        renumbered[order] = np.arange(len(order))
        return cls(renumbered[raw], size[order])

    @cached_property
    def _order(self) -> NDArray[np.int64]:
        return np.argsort(self.label, kind="stable")

    def members(self, group: int) -> NDArray[np.int64]:
        """Return the rows of the tasks of one group."""
        first = len(self.label) - int(self.size[group:].sum())
        return self._order[first : first + int(self.size[group])]


def graph_matrix(graph: TaskGraph) -> NDArray[np.float64]:
    """Return the edges i < j as whole numbers 2 (i T + j) + mutual, 64 in a row, NaN after the last."""
    i, j = graph.edges.T
    codes = 2.0 * (i * graph.n_tasks + j) + (graph.multiplicity > 1)
    rows = np.full((max(1, -(-len(codes) // _EDGES_PER_ROW)), _EDGES_PER_ROW), np.nan)
    rows.ravel()[: len(codes)] = codes
    return rows


def neighbours(matrix: NDArray[np.float64], n_tasks: int, task: int) -> list[tuple[int, bool]]:
    """Return the tasks that an edge joins to ``task``, and whether each has the other among its nearest.

    Examples
    --------
    >>> neighbours(graph_matrix(TaskGraph([[0, 1], [1, 2]], [2, 1], n_tasks=3)), 3, 1)
    [(0, True), (2, False)]
    """
    codes = matrix[~np.isnan(matrix)].astype(np.int64)
    i, j = np.divmod(codes >> 1, n_tasks)
    mutual = codes & 1 == 1
    touching = (i == task) | (j == task)
    other = (i + j)[touching] - task
    return list(zip(other.tolist(), mutual[touching].tolist(), strict=True))
