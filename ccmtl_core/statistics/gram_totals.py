"""Add up products and sums of grouped rows, each counted once or by its weight."""

from __future__ import annotations

import numpy as np

from ccmtl_core.base.types import FloatArray, IntArray
from ccmtl_core.data.weighted_rows import WeightedRows
from ccmtl_core.kernels.statistics.gram_kernel import accumulate_gram

Totals = tuple[FloatArray, ...]
"""gram, xty, yty, x_sum, y_sum: what the pass adds to."""


def zeros(n_tasks: int, n_features: int) -> Totals:
    """Totals of no rows."""
    T, P = n_tasks, n_features
    return np.zeros((T, P, P)), np.zeros((T, P)), np.zeros(T), np.zeros((T, P)), np.zeros(T)


def weighted_totals(
    rows: WeightedRows, order: IntArray, offsets: IntArray, slot: IntArray
) -> tuple[Totals, FloatArray]:
    """Totals of the groups of ``accumulate_gram``, and their sums of weights.

    The sums are the products with the column of roots that stands beside the features.
    """
    X = rows.with_ones()
    P = X.shape[1] - 1
    totals = zeros(len(slot), P + 1)
    accumulate_gram(X, rows.y, order, offsets, slot, *totals)
    gram, xty, yty = totals[:3]
    cut = gram[:, :P, :P], xty[:, :P], yty, gram[:, :P, P], xty[:, P]
    return tuple(map(np.ascontiguousarray, cut)), np.ascontiguousarray(gram[:, P, P])


def sum_of_tasks(array: FloatArray) -> FloatArray:
    """Sum over the first axis, pairwise (a plain sum over it would add one task after the other)."""
    columns = np.ascontiguousarray(array.reshape(len(array), -1).T)
    total: FloatArray = columns.sum(axis=1).reshape(array.shape[1:])
    return total
