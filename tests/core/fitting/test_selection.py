"""Selection: what it reports is what fits of each fold give, whatever the number of workers and the form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from joblib import parallel_config

from ccmtl_core import (
    DataError,
    ParameterError,
    SufficientStatistics,
    TaskDataset,
    TriangularStatistics,
    fit,
    fit_path,
    nearest_neighbour_graph,
    pooled_weights,
    select,
    single_task_weights,
    strength_grid,
    training_statistics,
)
from ccmtl_core.choices.single_task import start_weights
from ccmtl_core.fitting.fold_paths import SelectionProgress, weaker_is_worse
from ccmtl_core.fitting.scoring import mean_of_task_rmse
from ccmtl_core.fitting.selection import Selection
from ccmtl_core.statistics.folds import contiguous_folds, random_folds
from tests.core.fitting.conftest import STRENGTHS


def test_errors_are_those_of_fits_to_the_other_folds(
    folds: list[SufficientStatistics], selection: Selection
) -> None:
    for f, training in enumerate(training_statistics(folds)):
        for place in (0, 3, 6):
            model = fit(training, fusion_strength=STRENGTHS[place], n_neighbors=4, tolerance=1e-7).model
            error = mean_of_task_rmse(folds[f].squared_error(model.weights), folds[f].n_samples)
            assert selection.fold_errors[f, place] == pytest.approx(error, rel=1e-3)
    assert (selection.gaps <= 1e-7).all()


def test_errors_from_statistics_are_those_of_predicted_rows(
    dataset: TaskDataset, folds: list[SufficientStatistics], selection: Selection
) -> None:
    fold = random_folds(dataset, 4, np.random.default_rng(1))
    W = single_task_weights(training_statistics(folds)[2])
    off = (dataset.X * W[dataset.task_index]).sum(axis=1) - dataset.y
    rmse = []
    for t in range(dataset.n_tasks):
        rows = (dataset.task_index == t) & (fold == 2)
        if rows.any():
            rmse.append(np.sqrt((off[rows] ** 2).mean()))
    assert selection.fold_errors[2, 0] == pytest.approx(np.mean(rmse), rel=1e-9)
    assert selection.rivals["single_task"][2] == pytest.approx(np.mean(rmse), rel=1e-9)


def test_chooses_fused_clusters_and_fits_all_rows_with_them(
    dataset: TaskDataset, folds: list[SufficientStatistics], selection: Selection
) -> None:
    assert selection.fusion_strength == STRENGTHS[int(np.argmin(selection.errors))]
    assert 0.3 <= selection.fusion_strength <= 300.0
    best = selection.errors.min()
    assert best < 0.95 * selection.rivals["single_task"].mean()
    assert best < 0.95 * selection.rivals["pooled"].mean()
    again = fit(dataset, fusion_strength=selection.fusion_strength, n_neighbors=4, tolerance=1e-8)
    assert selection.fit.report.objective == pytest.approx(again.report.objective, rel=1e-7)
    assert selection.fit.report.gap <= 1e-8


def test_ends_of_the_path_are_the_rivals(folds: list[SufficientStatistics], selection: Selection) -> None:
    np.testing.assert_allclose(selection.fold_errors[:, 0], selection.rivals["single_task"], rtol=1e-9)
    one_component = [
        f
        for f, part in enumerate(training_statistics(folds))
        if nearest_neighbour_graph(single_task_weights(part), 4).n_components == 1
    ]
    assert one_component
    np.testing.assert_allclose(
        selection.fold_errors[one_component, -1], selection.rivals["pooled"][one_component], rtol=1e-6
    )
    assert (selection.n_groups[:, 0] >= selection.n_groups[:, -1]).all()
    assert (selection.n_groups[one_component, -1] == 1).all()


@pytest.mark.parametrize(("n_jobs", "backend"), [(2, None), (3, None), (2, "loky")])
def test_workers_change_no_bit(folds: list[SufficientStatistics], n_jobs: int, backend: str | None) -> None:
    def run(n_jobs: int) -> Selection:
        return select(folds, n_neighbors=4, n_jobs=n_jobs)

    one = run(1)
    if backend is None:
        many = run(n_jobs)
    else:
        with parallel_config(backend=backend):
            many = run(n_jobs)
    for name in ("fusion_strengths", "fold_errors", "gaps", "n_groups", "errors"):
        assert getattr(one, name).tobytes() == getattr(many, name).tobytes()
    assert one.chosen == many.chosen
    assert one.fit.model.weights.tobytes() == many.fit.model.weights.tobytes()


def test_rows_and_statistics_of_folds_are_the_same_question(dataset: TaskDataset) -> None:
    fold = random_folds(dataset, 3, np.random.default_rng(0))
    parts = SufficientStatistics.by_fold(dataset, fold, 3)
    from_rows = select(dataset, STRENGTHS, n_folds=3)
    assert from_rows.fold_errors.tobytes() == select(dataset, STRENGTHS, folds=fold).fold_errors.tobytes()
    assert from_rows.fold_errors.tobytes() == select(parts, STRENGTHS).fold_errors.tobytes()
    triangular = select(TriangularStatistics.by_fold(dataset, fold, 3), STRENGTHS)
    np.testing.assert_allclose(triangular.fold_errors, from_rows.fold_errors, rtol=0.02)


def test_the_default_strengths_are_the_largest_of_the_grid_of_all_rows(
    folds: list[SufficientStatistics],
) -> None:
    everything = folds[0] + folds[1] + folds[2] + folds[3]
    graph = nearest_neighbour_graph(single_task_weights(everything), 10)
    tried, grid = select(folds).fusion_strengths, strength_grid(everything, graph)
    assert len(tried) in (7, 14, 21)
    np.testing.assert_allclose(tried, grid[-len(tried) :], rtol=1e-9)


def test_rolling_origins_forecast_each_block_from_those_before(dataset: TaskDataset) -> None:
    blocks = SufficientStatistics.by_fold(dataset, contiguous_folds(dataset, 4), 4)
    result = select(dataset, [0.0, 10.0], folds="rolling", n_folds=3)
    assert result.fold_errors.tobytes() == select(blocks, [0.0, 10.0], folds="rolling").fold_errors.tobytes()
    for f in range(3):
        training = training_statistics(blocks, rolling=True)[f]
        error = mean_of_task_rmse(
            blocks[f + 1].squared_error(pooled_weights(training)), blocks[f + 1].n_samples
        )
        assert result.rivals["pooled"][f] == pytest.approx(error, rel=1e-12)
    assert result.fit.report.objective == pytest.approx(
        fit(dataset, fusion_strength=result.fusion_strength).report.objective, rel=1e-4
    )


@pytest.mark.parametrize(
    "choices",
    [
        {"fit_intercept": True},
        {"loss_scaling": "spread"},
        {"fit_intercept": True, "loss_scaling": "spread"},
        {"metric": "mahalanobis", "fit_intercept": True, "loss_scaling": "spread"},
    ],
)
def test_model_choices_are_made_in_each_fold(
    folds: list[SufficientStatistics], choices: dict[str, Any]
) -> None:
    result = select(folds, [1.0, 10.0], n_neighbors=4, path_tolerance=1e-7, **choices)
    for f, training in enumerate(training_statistics(folds)):
        model = fit(training, fusion_strength=10.0, n_neighbors=4, tolerance=1e-7, **choices).model
        error = mean_of_task_rmse(folds[f].squared_error(model.weights, model.intercept), folds[f].n_samples)
        assert result.fold_errors[f, 1] == pytest.approx(error, rel=1e-3)
    path = fit_path(training, [10.0], n_neighbors=4, tolerance=1e-7, **choices)
    np.testing.assert_allclose(path.model(0).weights, model.weights, atol=1e-3)
    np.testing.assert_allclose(path.model(0).intercept, model.intercept, atol=1e-3)
    final = result.fit.model
    assert bool(final.intercept.any()) is choices.get("fit_intercept", False)


def test_the_order_that_folds_went_by_is_told(dataset: TaskDataset) -> None:
    when = np.arange(len(dataset.y))
    for options, expected in (
        ({}, ("random", None)),
        ({"folds": "rolling"}, ("rolling", "rows")),
        ({"folds": "contiguous"}, ("contiguous", "rows")),
        ({"folds": "rolling", "time": when}, ("rolling", "time")),
        ({"folds": when % 3}, ("given", None)),
    ):
        more = {} if isinstance(options.get("folds"), np.ndarray) else {"n_folds": 2}
        result = select(dataset, [0.0, 10.0], **more, **options)  # type: ignore[arg-type]
        assert (result.folds, result.order) == expected
    blocks = SufficientStatistics.by_fold(dataset, contiguous_folds(dataset, 3), 3)
    result = select(blocks, [0.0, 10.0], folds="rolling")
    assert (result.folds, result.order) == ("rolling", "statistics")
    assert "on 2 rolling folds by statistics" in repr(result)


def test_arguments_without_effect_are_refused(
    dataset: TaskDataset, folds: list[SufficientStatistics]
) -> None:
    n = len(dataset.y)
    wrong: dict[str, Any]
    for data, wrong, message in (
        (dataset, {"time": np.arange(n)}, "time has no effect with random folds"),
        (dataset, {"folds": "rolling", "rng": np.random.default_rng(0)}, "rng has no effect with rolling"),
        (
            dataset,
            {"folds": np.arange(n) % 3, "n_folds": 3},
            "n_folds has no effect with the fold of",
        ),
        (folds, {"n_folds": 4}, "n_folds has no effect with statistics, which are folds already"),
        (folds, {"folds": "rolling", "time": np.arange(n)}, "time has no effect with statistics"),
    ):
        with pytest.raises(ParameterError, match=message):
            select(data, [0.0, 1.0], **wrong)


def test_a_strength_that_stands_twice_is_refused(folds: list[SufficientStatistics]) -> None:
    with pytest.raises(ParameterError, match="fusion_strengths must hold no number twice"):
        select(folds, [1.0, 2.0, 1.0])


def test_progress_tells_errors_as_strengths_are_done(folds: list[SufficientStatistics]) -> None:
    seen: list[SelectionProgress] = []
    result = select(folds, STRENGTHS, on_progress=seen.append)
    assert [step.done for step in seen] == sorted(step.done for step in seen)
    assert (seen[-1].done, seen[-1].total) == (37, 37)
    assert seen[-1].fusion_strengths == tuple(STRENGTHS)
    assert seen[-1].errors == tuple(result.errors)
    assert 0 < len(seen[3].errors) < len(STRENGTHS)


def test_a_search_leaves_out_strengths_below_those_where_weaker_fusion_is_worse() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 12, 3))
    data = TaskDataset.from_arrays(X, X @ np.array([1.0, -2.0, 0.5]) + rng.normal(size=(30, 12)))
    seen: list[SelectionProgress] = []
    found = select(data, n_folds=3, on_progress=seen.append)
    everything = SufficientStatistics.from_dataset(data)
    grid = strength_grid(everything, nearest_neighbour_graph(start_weights(everything)))
    whole = select(data, grid, n_folds=3)
    n = len(found.fusion_strengths)
    assert n < len(grid) == len(whole.fusion_strengths)
    np.testing.assert_allclose(found.fusion_strengths, grid[-n:], rtol=1e-12)
    np.testing.assert_allclose(found.fold_errors, whole.fold_errors[:, -n:], rtol=1e-6)
    assert found.gaps.shape == found.n_groups.shape == (3, n)
    assert found.fusion_strength == pytest.approx(whole.fusion_strength)
    assert seen[-1].done == seen[-1].total == 3 * n + 1
    assert seen[-1].fusion_strengths == tuple(found.fusion_strengths)


@pytest.mark.parametrize(
    ("errors", "alone", "is_worse"),
    [
        ([[3.0, 2.0, 1.0], [3.1, 2.1, 1.0]], [4.0, 4.0], True),
        ([[3.0, 2.0, 1.0], [3.1, 2.1, 1.0]], [2.0, 4.0], False),  # weakest fusion is less wrong
        ([[1.0, 2.0, 3.0], [1.1, 2.1, 3.0]], [4.0, 4.0], False),  # still falling
        ([[2.0, 3.0, 1.0], [2.1, 3.1, 1.0]], [4.0, 4.0], False),  # falling again
        ([[3.0, 2.0, 1.0], [1.0, 2.1, 3.2]], [4.0, 4.0], False),  # the folds disagree
        ([[3.0, 2.0, 1.0]], [4.0], False),  # one fold tells nothing of chance
        ([[3.0, 1.0], [3.1, 1.0]], [4.0, 4.0], False),
    ],
)
def test_weaker_fusion_is_worse_where_errors_rise_beyond_chance(
    errors: list[list[float]], alone: list[float], is_worse: bool
) -> None:
    assert weaker_is_worse(np.array(errors), np.array(alone)) is is_worse


def test_an_error_in_the_caller_ends_it(folds: list[SufficientStatistics]) -> None:
    def refuse(progress: SelectionProgress) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        select(folds, STRENGTHS, n_jobs=2, on_progress=refuse)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"folds": "leave-one-out"}, "folds must be one of random, contiguous, rolling"),
        ({"rule": "two"}, "rule must be one of best, one_standard_error; not 'two'"),
        ({"n_folds": 1}, "at least two folds are needed, not 1"),
        *(
            ({"folds": folds, "n_folds": wrong}, "n_folds must be an integer, not ")
            for folds in ("random", "contiguous", "rolling")
            for wrong in ("5", 2.5, True)
        ),
        ({"folds": "rolling", "n_folds": 0}, "at least one fold is needed, not 0"),
        ({"fusion_strengths": [-1.0]}, "0, or from 1e-100 to 1e100"),
        ({"solver": "magic"}, "solver must be one of"),
        ({"path_tolerance": 0.0}, "tolerance must be"),
    ],
)
def test_what_does_not_exist_is_refused(
    dataset: TaskDataset, choices: dict[str, object], message: str
) -> None:
    with pytest.raises(ParameterError, match=message):
        select(dataset, **choices)  # type: ignore[arg-type]


def test_a_fold_without_rows_is_refused(dataset: TaskDataset) -> None:
    fold = np.zeros(len(dataset.y), dtype=np.int64)
    fold[0] = 2
    with pytest.raises(DataError, match="a fold has no rows"):
        select(dataset, [0.0, 1.0], folds=fold)


@pytest.mark.parametrize(("folds", "n_blocks"), [("random", 1000), ("contiguous", 1000), ("rolling", 1001)])
def test_more_folds_than_rows_are_refused_in_numbers(folds: str, n_blocks: int) -> None:
    data = TaskDataset.from_arrays([np.ones((20, 1))] * 3, [np.arange(20.0)] * 3)
    message = f"60 rows, at most 20 of a task, cannot make {n_blocks} folds: .* would be empty"
    with pytest.raises(DataError, match=message):
        select(data, folds=folds, n_folds=1000)


def test_random_folds_hold_equal_shares_of_each_task(dataset: TaskDataset) -> None:
    fold = random_folds(dataset, 3, np.random.default_rng(5))
    table = np.zeros((dataset.n_tasks, 3), dtype=np.int64)
    np.add.at(table, (dataset.task_index, fold), 1)
    assert (table.max(axis=1) - table.min(axis=1) <= 1).all()
    other = random_folds(dataset, 3, np.random.default_rng(6))
    assert not np.array_equal(fold, other)


def test_contiguous_folds_follow_time(dataset: TaskDataset) -> None:
    in_order = contiguous_folds(dataset, 3)
    for t in range(dataset.n_tasks):
        own = in_order[dataset.task_index == t]
        assert (np.diff(own) >= 0).all()
        assert set(own) == {0, 1, 2}
    time = np.random.default_rng(0).integers(0, 9, len(dataset.y))
    blocks = contiguous_folds(dataset, 3, time)
    assert np.array_equal(blocks, np.unique(time, return_inverse=True)[1] * 3 // 9)
    with pytest.raises(DataError, match="time must be"):
        contiguous_folds(dataset, 3, time[:-1])
    with pytest.raises(DataError, match="1 distinct times, too few for 3 folds"):
        contiguous_folds(dataset, 3, np.zeros(len(dataset.y)))


@pytest.mark.parametrize("folds", [None, 3, 2.5])
def test_folds_that_are_neither_a_word_nor_rows_are_refused(dataset: TaskDataset, folds: Any) -> None:
    with pytest.raises(ParameterError, match="folds must be one of random, contiguous, rolling"):
        select(dataset, [0.0], folds=folds)


@pytest.mark.parametrize("number", [10**9, 2**62])
def test_fold_numbers_that_leave_most_folds_empty_are_refused(dataset: TaskDataset, number: int) -> None:
    fold = np.arange(len(dataset.y)) % 2
    fold[0] = number
    with pytest.raises(DataError, match=f"3 different numbers up to {number}: most folds would be empty"):
        select(dataset, [0.0], folds=fold)


@pytest.mark.parametrize("values", [[0.0, 1.0], ["a", "b"], [None, 1], [float("nan"), 1]])
def test_folds_are_integers(dataset: TaskDataset, values: list[Any]) -> None:
    with pytest.raises(DataError, match="folds must hold integers"):
        select(dataset, [0.0], folds=values * (len(dataset.y) // 2))
    with pytest.raises(DataError, match="folds is not the fold of each row"):
        select(dataset, [0.0], folds=[[0], [0, 1]])


def test_statistics_of_two_kinds_are_refused(dataset: TaskDataset) -> None:
    fold = np.arange(len(dataset.y)) % 2
    parts = [
        SufficientStatistics.by_fold(dataset, fold, 2)[0],
        TriangularStatistics.by_fold(dataset, fold, 2)[1],
    ]
    with pytest.raises(ParameterError, match="one kind, not SufficientStatistics and TriangularStatistics"):
        select(parts, [0.0])
