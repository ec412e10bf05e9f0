"""Statistics that no rows can have are refused, and nobody can change those that are held."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from ccmtl_core import (
    DataError,
    SufficientStatistics,
    TaskDataset,
    TriangularStatistics,
    merge_statistics,
    read_statistics,
    statistics_frame,
)
from ccmtl_core.base import arrays
from tests.core.forms import Form, every_form


@every_form
def test_squares_that_overflow_are_named(form: Form) -> None:
    data = TaskDataset.from_arrays([[[1.0]], [[1e200]]], [[1.0], [1.0]], ["a", "b"])
    with pytest.raises(DataError, match=r"task 'b': .*statistics are not finite"):
        form.from_dataset(data)


@every_form
def test_weights_of_another_shape_are_refused(form: Form) -> None:
    statistics = form.from_dataset(TaskDataset.from_arrays([np.ones((2, 2))], [np.ones(2)]))
    for shape in [(2,), (1, 2)]:
        assert statistics.squared_error(np.zeros(shape)).shape == (1,)
    for shape in [(2, 1), (1,), (2, 2), ()]:
        with pytest.raises(DataError, match="weights must be"):
            statistics.squared_error(np.zeros(shape))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gram": np.ones((1, 2, 1))}, r"gram must be \(1, 2, 2\)"),
        ({"xty": np.ones(2)}, "xty must be"),
        ({"yty": np.array([-1.0])}, "negative"),
        ({"yty": np.array([np.nan])}, "not finite"),
        ({"gram": np.array([[[1.0, 2.0], [3.0, 4.0]]])}, "not symmetric"),
        ({"gram": np.array([[[-1.0, 0.0], [0.0, 4.0]]])}, "negative"),
        ({"n_samples": np.array([1.5])}, "n_samples must hold integers"),
        ({"n_samples": np.array([-1])}, "negative"),
        ({"task_ids": ()}, "at least one task"),
        ({"feature_names": ("a", "a")}, "repeated"),
    ],
)
def test_impossible_statistics_are_refused(change: dict[str, object], message: str) -> None:
    parts: dict[str, object] = {
        "gram": np.eye(2)[None],
        "xty": np.ones((1, 2)),
        "yty": np.ones(1),
        "n_samples": np.array([2]),
        "task_ids": ("a",),
        "feature_names": ("p", "q"),
    }
    with pytest.raises(DataError, match=message):
        SufficientStatistics(**{**parts, **change})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("factor", "message"),
    [
        (np.ones((1, 2, 2)), "upper triangular"),
        (np.eye(3)[None], r"factor must be \(1, 2, 2\)"),
        (np.full((1, 2, 2), np.nan), "not finite"),
    ],
)
def test_impossible_factors_are_refused(factor: np.ndarray, message: str) -> None:
    with pytest.raises(DataError, match=message):
        TriangularStatistics(factor, np.array([1]), ("a",), ("x",))


def test_statistics_are_read_only() -> None:
    statistics = SufficientStatistics.from_dataset(TaskDataset.from_arrays([[[1.0]]], [[1.0]]))
    for array in (statistics.gram, statistics.xty, statistics.yty, statistics.n_samples):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def small() -> TaskDataset:
    return TaskDataset.from_arrays([[[1.0, 2.0], [2.0, 1.0], [0.0, 1.0]]] * 2, [[1.0, 3.0, 2.0]] * 2)


def test_a_caller_s_arrays_are_copied_unless_nobody_can_write_to_them() -> None:
    made, factors = SufficientStatistics.from_dataset(small()), TriangularStatistics.from_dataset(small())
    for statistics in (made, factors):
        given = {field.name: getattr(statistics, field.name) for field in fields(statistics)}
        arrays = {name: value.copy() for name, value in given.items() if isinstance(value, np.ndarray)}
        copied = replace(statistics, **arrays)
        for array in arrays.values():
            array += 1
        for name in arrays:
            assert np.array_equal(getattr(copied, name), given[name])
            assert np.shares_memory(getattr(replace(statistics), name), given[name])


@every_form
def test_nobody_can_change_statistics_and_new_ones_are_not_copied(
    form: Form, monkeypatch: pytest.MonkeyPatch
) -> None:
    def frozen(array: np.ndarray) -> np.ndarray:
        kept = original(array)
        assert np.shares_memory(kept, array), "a copy was made"
        return kept

    data, original = small(), arrays.frozen
    monkeypatch.setattr(arrays, "frozen", frozen)
    made, weighted = form.from_dataset(data), form.from_dataset(data, np.arange(1.0, 7.0))
    blocks = form.from_blocks([(data.X, data.y, data.task_index)], 2, 2)
    one, other = form.by_fold(data, [0, 0, 1, 0, 1, 1], 2)
    derived = [one + other, made.scaled(0.5), made.pooled(), made.centred, made.reordered(np.array([1, 0]))]
    if isinstance(made, SufficientStatistics):
        derived += [merge_statistics([made]), read_statistics(statistics_frame(made))]
    for statistics in (made, weighted, blocks, one, *derived):
        own = [value for value in vars(statistics).values() if isinstance(value, np.ndarray)]
        for array in (*own, statistics.gram, statistics.xty):
            with pytest.raises(ValueError, match="WRITEABLE"):
                array.flags.writeable = True
