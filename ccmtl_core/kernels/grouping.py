"""Order rows by their group, and sum over groups."""

from __future__ import annotations

import numpy as np

from ccmtl_core.base.arrays import read_only
from ccmtl_core.base.types import FloatArray, IntArray
from ccmtl_core.kernels.compiled import kernel


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


def group_sums(group: IntArray, values: FloatArray, n_groups: int) -> FloatArray:
    """Sum of the values (n,) or rows (n, P) of each group, (n_groups,) or (n_groups, P)."""
    if values.ndim == 1:
        return np.bincount(group, values, n_groups).astype(np.float64, copy=False)
    return np.stack([np.bincount(group, column, n_groups) for column in values.T], axis=1, dtype=np.float64)


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
