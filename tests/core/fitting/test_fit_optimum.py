"""The whole fit against an independent optimum, and at the ends of the strengths."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from ccmtl_core import TaskDataset, TaskGraph, fit, single_task_weights
from tests.core.fits import assert_sound, every_solver, run
from tests.core.fusion_problems import Instance, chain, complete, instances, random_graph, regular
from tests.core.oracle import interior_point, optimum


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
