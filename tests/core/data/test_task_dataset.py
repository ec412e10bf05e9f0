"""What a dataset accepts, how it groups rows, and how it names every fault."""

from __future__ import annotations

import decimal
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccmtl_core import DataError, TaskDataset
from tests.support.pandas_table import NA, Frame


def test_from_arrays_keeps_ragged_tasks_and_empty_ones() -> None:
    data = TaskDataset.from_arrays([np.ones((2, 3)), np.ones((0, 3)), [[1, 2, 3]]], [[1, 2], [], [3]])
    assert data.offsets.tolist() == [0, 2, 2, 3]
    assert data.n_samples.tolist() == [2, 0, 1]
    assert data.task_ids == ("0", "1", "2")
    assert data.feature_names == ("x_1", "x_2", "x_3")
    assert data.task_index.tolist() == [0, 0, 2]


def test_an_empty_list_stands_for_a_task_without_rows() -> None:
    data = TaskDataset.from_arrays([[], [[1.0, 2.0]]], [[], [3.0]])
    assert data.X.shape == (1, 2)
    assert data.n_samples.tolist() == [0, 1]


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float32, bool, object])
def test_numbers_are_cast_before_any_arithmetic(dtype: type) -> None:
    X = np.array([[200, 100], [1, 0]]).astype(dtype)
    data = TaskDataset.from_arrays([X], [np.array([250, 1], dtype=np.uint8)])
    assert data.X.dtype == np.float64
    assert data.y @ data.y == 250.0**2 + 1
    assert np.array_equal(data.X, X.astype(np.float64))


def test_decimals_and_columns_of_y_are_numbers_too() -> None:
    data = TaskDataset.from_arrays([[[decimal.Decimal("0.5")]]], [np.array([[2.0]])])
    assert data.X[0, 0] == 0.5
    assert data.y.shape == (1,)


@given(st.lists(st.sampled_from(["b", "a", "0471", "471", "ß/ 北"]), max_size=40), st.integers(0, 2**32))
def test_from_long_puts_each_row_with_its_task_in_order(task: list[str], seed: int) -> None:
    X = np.random.default_rng(seed).standard_normal((len(task), 2))
    y = np.arange(len(task), dtype=float)
    ids = ["b", "a", "0471", "471", "ß/ 北", "never"]
    data = TaskDataset.from_long(X, y, task, task_ids=ids)
    assert data.task_ids == tuple(ids)
    for t, name in enumerate(ids):
        rows = [i for i, other in enumerate(task) if other == name]
        own = slice(data.offsets[t], data.offsets[t + 1])
        assert data.y[own].tolist() == rows
        assert np.array_equal(data.X[own], X[rows])


@pytest.mark.parametrize("kind", [list, np.array, lambda ids: np.array(ids, dtype=object)])
def test_tasks_come_in_order_of_first_appearance(kind: type) -> None:
    assert TaskDataset.from_long(np.ones((4, 1)), np.ones(4), kind(["z", "a", "z", "m"])).task_ids == (
        "z",
        "a",
        "m",
    )
    numbers = TaskDataset.from_long(np.ones((4, 1)), np.arange(4), kind([30, 4, 30, 5]))
    assert numbers.task_ids == ("30", "4", "5")
    assert numbers.y.tolist() == [0, 2, 1, 3]


def test_an_integer_and_its_text_are_one_task() -> None:
    data = TaskDataset.from_long(np.ones((3, 1)), [1, 2, 3], [7, "7", 8])
    assert data.task_ids == ("7", "8")
    assert data.y.tolist() == [1, 2, 3]


def test_the_callers_arrays_are_neither_changed_nor_shared() -> None:
    X, y = np.ones((3, 2)), np.ones(3)
    data = TaskDataset.from_long(X, y, ["a", "a", "b"])
    X[:], y[:] = 7.0, 7.0
    assert (data.X == 1).all()
    assert (data.y == 1).all()
    assert X.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        data.X[0, 0] = 2.0


def test_non_finite_values_are_named_by_task_row_and_feature() -> None:
    X = [np.ones((2, 2)), np.ones((3, 2))]
    X[1][2, 1] = np.nan
    y = [np.array([1.0, np.inf]), np.ones(3)]
    with pytest.raises(DataError) as caught:
        TaskDataset.from_arrays(X, y, ["north", "south"], ["price", "stock"])
    assert caught.value.faults == [
        "task 'south', row 3, feature 'stock': nan",
        "task 'north', row 2: y is inf",
    ]


def test_many_faults_are_counted_and_the_first_written_out() -> None:
    with pytest.raises(DataError, match="2,000 faults") as caught:
        TaskDataset.from_arrays([np.full((1000, 2), np.nan)], [np.ones(1000)])
    assert caught.value.n_faults == 2000
    assert len(caught.value.faults) == 20


def test_values_whose_sum_overflows_are_still_finite() -> None:
    assert TaskDataset.from_arrays([[[1e308], [1e308]]], [[1.0, 2.0]]).n_samples.tolist() == [2]


def test_a_missing_value_of_pandas_is_named_by_row_and_column() -> None:
    X = Frame({"price": np.array([1, NA, 3], dtype=object), "stock": np.array([1, 2, NA], dtype=object)})
    with pytest.raises(DataError) as caught:
        TaskDataset.from_long(X, [1.0, 2.0, 3.0], ["a", "b", "a"])
    assert caught.value.faults == [
        "X, row 2, column 'price': <NA> is not a real number",
        "X, row 3, column 'stock': <NA> is not a real number",
    ]
    with pytest.raises(DataError, match=r"^y, row 2: <NA> is not a real number$"):
        TaskDataset.from_long([[1.0], [2.0]], np.array([1, NA], dtype=object), ["a", "b"])
    with pytest.raises(DataError, match=r"^row 2: a task id must be text or an integer, not <NA>$"):
        TaskDataset.from_long([[1.0], [2.0]], [1.0, 2.0], ["a", NA])


def test_a_bad_value_of_a_table_is_named_by_its_row_in_the_table() -> None:
    X = np.array([[1.0], [2.0], [3.0], [np.nan]])
    with pytest.raises(DataError) as caught:
        TaskDataset.from_long(X, [1.0, np.inf, 3.0, 4.0], ["a", "b", "b", "a"], feature_names=["price"])
    assert caught.value.faults == ["row 4, task 'a', feature 'price': nan", "row 2, task 'b': y is inf"]


def test_a_lazy_frame_is_refused_with_the_way_to_collect_it() -> None:
    with pytest.raises(DataError, match=r"X is a polars LazyFrame, .*: give X.collect\(\)"):
        TaskDataset.from_long(pl.LazyFrame({"price": [1.0]}), [1.0], ["a"])


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, object])
def test_integers_that_no_float_equals_are_refused(dtype: type) -> None:
    exact = np.array([[2**53], [2**60], [1]], dtype=dtype)
    assert TaskDataset.from_long(exact, [1, 2, 3], ["a"] * 3).X.ravel().tolist() == [2**53, 2**60, 1]
    with pytest.raises(DataError) as caught:
        TaskDataset.from_long(np.array([[1], [2**53 + 1], [2**63 - 1]], dtype=dtype), [1, 2, 3], ["a"] * 3)
    assert [fault[: fault.index(" is")] for fault in caught.value.faults] == [
        f"X, row 2, column 1: {2**53 + 1}",
        f"X, row 3, column 1: {2**63 - 1}",
    ]


def test_masked_values_are_not_read_as_numbers() -> None:
    masked = np.ma.masked_array([[1.0], [2.0]], mask=[[False], [True]])
    with pytest.raises(DataError, match=r"row 2, feature 'x_1': nan"):
        TaskDataset.from_arrays([masked], [[1.0, 2.0]])
    text = np.ma.masked_array([["1"], ["2"]], mask=[[False], [True]])
    with pytest.raises(DataError, match="real numbers, not <U1"):
        TaskDataset.from_arrays([text], [[1.0, 2.0]])


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[[1.0]]], [[1.0], [2.0]], "X has 1 tasks, y has 2"),
        ([], [], "no tasks"),
        ([[1.0, 2.0]], [[1.0, 2.0]], r"task '0': X must be \(n_t, 0\)"),
        ([[[1.0]], [[1.0, 2.0]]], [[1.0], [1.0]], r"task '1': X must be \(n_t, 1\); got \(1, 2\)"),
        ([[[1.0]]], [[1.0, 2.0]], r"task '0': y must be \(1,\) like X; got \(2,\)"),
        ([[[1.0], [1.0, 2.0]]], [[1.0, 2.0]], "not a rectangular array"),
        ([[["1.0"]]], [[1.0]], "real numbers, not <U3"),
        ([[[1j]]], [[1.0]], "real numbers, not complex128"),
        (np.array([[["1.0"]]], dtype=object), [[1.0]], "real numbers, not str"),
        ([np.array([[1.0]])], [np.array([b"1"], dtype=object)], "y must hold real numbers, not bytes"),
        ([np.array([[np.complex128(1j)]], dtype=object)], [[1.0]], "real numbers, not complex128"),
        ([np.array([[np.timedelta64(1, "D")]], dtype=object)], [[1.0]], "real numbers, not timedelta64"),
        (None, [[1.0]], "X must be a list, not None"),
        ([[[1.0]]], 5, "y must be a list, not 5"),
        ({"a": [[1.0]]}, [[1.0]], "X must be a list, not {'a'"),
        ([[[None]]], [[1.0]], "feature 'x_1': nan"),
        ([[["one"]], [[2]]], [[1.0], [1.0]], "real numbers"),
        ([np.ones((2, 0))], [[1.0, 2.0]], "no features"),
        ([np.array([["2020-01-01"]], dtype="datetime64[D]")], [[1.0]], "real numbers, not datetime64"),
    ],
)
def test_wrong_shapes_and_types_are_refused(X: object, y: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        TaskDataset.from_arrays(X, y)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a", "a"], "task id 'a' at position 1 is repeated"),
        ([1, "1"], "task id '1' at position 1 is repeated"),
        (["a", ""], "task id '' at position 1 is empty"),
        (["a", None], "text or an integer, not None"),
        (["a", 1.0], r"text or an integer, not 1\.0"),
        (["a", True], "text or an integer, not True"),
        (["a"], "1 task ids for 2 tasks"),
    ],
)
def test_unusable_ids_are_refused(names: list[object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        TaskDataset.from_arrays([[[1.0]], [[1.0]]], [[1.0], [1.0]], names)


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ([float("nan"), "a"], "text or an integer, not nan"),
        (["a", None], "text or an integer, not None"),
        ("ab", "one id per row"),
        (b"ab", "one id per row"),
        ({"a": 1, "b": 2}, "one id per row"),
        ({"a", "b"}, "one id per row"),
        (None, "one id per row"),
        (["a"], r"got \(2, 1\), \(2,\), \(1,\)"),
        ([["a"], ["b"]], "text or an integer"),
        (np.array([["a"], ["b"]]), "one id per row"),
        ([{}, {}], "text or an integer"),
        (np.array([[1], [2]]), "one id per row"),
    ],
)
def test_unusable_task_columns_are_refused(task: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        TaskDataset.from_long(np.ones((2, 1)), np.ones(2), task)  # type: ignore[arg-type]


def test_a_task_outside_the_given_ids_is_named() -> None:
    with pytest.raises(DataError, match="task 'c' is not among task_ids"):
        TaskDataset.from_long(np.ones((2, 1)), np.ones(2), ["a", "c"], task_ids=["a", "b"])


@pytest.mark.parametrize("index", [[0, 2], [-1, 0], [0.0, 1.0]])
def test_codes_out_of_range_are_refused(index: list[float]) -> None:
    with pytest.raises(DataError, match="task_index"):
        TaskDataset.from_codes(np.ones((2, 1)), np.ones(2), index, ["a", "b"])


@pytest.mark.parametrize("offsets", [[0, 1], [0, 2, 1], [1, 1, 2], [0, 1, 3]])
def test_offsets_that_do_not_fit_are_refused(offsets: list[int]) -> None:
    with pytest.raises(DataError, match="offsets"):
        TaskDataset(np.ones((2, 1)), np.ones(2), np.array(offsets), ("a", "b"), ("x",))


@pytest.mark.parametrize("names", [["x"], ["x", "x"], ["x", ""]])
def test_feature_names_must_fit(names: list[str]) -> None:
    with pytest.raises(DataError, match="feature name"):
        TaskDataset.from_arrays([np.ones((1, 2))], [[1.0]], feature_names=names)


@pytest.mark.parametrize(
    "offsets",
    [[0, 1.9, 3], ["0", "1", "3"], [0, None, 3], [0, float("nan"), 3], [False, True, True], [[0], [1, 3]], 3],
)
def test_offsets_are_integers(offsets: Any) -> None:
    with pytest.raises(DataError, match="offsets"):
        TaskDataset(np.ones((3, 1)), np.ones(3), offsets, ("a", "b"), ("x",))


def test_a_dataset_cannot_be_reassigned() -> None:
    data = TaskDataset.from_arrays([[[1.0]]], [[1.0]])
    with pytest.raises(AttributeError):
        data.X = np.zeros((1, 1))  # type: ignore[misc]


@pytest.mark.parametrize("names", ["ab", b"ab", 5, {"a": 1, "b": 2}, {"a", "b"}, np.array("ab")])
def test_names_come_in_a_list(names: Any) -> None:
    X, y = [np.ones((1, 2))] * 2, [np.ones(1)] * 2
    with pytest.raises(DataError, match="feature names must be a list, not "):
        TaskDataset.from_arrays(X, y, feature_names=names)
    with pytest.raises(DataError, match="feature names must be a list, not "):
        TaskDataset.from_long(np.ones((2, 2)), np.ones(2), ["a", "b"], feature_names=names)
    with pytest.raises(DataError, match="task ids must be a list, not "):
        TaskDataset.from_arrays(X, y, task_ids=names)
    with pytest.raises(DataError, match="task ids must be a list, not "):
        TaskDataset.from_codes(np.ones((2, 2)), np.ones(2), [0, 1], names)


def test_tasks_may_come_one_after_the_other() -> None:
    data = TaskDataset.from_arrays((np.ones((n, 1)) for n in (1, 2)), (np.ones(n) for n in (1, 2)))  # type: ignore[arg-type]
    assert data.n_samples.tolist() == [1, 2]


def test_objects_that_are_numbers_are_taken() -> None:
    mixed = np.array(
        [[1, Fraction(1, 2)], [Decimal("0.25"), np.float32(3)], [True, np.int8(2)]], dtype=object
    )
    assert TaskDataset.from_arrays([mixed], [[1.0] * 3]).X.tolist() == [[1.0, 0.5], [0.25, 3.0], [1.0, 2.0]]


class ArrowTable:
    """What Arrow calls names and values; it is not among the dependencies."""

    column_names = ("price", "size")
    columns = ([1.0], [2.0])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array([[1.0, 2.0]])


@pytest.mark.parametrize("table", [pl.DataFrame({"price": [1.0], "size": [2.0]}), ArrowTable()])
def test_a_table_names_its_features(table: Any) -> None:
    for data in (
        TaskDataset.from_long(table, [1.0], ["a"]),
        TaskDataset.from_codes(table, [1.0], [0], ["a"], feature_names=["price", "size"]),
        TaskDataset.from_arrays([[], table], [[], [1.0]]),
    ):
        assert data.feature_names == ("price", "size")
    with pytest.raises(DataError, match="column 0 of X is 'price', and feature 0 is 'size'"):
        TaskDataset.from_long(table, [1.0], ["a"], feature_names=["size", "price"])


def test_a_table_sorted_by_task_keeps_its_order() -> None:
    table = pl.DataFrame({"shop": ["b", "a", "b", "a"], "day": [3, 1, 2, 4]})
    for rows, days in ((table, [3, 2, 1, 4]), (table.sort("shop", "day"), [1, 4, 2, 3])):
        data = TaskDataset.from_long(rows.select("day"), rows["day"], rows["shop"])
        assert data.X.ravel().tolist() == days


def test_tables_of_several_tasks_have_their_columns_in_one_order() -> None:
    table = pl.DataFrame({"price": [1.0], "size": [2.0]})
    with pytest.raises(DataError, match="column 0 of X of task 'b' is 'size', and feature 0 is 'price'"):
        TaskDataset.from_arrays([table, table.select("size", "price")], [[1.0]] * 2, ["a", "b"])
