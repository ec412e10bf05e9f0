"""The bracket of λ_fuse beside a cone solver's value, beside fits on either side of it, and on real data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import clarabel
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from benchmarks.solver import ta_feng
from ccmtl_core import (
    FusionThreshold,
    ParameterError,
    SufficientStatistics,
    TaskDataset,
    TaskGraph,
    fit,
    fused_weights,
    fusion_threshold,
    nearest_neighbour_graph,
    pooled_weights,
    strength_grid,
)
from ccmtl_core.choices.single_task import start_weights
from ccmtl_core.fitting.strength import RATIO, FusionBounds, single_task_cuts
from ccmtl_core.solver.objective import FusionProblem, row_norms
from tests.core.fusion_problems import Instance, disconnected, instances, random_graph, regular
from tests.core.school_like import school, school_like
from tests.support.real_data import DATA, SCHOOL, TA_FENG, needs


def least_load(instance: Instance) -> float:
    """Minimise s subject to DᵀU = g and 2 ‖U_e‖ / m_e ≤ s, by a cone solver."""
    statistics, graph = instance.statistics, instance.graph
    T, P, E = instance.n_tasks, instance.n_features, len(graph.edges)
    W = fused_weights(statistics, graph)
    g = statistics.xty - np.einsum("tpq,tq->tp", statistics.gram, W)
    size = np.linalg.norm(g)
    if not E or size == 0.0:
        return 0.0
    i, j = graph.edges.T
    D = sparse.csr_array((np.r_[np.ones(E), -np.ones(E)], (np.r_[:E, :E], np.r_[i, j])), shape=(E, T))
    kept = np.ones(T, dtype=bool)
    kept[np.unique(graph.component, return_index=True)[1]] = False  # its balance follows from the others'
    balance = sparse.hstack(
        [sparse.csr_array((kept.sum() * P, 1)), sparse.kron(D.T[kept], sparse.eye_array(P))]
    )
    balls = -sparse.block_diag([sparse.eye_array(P + 1)] * E)
    balls = sparse.csr_array(balls)[:, np.r_[0 : E * (P + 1)]]
    picks = np.arange(E * (P + 1)).reshape(E, P + 1)
    speed = sparse.csr_array(balls[:, picks[:, 0]] @ (0.5 * graph.multiplicity.astype(float))).reshape(-1, 1)
    cone = sparse.hstack([speed, balls[:, picks[:, 1:].ravel()]])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    n = 1 + E * P
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix((n, n)), np.r_[1.0, np.zeros(E * P)],
        sparse.csc_matrix(sparse.vstack([balance, cone])),
        np.r_[(g[kept] / size).ravel(), np.zeros(E * (P + 1))],
        [clarabel.ZeroConeT(int(kept.sum()) * P)] + [clarabel.SecondOrderConeT(P + 1)] * E, settings,
    )  # fmt: skip
    return float(solver.solve().x[0] * size)


def test_the_bracket_of_two_tasks_is_exact() -> None:
    data = TaskDataset.from_arrays([[[1.0]], [[1.0]]], [[0.0], [2.0]])
    graph = TaskGraph([[0, 1]], [2], n_tasks=2)
    assert fusion_threshold(SufficientStatistics.from_dataset(data), graph).bracket == pytest.approx(
        (1.0, 1.0)
    )


def negligible(instance: Instance) -> float:
    """Strengths that rounding cannot tell from zero."""
    return 1e-9 * float(row_norms(instance.statistics.xty).sum())


@settings(max_examples=60, deadline=None, derandomize=True)
@given(instances(max_tasks=8, wild=False))
def test_a_cone_solver_finds_its_value_within_the_bracket(instance: Instance) -> None:
    low, high = fusion_threshold(instance.statistics, instance.graph).bracket
    value = least_load(instance)
    assert low <= value * (1 + 1e-6) + negligible(instance)
    assert high >= value * (1 - 1e-6) - negligible(instance)
    assert high <= RATIO * low or high <= negligible(instance)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.integers(0, 2**32), st.integers(2, 40), st.sampled_from([0.1, 0.3, 1.0]))
def test_tight_brackets_are_reached_and_hold(seed: int, n_tasks: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    instance = regular(rng, random_graph(rng, n_tasks, share), 2)
    low, high = fusion_threshold(instance.statistics, instance.graph, ratio=1.02).bracket
    assert high <= 1.02 * low or high == 0.0
    assert low * (1 - 1e-6) <= least_load(instance) <= high * (1 + 1e-6)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(instances(max_tasks=8, wild=True))
def test_bounds_stay_in_order_on_scales_far_apart(instance: Instance) -> None:
    bounds = fusion_threshold(instance.statistics, instance.graph)
    assert (bounds.lower <= bounds.upper).all()
    assert (
        single_task_cuts(instance.statistics, instance.graph).max() <= bounds.bracket[1] * (1 + 1e-9)
    ) or (bounds.bracket[1] <= negligible(instance))


def test_no_more_steps_are_taken_than_decide_whether_a_strength_fuses_all() -> None:
    rng = np.random.default_rng(5)
    instance = regular(rng, random_graph(rng, 40, 0.1), 3)
    low, high = fusion_threshold(instance.statistics, instance.graph).bracket
    bounds = FusionBounds(instance.statistics, instance.graph)
    assert not bounds.fuses_all(0.1 * low)
    assert not bounds.found().flows.any()
    assert bounds.fuses_all(10.0 * high)


def test_bounds_that_come_no_closer_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = regular(np.random.default_rng(1), disconnected(14), 2)
    bounds, taken = FusionBounds(instance.statistics, instance.graph), []
    monkeypatch.setattr(bounds, "_step", lambda: (taken.append(1), bounds._note_progress()))
    bounds.tighten(RATIO)
    assert 10 <= len(taken) <= 11


def test_flows_are_balanced_and_within_the_upper_bound() -> None:
    rng = np.random.default_rng(5)
    instance = regular(rng, random_graph(rng, 60, 0.04), 3)
    bounds = fusion_threshold(instance.statistics, instance.graph)
    problem = instance.problem
    forces = -problem.loss_gradient(bounds.weights)
    np.testing.assert_allclose(problem.divergence(bounds.flows), forces, atol=1e-9 * np.abs(forces).max())
    load = 2.0 * row_norms(bounds.flows) / instance.graph.multiplicity
    component = instance.graph.component[instance.graph.edges[:, 0]]
    assert (load <= bounds.upper[component]).all()


def test_each_component_has_bounds_of_its_own() -> None:
    instance = regular(np.random.default_rng(1), disconnected(14), 2)
    bounds = fusion_threshold(instance.statistics, instance.graph)
    for c in range(instance.graph.n_components):
        tasks = np.flatnonzero(instance.graph.component == c)
        inside = np.isin(instance.graph.edges[:, 0], tasks)
        alone = Instance(
            tuple(instance.X[t] for t in tasks),
            tuple(instance.y[t] for t in tasks),
            TaskGraph(
                np.searchsorted(tasks, instance.graph.edges[inside]),
                instance.graph.multiplicity[inside],
                len(tasks),
            ),
            1.0,
        )
        assert bounds.lower[c] - 1e-9 <= least_load(alone) <= bounds.upper[c] + 1e-9


def test_fits_on_either_side_are_fused_and_not() -> None:
    rng = np.random.default_rng(7)
    instance = regular(rng, random_graph(rng, 25, 0.3), 3)
    low, high = fusion_threshold(instance.statistics, instance.graph, ratio=1.01).bracket
    data, graph = instance.statistics, instance.graph
    assert graph.n_components == 1
    fused = fit(data, fusion_strength=1.001 * high, graph=graph, tolerance=1e-10)
    assert len(fused.clusters) == 1
    assert len(fused.clusters[0]) == 25
    apart = fit(data, fusion_strength=0.99 * low, graph=graph, tolerance=1e-10)
    assert sum(len(group) for group in apart.clusters[:1]) < 25
    at_low = FusionProblem(data.quadratic, graph, 0.99 * low)
    assert apart.report.objective < at_low.objective(fused_weights(data, graph))


def test_renumbered_tasks_have_the_same_bounds() -> None:
    rng = np.random.default_rng(9)
    instance = regular(rng, random_graph(rng, 20, 0.15), 2)
    order = rng.permutation(20)
    statistics, graph = instance.statistics.reordered(order), instance.graph.reordered(order)
    ours, theirs = (
        fusion_threshold(instance.statistics, instance.graph, ratio=1.001),
        fusion_threshold(statistics, graph, ratio=1.001),
    )
    rank = np.argsort(order)
    component = graph.component[rank]
    np.testing.assert_allclose(
        ours.upper[instance.graph.component], theirs.upper[component], rtol=2e-3, atol=1e-9
    )


def test_scaled_problems_have_scaled_bounds() -> None:
    instance = regular(np.random.default_rng(2), random_graph(np.random.default_rng(3), 15, 0.4), 2)
    scaled = replace(
        instance.statistics, gram=4.0 * instance.statistics.gram, xty=4.0 * instance.statistics.xty
    )
    one = fusion_threshold(instance.statistics, instance.graph)
    four = fusion_threshold(scaled, instance.graph)
    np.testing.assert_allclose(four.upper, 4.0 * one.upper, rtol=1e-10)


def test_tasks_that_agree_need_no_strength() -> None:
    rng = np.random.default_rng(0)
    X = [rng.standard_normal((8, 2)) for _ in range(6)]
    data = SufficientStatistics.from_dataset(TaskDataset.from_arrays(X, [x @ [1.0, -2.0] for x in X]))
    graph = random_graph(rng, 6, 1.0)
    low, high = fusion_threshold(data, graph).bracket
    assert low == 0.0
    assert high < 1e-10
    assert strength_grid(data, graph).tolist() == [0.0]


def test_the_fused_limit_is_the_pooled_model_of_each_component() -> None:
    instance = regular(np.random.default_rng(4), disconnected(9), 3)
    W = fused_weights(instance.statistics, instance.graph)
    for c in range(instance.graph.n_components):
        tasks = np.flatnonzero(instance.graph.component == c)
        own = instance.statistics.reordered(tasks)
        np.testing.assert_allclose(W[tasks], np.tile(pooled_weights(own), (len(tasks), 1)), rtol=1e-10)


def test_the_grid_spans_from_each_alone_to_all_fused() -> None:
    instance = regular(np.random.default_rng(6), random_graph(np.random.default_rng(7), 30, 0.3), 2)
    grid = strength_grid(instance.statistics, instance.graph, 12)
    assert len(grid) == 12
    assert grid[0] == 0.0
    assert (np.diff(grid) > 0).all()
    np.testing.assert_allclose(grid[2:] / grid[1:-1], grid[2] / grid[1])
    cuts = single_task_cuts(instance.statistics, instance.graph)
    high = fusion_threshold(instance.statistics, instance.graph).bracket[1]
    assert grid[-1] == pytest.approx(high)
    assert grid[1] == pytest.approx(min(np.median(cuts[cuts > 0]), 1e-3 * high))


def test_what_does_not_exist_is_refused() -> None:
    instance = regular(np.random.default_rng(4), disconnected(9), 2)
    with pytest.raises(ParameterError, match="ratio must be above 1, not 1"):
        fusion_threshold(instance.statistics, instance.graph, ratio=1.0)
    with pytest.raises(ParameterError, match="at least 3 strengths, not 2"):
        strength_grid(instance.statistics, instance.graph, 2)


def holds_on_either_side(data: SufficientStatistics, graph: TaskGraph, bounds: FusionThreshold) -> None:
    """The flows prove the upper bound by themselves; the heaviest single task bounds from below."""
    problem = FusionProblem(data.quadratic, graph, 0.0)
    forces = -problem.loss_gradient(bounds.weights)
    left = row_norms(forces - problem.divergence(bounds.flows)).sum()
    load = (2.0 * row_norms(bounds.flows) / graph.multiplicity).max()
    assert left <= 1e-9 * bounds.bracket[1]
    assert load <= bounds.bracket[1] <= load * (1 + 1e-6)
    assert single_task_cuts(data, graph).max() <= bounds.bracket[1]
    assert bounds.bracket[1] <= RATIO * bounds.bracket[0]


@pytest.mark.parametrize(
    ("pupils", "least", "most"),
    [(school_like, 7472, 7845), pytest.param(school, 1.009e4, 1.06e4, marks=needs(SCHOOL))],
)
def test_school(pupils: Callable[[], TaskDataset], least: float, most: float) -> None:
    data = SufficientStatistics.from_dataset(pupils())
    graph = nearest_neighbour_graph(start_weights(data))
    bounds = fusion_threshold(data, graph, ratio=1.05)
    holds_on_either_side(data, graph, bounds)
    low, high = bounds.bracket
    assert least <= low <= high <= most


@needs(TA_FENG)
def test_ta_feng() -> None:
    data = ta_feng.read(DATA)
    graph = nearest_neighbour_graph(start_weights(data))
    bounds = fusion_threshold(data, graph)
    holds_on_either_side(data, graph, bounds)
    low, high = bounds.bracket
    assert 3.58e5 <= low <= high <= 3.83e5
