"""Statistics as a table: read from every kind of file, checked, and the same again after writing."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ccmtl_core import (
    DataError,
    SufficientStatistics,
    fit,
    read_statistics,
    read_statistics_folds,
    statistics_frame,
)
from ccmtl_core.data.synthetic import syn


@pytest.fixture(scope="module")
def statistics() -> SufficientStatistics:
    data = syn(np.random.default_rng(0), n_tasks=12, n_features=3, n_samples=7).dataset
    blocks = [(data.X, data.y, data.task_index)]
    ids = sorted(f"0{t}" for t in range(12))
    return SufficientStatistics.from_blocks(blocks, 12, 3, task_ids=ids, feature_names=["a", 'b "c"', "d,e"])


@pytest.fixture
def frame(statistics: SufficientStatistics) -> pl.DataFrame:
    return statistics_frame(statistics)


def assert_equal(one: SufficientStatistics, other: SufficientStatistics) -> None:
    assert one.task_ids == other.task_ids
    assert one.feature_names == other.feature_names
    for name in ("gram", "xty", "yty", "n_samples", "weight", "x_sum", "y_sum"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("kind", ["csv", "parquet", "ipc"])
def test_every_kind_of_file_gives_back_every_bit(
    statistics: SufficientStatistics, frame: pl.DataFrame, kind: str, tmp_path: Path
) -> None:
    file = tmp_path / "statistics"
    getattr(frame.sample(fraction=1.0, shuffle=True, seed=1), f"write_{kind}")(file)
    assert_equal(read_statistics(file), statistics)


def test_an_arrow_stream_is_a_table_too(statistics: SufficientStatistics, frame: pl.DataFrame) -> None:
    class Stream:
        def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
            return frame.__arrow_c_stream__(requested_schema)

    assert_equal(read_statistics(Stream()), statistics)


def test_forgotten_rows_keep_their_weight(statistics: SufficientStatistics) -> None:
    half = statistics.scaled(0.5)
    assert_equal(read_statistics(statistics_frame(half)), half)


def test_rows_count_fully_where_no_weight_is_given(statistics: SufficientStatistics) -> None:
    assert_equal(read_statistics(statistics_frame(statistics).drop("weight")), statistics)


def test_whole_numbers_may_come_as_decimals(statistics: SufficientStatistics, frame: pl.DataFrame) -> None:
    counts = pl.col("n_samples", "n_null").cast(pl.Decimal(38, 0))
    assert_equal(read_statistics(frame.with_columns(counts)), statistics)


def test_folds_share_their_tasks_and_add_up(statistics: SufficientStatistics, frame: pl.DataFrame) -> None:
    fold = [t % 3 for t in range(12)]
    parts = read_statistics_folds(frame.with_columns(fold=pl.Series(fold)))
    assert [part.task_ids for part in parts] == [statistics.task_ids] * 3
    assert [list(part.n_samples) for part in parts] == [
        [7 if t % 3 == f else 0 for t in range(12)] for f in range(3)
    ]
    assert_equal(read_statistics(frame.with_columns(fold=pl.Series(fold))), statistics)


def test_statistics_from_a_table_train_the_same_model(
    statistics: SufficientStatistics, frame: pl.DataFrame
) -> None:
    one, other = (
        fit(data, fusion_strength=1.0, n_neighbors=3) for data in (statistics, read_statistics(frame))
    )
    np.testing.assert_array_equal(one.model.weights, other.model.weights)


def some(frame: pl.DataFrame, **first: object) -> pl.DataFrame:
    """The table with other values in its first row."""
    columns = [pl.Series(name, [value, *frame[name][1:]], strict=False) for name, value in first.items()]
    return frame.with_columns(columns)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda f: f.drop("gram_1_2", "x_sum_3"),
            "column 'gram_1_2' is missing.*column 'x_sum_3' is missing",
        ),
        (lambda f: f.drop("features"), "the column 'features' is missing"),
        (lambda f: f.drop("n_null"), "the column 'n_null' is missing"),
        (lambda f: f.with_columns(features=pl.lit("a,b")), "must hold a JSON list"),
        (lambda f: f.with_columns(features=pl.lit("[1, 2]")), "must hold a JSON list"),
        (lambda f: f.with_columns(features=pl.lit('["a", "a", "b"]')), "'a' at position 1 is repeated"),
        (lambda f: some(f, features='["q"]'), "must be the same in each row"),
        (lambda f: pl.concat([f, f[:1]]), "task '00' has 2 rows"),
        (lambda f: some(f, n_null=5), r"5 rows have NULL.*'00' \(5\)"),
        (lambda f: some(f, task_id=None, n_null=7), r"7 rows have NULL in the task.*None \(7\)"),
        (lambda f: some(f, task_id=None), "row 1, column 'task_id': the id is empty"),
        (lambda f: some(f, yty=None), "row 1, column 'yty': the number is empty"),
        (lambda f: f.with_columns(xty_2=pl.lit("much")), "row 1, column 'xty_2', 'much': not a number"),
        (lambda f: f.with_columns(n_samples=pl.col("n_samples") + 0.5), "7.5 is not a count"),
        (lambda f: f.with_columns(n_samples=-pl.col("n_samples")), "-7 is not a count"),
        (lambda f: f.with_columns(gram_2_1=pl.col("gram_1_2") + 1.0), "gram is not symmetric"),
        (lambda f: f.with_columns(gram_1_1=-pl.col("gram_1_1")), "sum of squares .* is negative"),
        (lambda f: f.with_columns(fold=pl.lit(99)), "reaches 99 in 12 rows"),
        (lambda f: f[:0], "no rows"),
    ],
)
def test_what_is_no_table_of_statistics_is_refused(
    frame: pl.DataFrame, change: Callable[[pl.DataFrame], pl.DataFrame], message: str
) -> None:
    with pytest.raises(DataError) as refused:
        read_statistics(change(frame))
    assert re.search(message, str(refused.value), re.DOTALL)


def test_a_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "statistics.csv"
    file.write_text("task_id,features,n_null\na,b,x\n")
    with pytest.raises(DataError, match=r"JSON list"):
        read_statistics(file)


def test_statistics_without_sums_have_no_table(statistics: SufficientStatistics) -> None:
    bare = replace(statistics, weight=None, x_sum=None, y_sum=None)
    with pytest.raises(DataError, match="lack the sums"):
        statistics_frame(bare)
