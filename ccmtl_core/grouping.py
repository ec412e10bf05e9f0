"""The group of each row in, the rows' order by group out: a counting sort."""

from __future__ import annotations

import numpy as np

from ccmtl_core._types import IntArray
from ccmtl_core.arrays import read_only
from ccmtl_core.compiled import kernel


def group_rows(group: IntArray, n_groups: int) -> tuple[IntArray, IntArray]:
    """Counting sort: where the rows of each group are.

    Parameters
    ----------
    group : (n,) int64 in [0, n_groups)
        The group of each row.
    n_groups : int
        How many groups.

    Returns
    -------
    order : (n,) int64
        Row numbers, group after group, in their old order within a group.
    offsets : (n_groups + 1,) int64
        ``order[offsets[s]:offsets[s + 1]]`` are the rows of group s.
    """
    order, offsets = _counting_sort(read_only(group), n_groups)
    return order, offsets


@kernel
def _counting_sort(group: IntArray, n_groups: int) -> tuple[IntArray, IntArray]:
    offsets = np.zeros(n_groups + 1, dtype=np.int64)
    for i in range(len(group)):
        offsets[group[i] + 1] += 1
    for s in range(n_groups):
        offsets[s + 1] += offsets[s]
    free = offsets[:-1].copy()
    order = np.empty(len(group), dtype=np.int64)
    for i in range(len(group)):
        order[free[group[i]]] = i
        free[group[i]] += 1
    return order, offsets
