"""Rows in groups: where they are, and their sums."""

from __future__ import annotations

import numpy as np
import pytest

from ccmtl_core.kernels.grouping import group_rows, group_sums


def test_rows_keep_their_order_within_a_group() -> None:
    order, offsets = group_rows(np.array([2, 0, 2, 0, 3]), 5)
    assert order.tolist() == [1, 3, 0, 2, 4]
    assert offsets.tolist() == [0, 2, 2, 4, 5, 5]


def test_sums_of_values_and_of_rows() -> None:
    group, rows = np.array([2, 0, 2, 0]), np.array([[1.0, 5.0], [2.0, 6.0], [3.0, 7.0], [4.0, 8.0]])
    assert group_sums(group, rows, 4).tolist() == [[6.0, 14.0], [0.0, 0.0], [4.0, 12.0], [0.0, 0.0]]
    assert group_sums(group, rows[:, 0], 4).tolist() == [6.0, 0.0, 4.0, 0.0]


@pytest.mark.parametrize("shape", [(0,), (0, 2)])
def test_sums_of_no_rows_are_zeros(shape: tuple[int, ...]) -> None:
    sums = group_sums(np.zeros(0, dtype=np.int64), np.zeros(shape), 3)
    assert (sums.shape, sums.dtype, sums.any()) == ((3, *shape[1:]), np.float64, False)
