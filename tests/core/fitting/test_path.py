"""The path over the strengths: at each of them what a fit of its own gives, in any order asked for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from ccmtl_core import (
    ParameterError,
    fit,
    fit_path,
    fused_weights,
    fusion_threshold,
    single_task_weights,
    strength_grid,
)
from ccmtl_core.fitting.path import PathPoint
from ccmtl_core.solver.report import SolveStatus
from tests.core.fusion_problems import Instance, instances, random_graph, regular


@pytest.fixture(scope="module")
def instance() -> Instance:
    return regular(np.random.default_rng(0), random_graph(np.random.default_rng(1), 40, 0.15), 3)


def test_each_point_is_the_optimum_of_its_strength(instance: Instance) -> None:
    path = fit_path(instance.statistics, graph=instance.graph, tolerance=1e-9)
    grid = strength_grid(instance.statistics, instance.graph)
    assert path.fusion_strengths.tolist() == grid.tolist()
    for point in path.points:
        alone = fit(
            instance.statistics, fusion_strength=point.fusion_strength, graph=instance.graph, tolerance=1e-9
        )
        assert point.status is SolveStatus.CONVERGED
        assert point.gap <= 1e-9
        assert point.objective == pytest.approx(alone.report.objective, rel=2e-9)
        at = instance.with_strength(point.fusion_strength)
        assert at.objective(point.weights) == pytest.approx(point.objective, rel=1e-10)


def test_it_leads_from_each_task_alone_to_one_model(instance: Instance) -> None:
    path = fit_path(instance.statistics, graph=instance.graph, tolerance=1e-8)
    np.testing.assert_allclose(path.points[0].weights, single_task_weights(instance.statistics))
    assert path.n_groups[0] == 40
    last = path.points[-1]
    assert (last.solver, last.n_groups) == ("direct", instance.graph.n_components)
    np.testing.assert_allclose(last.weights, fused_weights(instance.statistics, instance.graph), rtol=1e-11)
    assert (np.diff([point.objective for point in path.points]) >= 0).all()


def test_strengths_come_back_in_the_order_asked_for(instance: Instance) -> None:
    seen: list[PathPoint] = []
    asked = [3.0, 0.0, 30.0, 0.3, 3.0]
    path = fit_path(instance.statistics, asked, graph=instance.graph, on_point=seen.append)
    assert path.fusion_strengths.tolist() == asked
    assert [point.fusion_strength for point in seen] == sorted(asked)
    assert path.points[0].objective == pytest.approx(path.points[4].objective, rel=1e-4)
    model = path.model(2)
    assert np.array_equal(model.weights, path.points[2].weights)
    assert model.task_ids == instance.statistics.task_ids


def test_the_graph_is_that_of_a_fit(instance: Instance) -> None:
    path = fit_path(instance.dataset, [1.0], n_neighbors=4)
    alone = fit(instance.dataset, fusion_strength=1.0, n_neighbors=4)
    assert np.array_equal(path.graph.edges, alone.graph.edges)
    assert path.points[0].objective == alone.report.objective


@settings(max_examples=25, deadline=None, derandomize=True)
@given(instances(max_tasks=6, wild=False))
def test_any_tasks_have_a_path(instance: Instance) -> None:
    path = fit_path(instance.statistics, graph=instance.graph, tolerance=1e-6)
    high = fusion_threshold(instance.statistics, instance.graph).bracket[1]
    for point in path.points:
        assert point.gap <= 1e-6
    if len(path.points) > 1:
        assert path.points[-1].fusion_strength == pytest.approx(high)
        assert path.n_groups[-1] == instance.graph.n_components


@pytest.mark.parametrize("strengths", [[], 3.0, [[1.0]]])
def test_what_is_not_a_list_of_strengths_is_refused(instance: Instance, strengths: object) -> None:
    with pytest.raises(ParameterError, match="a list of one or more numbers"):
        fit_path(instance.statistics, strengths, graph=instance.graph)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
def test_strengths_that_do_not_exist_are_refused(instance: Instance, bad: float) -> None:
    with pytest.raises(ParameterError, match="0, or from 1e-100 to 1e100"):
        fit_path(instance.statistics, [1.0, bad], graph=instance.graph)
