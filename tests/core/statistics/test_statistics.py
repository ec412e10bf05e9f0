"""The statistics of both forms: equal to the rows', additive, foldable, streamed, stable."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccmtl_core import (
    DataError,
    ParameterError,
    SufficientStatistics,
    TaskDataset,
    TriangularStatistics,
    training_statistics,
)
from tests.core.forms import Form, Statistics, every_form
from tests.core.problems import datasets, exact_residual


def assert_same(one: Statistics, other: Statistics, relative: float = 1e-12) -> None:
    """Equal up to rounding, each entry relative to the lengths of the columns it multiplies."""
    lengths = np.sqrt(np.diagonal(other.gram, axis1=1, axis2=2))
    target = np.sqrt(other.yty)
    assert (abs(one.gram - other.gram) <= relative * lengths[:, :, None] * lengths[:, None, :]).all()
    assert (abs(one.xty - other.xty) <= relative * lengths * target[:, None]).all()
    assert (abs(one.yty - other.yty) <= relative * other.yty).all()
    assert one.n_samples.tolist() == other.n_samples.tolist()
    assert (one.task_ids, one.feature_names) == (other.task_ids, other.feature_names)


def plain(data: TaskDataset) -> SufficientStatistics:
    """The statistics by definition."""
    rows = [slice(a, b) for a, b in zip(data.offsets[:-1], data.offsets[1:], strict=True)]
    return SufficientStatistics(
        np.array([data.X[r].T @ data.X[r] for r in rows]),
        np.array([data.X[r].T @ data.y[r] for r in rows]),
        np.array([data.y[r] @ data.y[r] for r in rows]),
        data.n_samples,
        data.task_ids,
        data.feature_names,
    )


def blocks_of(
    data: TaskDataset, order: np.ndarray, size: int
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    for first in range(0, len(order), size):
        rows = order[first : first + size]
        yield data.X[rows], data.y[rows], data.task_index[rows]


@every_form
@given(data=datasets())
def test_a_dataset_gives_its_products(form: Form, data: TaskDataset) -> None:
    assert_same(form.from_dataset(data), plain(data))


@every_form
@given(data=datasets(), seed=st.integers(0, 2**32), size=st.integers(1, 200))
def test_shuffled_rows_in_blocks_of_any_size_give_the_same(
    form: Form, data: TaskDataset, seed: int, size: int
) -> None:
    order = np.random.default_rng(seed).permutation(len(data.y))
    streamed = form.from_blocks(
        blocks_of(data, order, size),
        data.n_tasks,
        data.n_features,
        task_ids=data.task_ids,
        feature_names=data.feature_names,
    )
    assert_same(streamed, plain(data))


@every_form
@given(data=datasets(), seed=st.integers(0, 2**32), n_folds=st.integers(1, 5))
def test_folds_add_up_in_any_order(form: Form, data: TaskDataset, seed: int, n_folds: int) -> None:
    rng = np.random.default_rng(seed)
    fold = rng.integers(0, n_folds, len(data.y))
    parts = form.by_fold(data, fold, n_folds)
    for f, part in enumerate(parts):
        own = fold == f
        rows = data.task_index[own]
        assert_same(part, plain(TaskDataset.from_codes(data.X[own], data.y[own], rows, data.task_ids)), 1e-11)
    total, *rest = (parts[f] for f in rng.permutation(n_folds))
    for part in rest:
        total = total + part  # type: ignore[operator]
    assert_same(total, plain(data))


@every_form
@given(data=datasets(), seed=st.integers(0, 2**32), n_folds=st.integers(2, 6))
def test_training_statistics_are_sums_of_the_others(
    form: Form, data: TaskDataset, seed: int, n_folds: int
) -> None:
    fold = np.random.default_rng(seed).integers(0, n_folds, len(data.y))
    training = training_statistics(form.by_fold(data, fold, n_folds))  # type: ignore[type-var]
    assert len(training) == n_folds
    for f, part in enumerate(training):
        rest = fold != f
        expected = TaskDataset.from_codes(data.X[rest], data.y[rest], data.task_index[rest], data.task_ids)
        assert_same(part, plain(expected), 1e-11)


def test_training_statistics_need_two() -> None:
    data = TaskDataset.from_arrays([[[1.0]]], [[1.0]])
    with pytest.raises(ParameterError, match="at least two folds"):
        training_statistics(SufficientStatistics.by_fold(data, [0], 1))


@every_form
@given(data=datasets(), factor=st.just(0.0) | st.floats(1e-100, 10))
def test_scaling_counts_each_row_by_the_factor(form: Form, data: TaskDataset, factor: float) -> None:
    scaled, whole = form.from_dataset(data).scaled(factor), plain(data)
    expected = SufficientStatistics(
        whole.gram * factor,
        whole.xty * factor,
        whole.yty * factor,
        whole.n_samples,
        whole.task_ids,
        whole.feature_names,
    )
    assert_same(scaled, expected, 1e-11)


@every_form
@pytest.mark.parametrize("factor", [-1.0, math.nan, math.inf])
def test_a_factor_that_makes_no_sense_is_refused(form: Form, factor: float) -> None:
    data = TaskDataset.from_arrays([[[1.0]]], [[1.0]])
    with pytest.raises(ParameterError, match="factor"):
        form.from_dataset(data).scaled(factor)


@every_form
@given(data=datasets())
def test_pooling_makes_one_task_of_all(form: Form, data: TaskDataset) -> None:
    one = TaskDataset(data.X, data.y, np.array([0, len(data.y)]), ("pooled",), data.feature_names)
    assert_same(form.from_dataset(data).pooled(), plain(one))


@every_form
@given(data=datasets(), seed=st.integers(0, 2**32))
def test_squared_error_is_that_of_the_rows(form: Form, data: TaskDataset, seed: int) -> None:
    statistics = form.from_dataset(data)
    rng = np.random.default_rng(seed)
    for W in (rng.standard_normal((data.n_tasks, data.n_features)), rng.standard_normal(data.n_features)):
        rest = np.einsum("ip,ip->i", data.X, np.broadcast_to(W, statistics.xty.shape)[data.task_index])
        expected = np.bincount(data.task_index, (rest - data.y) ** 2, minlength=data.n_tasks)
        size = statistics.yty + expected
        assert (abs(statistics.squared_error(W) - expected) <= 1e-10 * size).all()


@every_form
@given(data=datasets())
def test_squared_error_is_never_below_the_residual(form: Form, data: TaskDataset) -> None:
    statistics = form.from_dataset(data)
    start = statistics.least_squares
    assert (statistics.squared_error(start.weights) >= start.residual * (1 - 1e-12)).all()
    nudged = statistics.squared_error(start.weights * (1 + 1e-9))
    assert (nudged >= start.residual * (1 - 1e-12)).all()


def test_large_weights_and_small_noise_keep_their_error_in_the_triangular_form() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    noise = 1e-4 * rng.standard_normal(200)
    y = X @ np.full(3, 1e6) + noise
    data = TaskDataset.from_arrays([X], [y])
    exact = float(exact_residual(X, y))
    assert 1e-6 < exact < 3e-6
    triangular = TriangularStatistics.from_dataset(data).least_squares
    gram = SufficientStatistics.from_dataset(data).least_squares
    assert triangular.residual[0] == pytest.approx(exact, rel=1e-4)
    assert triangular.digits[0] > 3
    assert gram.digits[0] < 1  # and says so


@every_form
def test_one_task_with_many_rows_beside_tasks_with_three(form: Form) -> None:
    rng = np.random.default_rng(1)
    lengths = [3] * 50 + [200_000] + [3] * 50
    X = [rng.standard_normal((n, 4)) for n in lengths]
    y = [block @ np.ones(4) + rng.standard_normal(len(block)) for block in X]
    statistics = form.from_dataset(TaskDataset.from_arrays(X, y))
    big = X[50].astype(np.longdouble)
    exact = (big.T @ big).astype(np.float64)
    assert abs(statistics.gram[50] - exact).max() <= 2e-13 * exact.max()
    assert statistics.least_squares.residual[:50].max() == 0.0
    assert statistics.least_squares.digits.min() > 12


@every_form
def test_statistics_of_other_tasks_do_not_add(form: Form) -> None:
    X, y = [[[1.0]], [[1.0]]], [[1.0], [1.0]]
    one = form.from_dataset(TaskDataset.from_arrays(X, y, ["a", "b"]))
    other = form.from_dataset(TaskDataset.from_arrays(X, y, ["b", "a"]))
    named = form.from_dataset(TaskDataset.from_arrays(X, y, ["a", "b"], ["z"]))
    for wrong in (other, named):
        with pytest.raises(DataError, match="same tasks and features"):
            one + wrong  # type: ignore[operator]
    with pytest.raises(TypeError):
        one + 1  # type: ignore[operator]


def test_the_two_forms_do_not_mix() -> None:
    data = TaskDataset.from_arrays([[[1.0]]], [[1.0]])
    with pytest.raises(TypeError):
        SufficientStatistics.from_dataset(data) + TriangularStatistics.from_dataset(data)  # type: ignore[operator]


@every_form
@pytest.mark.parametrize(
    ("block", "message"),
    [
        (([[np.nan]], [1.0], [0]), "block 1, row 1: a value is not finite"),
        (([[1.0]], [np.inf], [0]), "block 1, row 1: a value is not finite"),
        (([[1.0]], [1.0], [2]), r"block 1: task_index, row 1: 2 is not in \[0, 2\)"),
        (([[1.0, 2.0]], [1.0], [0]), r"block 1: X must be \(b, 1\)"),
        (([[1.0]], [1.0, 2.0], [0]), r"block 1: X must be"),
        (([[1.0]], [1.0], [0.5]), "block 1: task_index must hold integers"),
    ],
)
def test_a_faulty_block_is_named(form: Form, block: tuple[list, list, list], message: str) -> None:
    good = ([[1.0]], [1.0], [0])
    with pytest.raises(DataError, match=message):
        form.from_blocks([good, block], n_tasks=2, n_features=1)


@every_form
def test_no_blocks_and_empty_blocks_give_empty_tasks(form: Form) -> None:
    empty = (np.empty((0, 2)), np.empty(0), np.empty(0, dtype=np.int64))
    statistics = form.from_blocks([empty], n_tasks=2, n_features=2, task_ids=["a", 7])
    assert statistics.task_ids == ("a", "7")
    assert statistics.feature_names == ("x_1", "x_2")
    assert not statistics.gram.any()
    assert not statistics.least_squares.weights.any()


@every_form
@pytest.mark.parametrize(
    ("fold", "n_folds", "error"),
    [([0, 2], 2, DataError), ([0], 2, DataError), ([0, 0], 0, ParameterError), ([0.5, 1], 2, DataError)],
)
def test_folds_that_do_not_fit_are_refused(
    form: Form, fold: list[float], n_folds: int, error: type[Exception]
) -> None:
    with pytest.raises(error):
        form.by_fold(TaskDataset.from_arrays([np.ones((2, 1))], [np.ones(2)]), fold, n_folds)


def test_a_boolean_mask_makes_two_folds() -> None:
    data = TaskDataset.from_arrays([np.ones((3, 1))], [[1.0, 2.0, 4.0]])
    held_out, kept = SufficientStatistics.by_fold(data, np.array([True, False, True]), 2)
    assert (held_out.xty.item(), kept.xty.item()) == (2.0, 5.0)


@every_form
@given(data=datasets(), seed=st.integers(0, 2**32))
def test_renumbered_tasks_keep_their_statistics_and_their_fit(
    form: Form, data: TaskDataset, seed: int
) -> None:
    statistics = form.from_dataset(data)
    order = np.random.default_rng(seed).permutation(data.n_tasks)
    new = statistics.reordered(order)
    assert new.task_ids == tuple(data.task_ids[t] for t in order)
    assert np.array_equal(new.gram, statistics.gram[order])
    assert np.array_equal(new.xty, statistics.xty[order])
    assert np.array_equal(new.yty, statistics.yty[order])
    assert new.n_samples.tolist() == statistics.n_samples[order].tolist()
    W = np.random.default_rng(seed).standard_normal(new.xty.shape)
    assert np.array_equal(new.squared_error(W[order]), statistics.squared_error(W)[order])
    own = type(statistics)(**{name: getattr(new, name) for name in statistics.__dataclass_fields__})
    for name in ("weights", "residual", "residual_error", "rank"):
        fresh = getattr(own.least_squares, name)
        assert np.allclose(getattr(new.least_squares, name), fresh, rtol=1e-12, atol=0)


@given(data=datasets(), seed=st.integers(0, 99))
def test_some_of_the_features_are_those_of_their_columns(data: TaskDataset, seed: int) -> None:
    P = data.n_features
    place = np.random.default_rng(seed).permutation(P)[: 1 + seed % P]
    names = tuple(data.feature_names[p] for p in place)
    whole = SufficientStatistics.from_dataset(data)
    columns = TaskDataset(np.ascontiguousarray(data.X[:, place]), data.y, data.offsets, data.task_ids, names)
    some, expected = whole.take_features(names), SufficientStatistics.from_dataset(columns)
    assert_same(some, expected)
    assert_same(some.centred, expected.centred, relative=1e-9)


def test_features_that_are_not_there_are_refused() -> None:
    statistics = SufficientStatistics.from_dataset(TaskDataset.from_arrays([[[1.0, 2.0]]], [[3.0]]))
    with pytest.raises(DataError, match="there is no feature 'x_3'"):
        statistics.take_features(["x_1", "x_3"])
    with pytest.raises(DataError, match="feature name 'x_1' at position 1 is repeated"):
        statistics.take_features(["x_1", "x_1"])
    with pytest.raises(DataError, match="at least one feature"):
        statistics.take_features([])


def test_some_features_of_products_alone_need_no_sums() -> None:
    products = SufficientStatistics(np.eye(2)[None], np.ones((1, 2)), [1.0], [3], ("a",), ("x", "z"))  # type: ignore[arg-type]
    some = products.take_features(["z"])
    assert (some.gram.shape, some.x_sum, some.weight) == ((1, 1, 1), None, None)
