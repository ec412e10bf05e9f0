"""Partial sums: any tasks in any part, and the same whole however the rows were split."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccmtl_core import (
    DataError,
    ParameterError,
    SufficientStatistics,
    TaskDataset,
    append_statistics,
    fit,
    merge_statistics,
)
from ccmtl_core.data.synthetic import syn

SUMS = ("gram", "xty", "yty", "n_samples", "weight", "x_sum", "y_sum")


def by_id(statistics: SufficientStatistics, name: str) -> dict[str, np.ndarray]:
    return dict(zip(statistics.task_ids, getattr(statistics, name), strict=True))


@settings(derandomize=True, max_examples=40)
@given(
    task=st.lists(st.integers(0, 5), min_size=1, max_size=40),
    cuts=st.lists(st.integers(0, 40), max_size=4),
    seed=st.integers(0, 2**16),
)
def test_parts_add_up_to_the_whole(task: list[int], cuts: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(len(task), 2)), rng.normal(size=len(task))
    bounds = sorted({0, len(task), *(min(cut, len(task)) for cut in cuts)})
    parts = [
        SufficientStatistics.from_dataset(TaskDataset.from_long(X[a:b], y[a:b], task[a:b]))
        for a, b in pairwise(bounds)
    ]
    whole = SufficientStatistics.from_dataset(TaskDataset.from_long(X, y, task))
    merged = merge_statistics(iter(parts))
    assert merged.task_ids == whole.task_ids  # in order of first appearance
    for name in SUMS:
        np.testing.assert_allclose(getattr(merged, name), getattr(whole, name), rtol=1e-12, atol=1e-14)


@settings(derandomize=True, max_examples=10)
@given(order=st.permutations(range(4)))
def test_the_order_of_the_parts_changes_the_objective_by_rounding_only(order: list[int]) -> None:
    data = syn(np.random.default_rng(3), n_tasks=20, n_features=3, n_samples=12).dataset
    parts = SufficientStatistics.by_fold(data, np.arange(len(data.y)) % 4, 4)
    one, other = merge_statistics(parts), merge_statistics(parts[f] for f in order)
    objectives = [
        fit(part, fusion_strength=1.0, n_neighbors=3, tolerance=1e-13).report.objective
        for part in (one, other)
    ]
    assert objectives[0] == pytest.approx(objectives[1], rel=1e-12)


def test_the_parts_stay_as_they_are() -> None:
    data = TaskDataset.from_arrays([[[1.0]]], [[2.0]], task_ids=["a"])
    part = SufficientStatistics.from_dataset(data)
    assert merge_statistics([part, part, part]).xty[0, 0] == 6.0
    assert part.xty[0, 0] == 2.0


def test_a_forgotten_part_counts_less() -> None:
    part = SufficientStatistics.from_dataset(TaskDataset.from_arrays([[[1.0]]], [[2.0]], task_ids=["a"]))
    merged = merge_statistics([part.scaled(0.5), part])
    assert merged.weight is not None
    assert (merged.weight[0], merged.n_samples[0]) == (1.5, 2)


def test_what_does_not_add_up_is_refused() -> None:
    data = TaskDataset.from_arrays([[[1.0]]], [[2.0]], task_ids=["a"], feature_names=["price"])
    part = SufficientStatistics.from_dataset(data)
    with pytest.raises(DataError, match="no statistics to merge"):
        merge_statistics([])
    with pytest.raises(DataError, match="different features do not add up: price and promo"):
        merge_statistics([part, replace(part, feature_names=("promo",))])
    with pytest.raises(DataError, match="without the sums"):
        merge_statistics([replace(part, weight=None, x_sum=None, y_sum=None)])


@pytest.fixture(scope="module")
def old_and_new() -> list[SufficientStatistics]:
    """Four fifths of the rows, and the rest."""
    data = syn(np.random.default_rng(0), n_tasks=60, n_features=4, n_samples=20).dataset
    return SufficientStatistics.by_fold(data, np.arange(len(data.y)) % 5 == 0, 2)


def test_appended_tasks_come_after_those_there_were(old_and_new: list[SufficientStatistics]) -> None:
    old, _ = old_and_new
    data = TaskDataset.from_arrays(
        [np.eye(4)] * 2, [np.ones(4), np.zeros(4)], ["task_3", "new"], old.feature_names
    )
    both = append_statistics(old, SufficientStatistics.from_dataset(data))
    assert both.task_ids == (*old.task_ids, "new")
    np.testing.assert_array_equal(both.gram[3], old.gram[3] + np.eye(4))


def test_old_rows_count_less(old_and_new: list[SufficientStatistics]) -> None:
    old, new = old_and_new
    statistics = append_statistics(old, new, forgetting=0.25)
    np.testing.assert_allclose(statistics.gram, 0.25 * old.gram + new.gram)
    assert statistics.weight is not None
    np.testing.assert_array_equal(statistics.weight, 0.25 * old.n_samples + new.n_samples)
    np.testing.assert_array_equal(statistics.n_samples, old.n_samples + new.n_samples)
    forgotten = append_statistics(old, new, forgetting=0.0)
    np.testing.assert_array_equal(forgotten.xty, new.xty)


def test_a_factor_that_is_no_share_is_refused(old_and_new: list[SufficientStatistics]) -> None:
    for factor in (-0.1, 1.1, float("nan")):
        with pytest.raises(ParameterError, match="forgetting must be from 0 to 1"):
            append_statistics(*old_and_new, forgetting=factor)
