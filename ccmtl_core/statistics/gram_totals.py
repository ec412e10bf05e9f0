"""Add up what the Gram form holds: products and sums, each row once or by its weight."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ccmtl_core.base.types import FloatArray, IntArray
from ccmtl_core.data.weighted_rows import WeightedRows
from ccmtl_core.kernels.statistics.gram_kernel import accumulate_gram

Totals = tuple[FloatArray, ...]
"""gram, xty, yty, x_sum, y_sum, weight: what adds up."""


def zeros(n_tasks: int, n_features: int) -> Totals:
    """Return totals of no rows."""
    T, P = n_tasks, n_features
    shapes: list[tuple[int, ...]] = [(T, P, P), (T, P), (T,), (T, P), (T,), (T,)]
    return tuple(map(np.zeros, shapes))


def add_rows(
    sums: Sequence[FloatArray],
    X: FloatArray,
    y: FloatArray,
    order: IntArray,
    offsets: IntArray,
    slot: IntArray,
) -> bool:
    """Add groups of rows, as ``accumulate_gram`` takes them; return whether the totals need no check."""
    *products, weight = sums
    weight[slot] += np.diff(offsets)
    return accumulate_gram(X, y, order, offsets, slot, *products)


def weighted_totals(rows: WeightedRows, order: IntArray, offsets: IntArray, slot: IntArray) -> Totals:
    """Return totals of groups of weighted rows; sums are products with the column of the weights' roots."""
    X = np.column_stack([rows.X, rows.ones])
    P = X.shape[1] - 1
    totals = zeros(len(slot), P + 1)
    add_rows(totals, X, rows.y, order, offsets, slot)
    gram, xty, yty = totals[:3]
    cut = gram[:, :P, :P], xty[:, :P], yty, gram[:, :P, P], xty[:, P], gram[:, P, P]
    return tuple(map(np.ascontiguousarray, cut))


def sum_of_tasks(array: FloatArray) -> FloatArray:
    """Sum over the first axis, pairwise; NumPy would add one task after the other."""
    columns = np.ascontiguousarray(array.reshape(len(array), -1).T)
    total: FloatArray = columns.sum(axis=1).reshape(array.shape[1:])
    return total
