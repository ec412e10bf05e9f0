"""The whole fit at extremes: of counts, of scale, of rank, and without data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ccmtl_core import (
    DataError,
    SolveStatus,
    SufficientStatistics,
    TaskDataset,
    TaskGraph,
    TriangularStatistics,
    fit,
    fit_path,
    pooled_weights,
    select,
    shrunk_weights,
)
from tests.core.fits import assert_sound, every_solver, run
from tests.core.fusion_problems import Instance, chain, complete, regular


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


@pytest.mark.parametrize("form", [SufficientStatistics, TriangularStatistics])
@pytest.mark.parametrize("weight", [1e-30, 1e20, 1e30, 1e35])
@pytest.mark.parametrize("far", [0.0, 100.0])
def test_units_of_the_weights_do_not_matter_beside_an_intercept(
    form: type[SufficientStatistics] | type[TriangularStatistics], weight: float, far: float
) -> None:
    """All rows weigh the same and the strength with them: the problem is the same one."""
    rng = np.random.default_rng(1)
    X, W = rng.standard_normal((8, 12, 3)), 1.0 + 0.3 * rng.standard_normal((8, 3))
    y = np.einsum("tnp,tp->tn", X, W) + rng.standard_normal((8, 12))
    data = TaskDataset.from_arrays(X + far, y)
    plain = fit(form.from_dataset(data), fusion_strength=1.0, fit_intercept=True, n_neighbors=3)
    statistics = form.from_dataset(data, np.full(96, weight))
    scaled = fit(statistics, fusion_strength=weight, fit_intercept=True, n_neighbors=3)
    assert_sound(scaled)
    np.testing.assert_allclose(scaled.model.weights, plain.model.weights, rtol=1e-7)
    np.testing.assert_allclose(scaled.model.intercept, plain.model.intercept, rtol=1e-7)


def test_triangular_statistics_of_fewer_rows_than_features() -> None:
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(1 + t % 3, 30)) for t in range(60)]
    data = TaskDataset.from_arrays(X, [rng.normal(size=len(x)) for x in X])
    triangular = TriangularStatistics.from_dataset(data)
    np.testing.assert_allclose(
        triangular.gram, SufficientStatistics.from_dataset(data).gram, rtol=0, atol=1e-12 * 30
    )
    alone = fit(triangular, fusion_strength=0.0).report
    assert (alone.status, alone.gap) == (SolveStatus.CONVERGED, 0.0)


@pytest.mark.parametrize("solver", ["dual", "alternating"])
def test_an_enormous_strength_leaves_the_objective_what_it_is(solver: str) -> None:
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(10, 4)) for _ in range(20)]
    data = TaskDataset.from_arrays(X, [rng.normal(size=10) for _ in X])
    result = fit(data, fusion_strength=1e20, solver=solver)
    loss = 0.5 * SufficientStatistics.from_dataset(data).squared_error(result.model.weights).sum()
    assert result.report.objective >= loss > 0


@every_solver
@pytest.mark.parametrize("form", [SufficientStatistics, TriangularStatistics])
@pytest.mark.parametrize("noise", [0.0, 1.0])
@pytest.mark.parametrize("choices", [{}, {"metric": "mahalanobis"}, {"loss_scaling": "spread"}])
def test_weights_do_not_run_away_where_rounding_outweighs_the_strength(
    form: type[SufficientStatistics] | type[TriangularStatistics],
    noise: float,
    choices: dict[str, str],
    solver: str,
) -> None:
    """Where a feature is constant within a task, nothing but the strength holds its weight."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((9, 3 + seed, 3))
        X[:, :, 1] = rng.choice([0.1, 3.0, 1e6], (9, 1))
        y = np.einsum("tnp,tp->tn", X, rng.standard_normal((9, 3)))
        y += noise * rng.standard_normal(y.shape) + 3.0 * rng.standard_normal((9, 1))
        statistics = form.from_dataset(TaskDataset.from_arrays(X, y))
        options = {"fit_intercept": True, "n_neighbors": 3, "solver": solver, **choices}
        if "metric" not in choices:  # which brings a start of its own, away from the least squares
            options["initial_weights"] = shrunk_weights(statistics.centred, 1.0)
        alone = fit(statistics, fusion_strength=0.0, **options)  # type: ignore[arg-type]
        for strength in (1e-100, 1e-60, 1e-40):
            result = fit(statistics, fusion_strength=strength, **options)  # type: ignore[arg-type]
            assert_sound(result)
            assert np.abs(result.model.weights).max() <= 3.0 * np.abs(alone.model.weights).max()


@pytest.mark.parametrize("form", [SufficientStatistics, TriangularStatistics])
@pytest.mark.parametrize("strength", [1e-100, 1.0, 1e100])
@pytest.mark.parametrize(
    "choices",
    [
        {},
        {"solver": "newton"},
        {"solver": "alternating", "fit_intercept": True},
        {"metric": "mahalanobis", "loss_scaling": "spread"},
    ],
)
@pytest.mark.parametrize("n", [2, 12])
def test_the_largest_values_that_are_taken_overflow_nowhere(
    form: type[SufficientStatistics] | type[TriangularStatistics],
    strength: float,
    choices: dict[str, object],
    n: int,
) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((10, n, 3)), rng.standard_normal((10, n))
    for x_size, y_size in ((1e44, 1e44), (1e-50, 1e44), (1e44, 1e-50), (1e-50, 1e-50)):
        statistics = form.from_dataset(TaskDataset.from_arrays(x_size * X, y_size * y))
        result = fit(statistics, fusion_strength=strength, n_neighbors=3, **choices)  # type: ignore[arg-type]
        assert np.isfinite(result.model.weights).all()
        assert result.report.gap >= 0.0


def test_strengths_are_chosen_at_both_ends_of_what_is_taken() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((10, 12, 3)), rng.standard_normal((10, 12))
    for size in (1e-60, 1e44):
        chosen = select(TaskDataset.from_arrays(size * X, size * y), n_folds=3, n_neighbors=3)
        assert np.isfinite(chosen.errors).all()


@pytest.mark.parametrize(("x_size", "y_size", "column"), [(1.0, 1e140, "y"), (1e140, 1.0, "price")])
def test_larger_values_are_refused_by_name(x_size: float, y_size: float, column: str) -> None:
    rng = np.random.default_rng(0)
    X, y = x_size * np.abs(rng.standard_normal((4, 12, 1))), y_size * rng.standard_normal((4, 12))
    data = TaskDataset.from_arrays(X, y, task_ids=["a", "b", "c", "tea"], feature_names=["price"])
    message = rf"task 'tea', {column}: the sum of squares is \de\+281, and a fit computes with up to 1e\+90"
    with pytest.raises(DataError, match=message):
        fit(data, fusion_strength=1.0)
    with pytest.raises(DataError, match=message):
        fit_path(data, [0.0, 1.0])
    with pytest.raises(DataError, match=message):
        select(data)
