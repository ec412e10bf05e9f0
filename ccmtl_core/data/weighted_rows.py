"""Turn rows with weights into rows without: each row is multiplied by the root of its weight.

A row of weight w counts as w equal rows. If x and y are multiplied by √w, and √w stands in place of the
column of ones, then plain products of columns are the weighted ones, and the loops need no weights.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ccmtl_core.base.arrays import as_float64, refuse_each
from ccmtl_core.base.exceptions import DataError
from ccmtl_core.base.types import FloatArray, IntArray
from ccmtl_core.data.task_dataset import TaskDataset


class WeightedRows(NamedTuple):
    """Rows multiplied by the root of their weights: √w x (n, P), √w y (n,), and √w itself (n,)."""

    X: FloatArray
    y: FloatArray
    ones: FloatArray

    def counts(self, order: IntArray, offsets: IntArray) -> IntArray:
        """Count the rows with a weight above zero in each group of the order, (S,)."""
        before = np.concatenate([[0], np.cumsum(self.ones[order] > 0.0)])
        return np.diff(before[offsets])


def weighted_rows(dataset: TaskDataset, sample_weight: ArrayLike) -> WeightedRows:
    """Multiply the n rows of a dataset by the roots of their weights (n,), finite, from 0 on and not all 0.

    Examples
    --------
    >>> data = TaskDataset.from_arrays([[[1.0], [2.0]]], [[3.0, 4.0]])
    >>> rows = weighted_rows(data, [4, 0])
    >>> rows.X.ravel(), rows.y, rows.counts(np.array([0, 1]), np.array([0, 2]))
    (array([2., 0.]), array([6., 0.]), array([1]))
    """
    weight = as_float64(sample_weight, "sample_weight")
    if weight.shape != dataset.y.shape:
        raise DataError(f"sample_weight must be {dataset.y.shape}, one for each row; got {weight.shape}")
    bad = np.flatnonzero(~((weight >= 0.0) & np.isfinite(weight)))
    refuse_each(
        bad, lambda row: f"sample_weight, row {row + 1}: {weight[row]} is not a finite number from 0 on"
    )
    if len(weight) and not weight.any():
        raise DataError("sample_weight: no row has a weight above 0")
    root = np.sqrt(weight)
    return WeightedRows(dataset.X * root[:, None], dataset.y * root, root)
