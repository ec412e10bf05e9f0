"""The whole fit: against an independent optimum, under symmetries of the problem, at every extreme."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccmtl_core import (
    DataError,
    FitResult,
    ParameterError,
    Progress,
    SolveStatus,
    SufficientStatistics,
    TaskDataset,
    TaskGraph,
    TriangularStatistics,
    fit,
    nearest_neighbour_graph,
    pooled_weights,
    single_task_weights,
)
from ccmtl_core.objective import FusionProblem
from tests.core.fusion_problems import Instance, chain, complete, instances, random_graph, regular
from tests.core.oracle import interior_point, optimum
from tests.core.problems import datasets

property_test = settings(derandomize=True, max_examples=25)
every_solver = pytest.mark.parametrize("solver", ["newton", "alternating"])


def run(instance: Instance, tolerance: float, solver: str = "auto") -> FitResult:
    return fit(
        instance.statistics, fusion_strength=instance.strength, graph=instance.graph, tolerance=tolerance,
        solver=solver,
    )  # fmt: skip


def assert_sound(result: FitResult, tolerance: float = 1e-4) -> None:
    """Finite, certified as asked, and the report in agreement with itself."""
    report = result.report
    assert np.isfinite(result.model.weights).all()
    assert report.status == SolveStatus.CONVERGED
    assert 0 <= report.gap <= tolerance
    assert report.rounds == len(report.history)
    assert report.cg_iterations == sum(this.cg_iterations for this in report.history)
    assert {"statistics", "start", "graph", "solve"} <= set(report.seconds)
    assert all(seconds >= 0 for seconds in report.seconds.values())


# Against the oracle


@every_solver
@pytest.mark.parametrize("P", [1, 3])
@pytest.mark.parametrize("strength", [0.01, 1.0, 10.0, 1000.0])
def test_finds_the_unique_optimum(strength: float, P: int, solver: str) -> None:
    rng = np.random.default_rng(P)
    instance = regular(rng, random_graph(rng, 9, 0.4), P).with_strength(strength)
    least, W = optimum(instance)
    tolerance = 1e-12 if solver == "newton" else 1e-6
    result = run(instance, tolerance, solver)
    assert_sound(result, tolerance)
    assert result.report.solver == solver
    assert result.report.objective == pytest.approx(least, rel=1.01 * tolerance)
    assert result.model.weights == pytest.approx(W, abs=1e-6 if solver == "newton" else 1e-2)


@settings(derandomize=True, max_examples=50)
@given(instance=instances(wild=False))
def test_finds_an_optimum_whatever_the_tasks(instance: Instance) -> None:
    least, _ = optimum(instance)
    result = run(instance, 1e-7)
    noise = instance.rounding(result.model.weights)
    assert instance.objective(result.model.weights) <= least * (1 + 1e-7) + noise
    assert result.report.gap <= 1e-7 or result.report.gap * result.report.objective <= 10 * noise


@every_solver
@pytest.mark.parametrize("strength", [0.3, 3.0, 30.0])
def test_agrees_with_a_cone_solver_on_a_neighbour_graph_with_silent_tasks(
    strength: float, solver: str
) -> None:
    rng = np.random.default_rng(0)
    T, P = 80, 3
    X = rng.poisson(0.7, (T, 6, P)).astype(float)
    X[rng.random(T) < 0.4] = 0.0
    X[rng.random(T) < 0.2, 2:] = 0.0
    W = np.abs(rng.standard_normal((3, P)))[rng.integers(0, 3, T)]
    y = np.matmul(X, W[:, :, None])[:, :, 0] + 0.2 * rng.standard_normal((T, 6)) * X.any(axis=2)
    data = TaskDataset.from_arrays(list(X), list(y))
    tolerance = 1e-9 if solver == "newton" else 1e-6
    result = fit(data, fusion_strength=strength, n_neighbors=5, solver=solver, tolerance=tolerance)
    assert_sound(result, tolerance)
    instance = Instance(tuple(X), tuple(y), result.graph, strength)
    expected = instance.objective(interior_point(instance))
    assert expected * (1 - 1e-8) <= result.report.objective <= expected * (1 + 1e-12 + tolerance)


@pytest.mark.parametrize("seed", [0, 3, 4, 9, 10, 12, 22, 27])
def test_tasks_that_fuse_come_out_bitwise_equal_and_named(seed: int) -> None:
    rng = np.random.default_rng(seed)
    instance = regular(rng, random_graph(rng, 12, 0.4), 2).with_strength(3.0)
    _, W = optimum(instance)
    result = run(instance, 1e-9)
    i, j = instance.graph.edges.T
    together = np.linalg.norm(W[i] - W[j], axis=1) == 0
    assert together.any()
    assert not together.all()
    assert np.array_equal((result.model.weights[i] == result.model.weights[j]).all(axis=1), together)
    names = result.model.task_ids
    members = {names.index(task) for group in result.clusters for task in group}
    assert members == set(instance.graph.edges[together].ravel().tolist())
    assert list(map(len, result.clusters)) == sorted(map(len, result.clusters), reverse=True)
    for group in result.clusters:
        rows = result.model.weights[[names.index(task) for task in group]]
        assert (rows == rows[0]).all()


# Symmetries


@property_test
@given(seed=st.integers(0, 2**32), P=st.integers(1, 4), strength=st.sampled_from([0.1, 1.0, 5.0, 50.0]))
def test_permuted_tasks_and_rotated_features_give_the_same_answer(seed: int, P: int, strength: float) -> None:
    rng = np.random.default_rng(seed)
    T = 8
    instance = regular(rng, random_graph(rng, T, 0.5), P, n=3 * P + 5).with_strength(strength)
    place = rng.permutation(T)  # task t becomes task place[t]
    Q, _ = np.linalg.qr(rng.standard_normal((P, P)))
    W = run(instance, 1e-14).model.weights
    turned = run(moved(instance, place, Q), 1e-14).model.weights
    assert np.linalg.norm(turned[place] - W @ Q) <= 1e-8 * np.linalg.norm(W)


@property_test
@given(instance=instances(wild=False), seed=st.integers(0, 2**32))
def test_where_several_answers_are_optimal_objective_and_predictions_stay(
    instance: Instance, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    place = rng.permutation(instance.n_tasks)
    Q, _ = np.linalg.qr(rng.standard_normal((instance.n_features, instance.n_features)))
    other = moved(instance, place, Q)
    one, two = run(instance, 1e-10), run(other, 1e-10)
    size = np.sqrt(instance.statistics.total_yty)
    assert one.report.objective == pytest.approx(two.report.objective, rel=1e-7, abs=1e-13 * size**2)
    gap = max(one.report.gap * one.report.objective, two.report.gap * two.report.objective)
    for t, X in enumerate(instance.X):
        first, second = X @ one.model.weights[t], other.X[place[t]] @ two.model.weights[place[t]]
        # The loss is 1-strongly convex in the predictions: J − J* bounds their distance.
        assert np.linalg.norm(first - second) <= 3 * np.sqrt(2 * gap) + 1e-6 * size


def moved(instance: Instance, place: np.ndarray, Q: np.ndarray) -> Instance:
    back = np.argsort(place)
    X = tuple(instance.X[t] @ Q for t in back)
    y = tuple(instance.y[t] for t in back)
    ends = np.sort(place[instance.graph.edges], axis=1)
    order = np.lexsort((ends[:, 1], ends[:, 0]))
    graph = TaskGraph(ends[order], instance.graph.multiplicity[order], instance.n_tasks)
    return Instance(X, y, graph, instance.strength)


@settings(derandomize=True, max_examples=30)
@given(data=datasets(), seed=st.integers(0, 2**32), n_parts=st.integers(2, 6))
def test_statistics_merged_in_any_order_give_the_same_objective(
    data: TaskDataset, seed: int, n_parts: int
) -> None:
    rng = np.random.default_rng(seed)
    parts = SufficientStatistics.by_fold(data, rng.integers(0, n_parts, len(data.y)), n_parts)
    graph = complete(data.n_tasks) if data.n_tasks > 1 else chain(1)
    weights = single_task_weights(SufficientStatistics.from_dataset(data))
    values = []
    for _ in range(3):
        total, *rest = (parts[f] for f in rng.permutation(n_parts))
        for part in rest:
            total = total + part
        values.append(FusionProblem(total, graph, 1.0).objective(weights))
    noise = 4 * np.finfo(float).eps * total.total_yty
    assert np.ptp(values) <= 1e-12 * max(values) + noise


def test_a_fit_of_merged_statistics_is_the_fit_of_the_whole() -> None:
    rng = np.random.default_rng(0)
    instance = regular(rng, random_graph(rng, 12, 0.4), 4).with_strength(2.0)
    parts = SufficientStatistics.by_fold(instance.dataset, rng.integers(0, 3, len(instance.dataset.y)), 3)
    results = [
        fit(total, fusion_strength=2.0, graph=instance.graph, tolerance=1e-13).report.objective
        for total in (instance.statistics, parts[0] + parts[1] + parts[2], parts[2] + (parts[1] + parts[0]))
    ]
    assert np.ptp(results) <= 1e-12 * results[0]


@pytest.mark.parametrize("form", [SufficientStatistics, TriangularStatistics])
def test_dataset_and_statistics_of_both_forms_agree(
    form: type[SufficientStatistics] | type[TriangularStatistics],
) -> None:
    instance = regular(np.random.default_rng(1), chain(15), 3)
    expected = fit(instance.dataset, fusion_strength=1.0, n_neighbors=4, tolerance=1e-10)
    result = fit(form.from_dataset(instance.dataset), fusion_strength=1.0, n_neighbors=4, tolerance=1e-10)
    assert result.report.objective == pytest.approx(expected.report.objective, rel=1e-9)
    assert result.model.weights == pytest.approx(expected.model.weights, rel=1e-4, abs=1e-6)
    assert np.array_equal(result.graph.edges, expected.graph.edges)


# Limits in λ


@pytest.mark.parametrize("P", [1, 3])
def test_a_strength_of_zero_gives_each_task_alone(P: int) -> None:
    instance = regular(np.random.default_rng(0), chain(30), P)
    result = fit(instance.dataset, fusion_strength=0.0, n_neighbors=3)
    assert_sound(result)
    assert np.array_equal(result.model.weights, single_task_weights(instance.statistics))
    assert result.report.gap <= 1e-12
    assert len(result.graph.edges)


@pytest.mark.parametrize("strength", [1e3, 1e6, 1e12])
def test_an_enormous_strength_gives_each_component_its_pooled_fit(strength: float) -> None:
    rng = np.random.default_rng(0)
    instance = regular(rng, complete(20), 3)
    pairs = [(i, j) for i in range(20) for j in range(i + 1, 20) if (i < 12) == (j < 12)]
    instance = replace(instance, graph=TaskGraph(pairs, np.ones(len(pairs)), 20), strength=strength)
    result = run(instance, 1e-8)
    assert_sound(result, 1e-8)
    for part in (range(12), range(12, 20)):
        X = np.concatenate([instance.X[t] for t in part])
        y = np.concatenate([instance.y[t] for t in part])
        expected = np.linalg.lstsq(X, y, rcond=None)[0]
        assert result.model.weights[list(part)] == pytest.approx(np.tile(expected, (len(part), 1)), rel=1e-3)


@every_solver
def test_the_objective_grows_with_the_strength_and_the_fit_gets_worse(solver: str) -> None:
    instance = regular(np.random.default_rng(2), chain(20), 2)
    objectives, losses = [], []
    for strength in (0.0, 0.1, 1.0, 5.0, 20.0, 100.0):
        result = run(instance.with_strength(strength), 1e-7, solver)
        objectives.append(result.report.objective)
        losses.append(instance.problem.loss(result.model.weights))
    assert (np.diff(objectives) >= -1e-6 * np.array(objectives[1:])).all()
    assert (np.diff(losses) >= -1e-6 * np.array(losses[1:])).all()


# Extremes


@pytest.mark.parametrize("strength", [0.0, 1e-3, 1.0, 1e3, 1e12])
@pytest.mark.parametrize("P", [1, 200])
@pytest.mark.parametrize("T", [1, 2, 12])
def test_few_tasks_and_few_or_many_features(T: int, P: int, strength: float) -> None:
    instance = regular(np.random.default_rng(T), chain(T), P, n=40)
    result = fit(instance.dataset, fusion_strength=strength, n_neighbors=10)
    assert_sound(result)
    assert result.model.weights.shape == (T, P)


@pytest.mark.parametrize("T", [1, 2, 10])
def test_more_neighbours_than_tasks(T: int) -> None:
    instance = regular(np.random.default_rng(0), chain(T), 2)
    result = fit(instance.dataset, fusion_strength=1.0, n_neighbors=500)
    assert_sound(result)
    assert len(result.graph.edges) == T * (T - 1) // 2


@pytest.mark.parametrize("strength", [1e-6, 1.0, 1e6])
def test_features_of_wildly_different_scale(strength: float) -> None:
    rng = np.random.default_rng(0)
    instance = regular(rng, chain(40), 4)
    X = [x * [1e-3, 0.1, 10.0, 1e3] for x in instance.X]
    result = fit(TaskDataset.from_arrays(X, instance.y), fusion_strength=strength, n_neighbors=4)
    assert_sound(result)


@pytest.mark.parametrize("strength", [1e-6, 1.0, 1e6])
def test_twelve_decades_between_features_are_certified_or_named_as_the_limit(strength: float) -> None:
    instance = regular(np.random.default_rng(0), chain(40), 4)
    X = [x * [1e-6, 0.1, 10.0, 1e6] for x in instance.X]
    result = fit(TaskDataset.from_arrays(X, instance.y), fusion_strength=strength, n_neighbors=4)
    assert np.isfinite(result.model.weights).all()
    assert result.report.gap <= 1e-2
    if result.report.status != SolveStatus.CONVERGED:
        assert "scale" in result.report.advice


@pytest.mark.parametrize("strength", [1e-3, 1.0, 1e3])
def test_collinear_features(strength: float) -> None:
    rng = np.random.default_rng(0)
    instance = regular(rng, chain(30), 3)
    X = [np.column_stack([x, x[:, 0] - x[:, 1], np.ones(len(x)), 2 * np.ones(len(x))]) for x in instance.X]
    result = fit(TaskDataset.from_arrays(X, instance.y), fusion_strength=strength, n_neighbors=5)
    assert_sound(result)
    assert np.abs(result.model.weights).max() < 1e3


def test_one_task_with_a_million_rows_among_thousands_with_three() -> None:
    rng = np.random.default_rng(0)
    T, P = 3000, 3
    lengths = np.full(T, 3)
    lengths[1234] = 1_000_000
    task = np.repeat(np.arange(T), lengths)
    W = rng.standard_normal((2, P))[rng.integers(0, 2, T)]
    X = rng.standard_normal((len(task), P))
    y = np.einsum("np,np->n", X, W[task]) + 0.3 * rng.standard_normal(len(task))
    data = TaskDataset.from_long(X, y, task)
    result = fit(data, fusion_strength=2.0)
    assert_sound(result)
    big = data.task_ids.index("1234")
    assert result.model.weights[big] == pytest.approx(W[1234], abs=0.01), "a million rows outweigh all ties"


def test_many_tasks_without_signal() -> None:
    rng = np.random.default_rng(0)
    T, P = 2000, 5
    X = rng.poisson(0.5, (T, 20, P)).astype(float)
    silent = rng.random(T) < 0.4
    X[silent] = 0.0
    W = np.abs(rng.standard_normal((3, P)))[rng.integers(0, 3, T)]
    y = np.matmul(X, W[:, :, None])[:, :, 0] + 0.1 * rng.standard_normal((T, 20)) * ~silent[:, None]
    data = TaskDataset.from_arrays(list(X), list(y))
    for strength in (0.1, 10.0, 1000.0):
        result = fit(data, fusion_strength=strength)
        assert_sound(result)
        assert result.graph.degree.max() <= 150


@every_solver
@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize("strength", [1e-3, 1.0, 1e6])
def test_all_tasks_identical(strength: float, noise: float, solver: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((15, 3))
    y = X @ [1.0, -2.0, 0.5] + noise * rng.standard_normal(15)
    data = TaskDataset.from_arrays([X] * 40, [y] * 40)
    result = fit(data, fusion_strength=strength, n_neighbors=5, solver=solver)
    expected = np.linalg.lstsq(X, y, rcond=None)[0]
    assert result.model.weights == pytest.approx(np.tile(expected, (40, 1)), abs=1e-10)
    assert result.report.status == SolveStatus.CONVERGED


def test_lost_digits_are_told_in_words_and_kept_by_the_triangular_form() -> None:
    """Weights of 1e6 and noise of 1e-2: yᵀy has the residual in its sixteenth digit."""
    rng = np.random.default_rng(0)
    weights = 1e6 * rng.standard_normal(3)
    X = [rng.standard_normal((20, 3)) for _ in range(6)]
    y = [x @ weights + 1e-2 * rng.standard_normal(20) for x in X]
    data = TaskDataset.from_arrays(X, y)
    instance = Instance(tuple(X), tuple(y), complete(6), 1e-3)
    gram = fit(data, fusion_strength=1e-3, graph=instance.graph)
    exact = fit(TriangularStatistics.from_dataset(data), fusion_strength=1e-3, graph=instance.graph)
    assert any("digits" in note for note in gram.report.notes)
    assert exact.report.notes == ()
    assert exact.report.objective == pytest.approx(instance.objective(exact.model.weights), rel=1e-6)
    well = fit(regular(rng, chain(5), 2).dataset, fusion_strength=1.0)
    assert well.report.notes == ()


def test_float32_is_computed_in_double_precision() -> None:
    instance = regular(np.random.default_rng(0), chain(10), 3)
    X32, y32 = [x.astype(np.float32) for x in instance.X], [y.astype(np.float32) for y in instance.y]
    single = fit(TaskDataset.from_arrays(X32, y32), fusion_strength=1.0, tolerance=1e-9)
    X64, y64 = [x.astype(np.float64) for x in X32], [y.astype(np.float64) for y in y32]
    double = fit(TaskDataset.from_arrays(X64, y64), fusion_strength=1.0, tolerance=1e-9)
    assert np.array_equal(single.model.weights, double.model.weights)
    assert_sound(single, 1e-9)


@pytest.mark.parametrize("strength", [0.0, 1e-3, 1.0, 1e6])
def test_tasks_without_any_data_follow_the_others(strength: float) -> None:
    rng = np.random.default_rng(0)
    instance = regular(rng, chain(30), 2)
    X = [x[: len(x) * (t % 3 > 0)] for t, x in enumerate(instance.X)]
    y = [v[: len(x)] for x, v in zip(X, instance.y, strict=True)]
    data = TaskDataset.from_arrays(X, y)
    result = fit(data, fusion_strength=strength, n_neighbors=4)
    assert_sound(result)
    W = result.model.weights
    pooled = pooled_weights(SufficientStatistics.from_dataset(data))
    if strength == 0.0:
        assert np.array_equal(W[::3], np.tile(pooled, (10, 1)))
    low, high = W[np.arange(30) % 3 > 0].min(axis=0), W[np.arange(30) % 3 > 0].max(axis=0)
    margin = 0.02 * (high - low) + 1e-6 + 0.02 * np.abs(pooled)
    assert (W[::3] >= np.minimum(low, pooled) - margin).all()
    assert (W[::3] <= np.maximum(high, pooled) + margin).all()


def test_no_data_at_all() -> None:
    data = TaskDataset.from_arrays([np.empty((0, 2))] * 5, [np.empty(0)] * 5)
    result = fit(data, fusion_strength=1.0)
    assert_sound(result)
    assert not result.model.weights.any()
    assert (result.report.objective, result.report.gap) == (0.0, 0.0)


@every_solver
@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1e6])
def test_units_of_the_target_do_not_matter(scale: float, solver: str) -> None:
    instance = regular(np.random.default_rng(0), chain(20), 3).with_strength(3.0)
    other = replace(instance, y=tuple(scale * y for y in instance.y), strength=3.0 * scale)
    one, two = run(instance, 1e-6, solver), run(other, 1e-6, solver)
    assert_sound(two, 1e-6)
    assert two.report.objective == pytest.approx(scale**2 * one.report.objective, rel=2e-6)


# The face


def test_the_same_input_gives_bitwise_the_same_answer() -> None:
    instance = regular(np.random.default_rng(0), chain(50), 3)
    first = fit(instance.dataset, fusion_strength=1.0)
    again = fit(instance.dataset, fusion_strength=1.0)
    assert np.array_equal(first.model.weights, again.model.weights)


def test_names_travel_through() -> None:
    data = TaskDataset.from_arrays([[[1.0, 2.0]], [[2.0, 1.0]]], [[1.0], [2.0]], ["01", "1"], ["a", "b"])
    result = fit(data, fusion_strength=0.1)
    assert (result.model.task_ids, result.model.feature_names) == (("01", "1"), ("a", "b"))


def test_a_given_graph_is_used() -> None:
    instance = regular(np.random.default_rng(0), chain(10), 2)
    result = run(instance, 1e-4)
    assert result.graph is instance.graph
    defaults = fit(instance.dataset, fusion_strength=1.0, n_neighbors=3)
    expected = nearest_neighbour_graph(single_task_weights(instance.statistics), 3)
    assert np.array_equal(defaults.graph.edges, expected.edges)


def test_the_statistics_are_not_changed() -> None:
    instance = regular(np.random.default_rng(0), chain(10), 2)
    before = instance.statistics.gram.copy(), instance.statistics.xty.copy()
    run(instance, 1e-8)
    assert np.array_equal(instance.statistics.gram, before[0])
    assert np.array_equal(instance.statistics.xty, before[1])


@every_solver
def test_progress_tells_phases_and_rounds_in_order(solver: str) -> None:
    instance = regular(np.random.default_rng(0), chain(20), 2)
    told: list[Progress] = []
    result = fit(instance.dataset, fusion_strength=5.0, n_neighbors=3, solver=solver, on_progress=told.append)
    phases = [this.phase for this in told if this.round == 0]
    assert phases == ["statistics", "start", "graph", "solve"]
    rounds = [this for this in told if this.round > 0]
    assert [this.round for this in rounds] == list(range(1, result.report.rounds + 1))
    assert [this.objective for this in rounds] == [this.objective for this in result.report.history]
    assert (np.diff([this.elapsed for this in told]) >= 0).all()
    assert rounds[-1].gap == result.report.gap


@pytest.mark.parametrize("phase", ["statistics", "start", "graph", "solve"])
@pytest.mark.parametrize("number", [0, 2])
def test_an_exception_of_the_listener_ends_the_fit(phase: str, number: int) -> None:
    class Cancelled(Exception):
        pass

    def listen(progress: Progress) -> None:
        if progress.phase == phase and progress.round == number:
            raise Cancelled

    instance = regular(np.random.default_rng(0), chain(20), 2)
    if number and phase != "solve":
        fit(instance.dataset, fusion_strength=5.0, on_progress=listen)
        return
    with pytest.raises(Cancelled):
        fit(instance.dataset, fusion_strength=5.0, n_neighbors=3, on_progress=listen)


@every_solver
def test_the_best_gap_never_rises(solver: str) -> None:
    instance = regular(np.random.default_rng(3), chain(60), 3).with_strength(10.0)
    history = run(instance, 1e-9, solver).report.history
    gaps = [this.gap for this in history if this.gap is not None]
    assert len(gaps) >= 1
    assert (np.diff(gaps) <= 0).all()


@pytest.mark.parametrize("tolerance", [0.0, -1.0, np.nan, np.inf])
def test_refuses_an_unusable_tolerance(tolerance: float) -> None:
    instance = regular(np.random.default_rng(0), chain(3), 1)
    with pytest.raises(ParameterError, match="tolerance must be a finite number above 0"):
        fit(instance.statistics, fusion_strength=1.0, tolerance=tolerance)


def test_refuses_other_unusable_arguments() -> None:
    instance = regular(np.random.default_rng(0), chain(3), 1)
    with pytest.raises(
        ParameterError, match="solver must be one of auto, dual, alternating, newton; not 'magic'"
    ):
        fit(instance.statistics, fusion_strength=1.0, solver="magic")
    short = regular(np.random.default_rng(0), chain(3), 4, n=3)
    with pytest.raises(ParameterError, match="solver 'dual' needs more independent rows than features"):
        fit(short.statistics, fusion_strength=1.0, solver="dual")
    with pytest.raises(ParameterError, match="fusion_strength"):
        fit(instance.statistics, fusion_strength=-1.0)
    with pytest.raises(ParameterError, match="n_neighbors"):
        fit(instance.statistics, fusion_strength=1.0, n_neighbors=0)
    with pytest.raises(DataError, match="the graph has 4 tasks, the data 3"):
        fit(instance.statistics, fusion_strength=1.0, graph=chain(4))


@every_solver
@pytest.mark.parametrize("strength", [1.0, 1e6])
def test_a_component_without_any_data_keeps_the_pooled_weights(strength: float, solver: str) -> None:
    instance = regular(np.random.default_rng(0), chain(8), 2)
    X = [x if t < 4 else x[:0] for t, x in enumerate(instance.X)]
    y = [v if t < 4 else v[:0] for t, v in enumerate(instance.y)]
    statistics = SufficientStatistics.from_dataset(TaskDataset.from_arrays(X, y))
    graph = TaskGraph([[0, 1], [1, 2], [2, 3], [4, 5], [5, 6], [6, 7]], np.ones(6), 8)
    result = fit(statistics, fusion_strength=strength, graph=graph, solver=solver)
    assert_sound(result)
    pooled = np.tile(pooled_weights(statistics), (4, 1))
    assert result.model.weights[4:] == pytest.approx(pooled, rel=1e-12)
