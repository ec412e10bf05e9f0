"""Numbers of folds, tasks and features that are none, and blocks that are none, are refused in words."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from ccmtl_core import DataError, ParameterError, SufficientStatistics, TaskDataset, TriangularStatistics
from ccmtl_core.data.row_blocks import check_sizes

KINDS = (SufficientStatistics, TriangularStatistics)
DATA = TaskDataset.from_arrays([np.ones((4, 1))], [np.arange(4.0)])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_folds", [1.5, True, None, "2", 0, -1, 10**9, 2**70])
def test_a_number_of_folds_that_is_none_or_absurd_is_refused(kind: Any, n_folds: Any) -> None:
    with pytest.raises(ParameterError, match="n_folds"):
        kind.by_fold(DATA, [0, 1, 0, 1], n_folds)


@pytest.mark.parametrize("kind", KINDS)
def test_some_folds_may_be_empty(kind: Any) -> None:
    parts = kind.by_fold(DATA, [0, 1, 0, 1], np.int64(10))
    assert [int(part.n_samples[0]) for part in parts] == [2, 2] + [0] * 8


@pytest.mark.parametrize(
    ("sizes", "error"),
    [
        ((-1, 1), DataError),
        ((1, 0), DataError),
        ((1.5, 1), ParameterError),
        ((True, 1), ParameterError),
        ((1, None), ParameterError),
        ((1, "1"), ParameterError),
    ],
)
def test_numbers_of_tasks_and_features_are_checked(sizes: tuple[Any, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match=r"n_tasks|n_features|at least one"):
        check_sizes(*sizes)
    with pytest.raises(error):
        TriangularStatistics.from_blocks([], *sizes)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("block", [None, 1, (), ([[1.0]], [1.0]), ([[1.0]], [1.0], [0], [1.0])])
def test_a_block_that_is_no_triple_is_named(kind: Any, block: Any) -> None:
    with pytest.raises(DataError, match=r"block 1 must be three arrays, \(X, y, task_index\)"):
        kind.from_blocks([([[1.0]], [1.0], [0]), block], 1, 1)


@pytest.mark.parametrize("kind", KINDS)
def test_tables_name_the_features_and_keep_their_columns_in_order(kind: Any) -> None:
    table = pl.DataFrame({"price": [1.0, 2.0], "size": [3.0, 5.0]})
    blocks = [(table, [1.0, 2.0], [0, 0]), (np.ones((1, 2)), [1.0], [0]), (table, [3.0, 4.0], [0, 0])]
    assert kind.from_blocks(blocks, 1, 2).feature_names == ("price", "size")
    turned = [*blocks, (table.select("size", "price"), [1.0, 2.0], [0, 0])]
    with pytest.raises(DataError, match="column 0 of X of block 3 is 'size', and feature 0 is 'price'"):
        kind.from_blocks(turned, 1, 2)
    with pytest.raises(DataError, match="column 0 of X of block 0 is 'price', and feature 0 is 'size'"):
        kind.from_blocks(blocks, 1, 2, feature_names=["size", "price"])
    with pytest.raises(DataError, match="feature_names has 1 names for 2 features"):
        kind.from_blocks(blocks, 1, 2, feature_names=["size"])
