"""Newton steps from strength to strength: certified at each, in few rounds, whatever the tasks are like."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from ccmtl_core import SolveStatus
from ccmtl_core.choices.single_task import start_weights
from ccmtl_core.solver.clusters import Clusters
from ccmtl_core.solver.fusion_solver import FusionSolver
from ccmtl_core.solver.newton import Follower
from ccmtl_core.solver.outcome import Outcome, Recorder
from tests.core.fusion_problems import GRAPHS, Instance, instances, regular

STRENGTHS = np.geomspace(0.03, 300.0, 12)


def followed(instance: Instance, strengths: np.ndarray, tolerance: float) -> list[Outcome]:
    """What the steps alone find, without another solver to take over."""
    follower, W = Follower(instance.multigrid), start_weights(instance.statistics)
    outcomes = []
    for strength in strengths:
        problem, recorder = instance.problem.at(float(strength)), Recorder(tolerance, 200)
        follower.solve(problem, W, recorder, instance.certifier.at(problem))
        outcomes.append(recorder.outcome())
    return outcomes


@pytest.mark.parametrize("graph_name", GRAPHS)
def test_every_strength_is_certified_in_few_rounds_on_every_graph(graph_name: str) -> None:
    instance = regular(np.random.default_rng(1), GRAPHS[graph_name](120), 3)
    outcomes = followed(instance, STRENGTHS, 1e-3)
    assert {outcome.status for outcome in outcomes} == {SolveStatus.CONVERGED}
    assert sum(len(outcome.history) for outcome in outcomes) <= 6 * len(STRENGTHS)


def test_objectives_are_within_their_gaps_of_a_tight_solve() -> None:
    instance = regular(np.random.default_rng(2), GRAPHS["hubs"](150), 2)
    alone = FusionSolver(instance.statistics.quadratic, instance.graph)
    for strength, outcome in zip(STRENGTHS, followed(instance, STRENGTHS, 1e-4), strict=True):
        best = alone.solve(float(strength), start_weights(instance.statistics), tolerance=1e-10).objective
        assert outcome.relative_gap <= 1e-4
        assert outcome.objective == pytest.approx(
            instance.with_strength(float(strength)).objective(outcome.weights), rel=1e-10
        )
        assert best * (1 - 1e-10) <= outcome.objective <= best * (1 + outcome.relative_gap)


def test_tasks_are_fused_exactly_where_they_are_few_groups() -> None:
    instance = regular(np.random.default_rng(3), GRAPHS["complete"](60), 2)
    outcomes = followed(instance, STRENGTHS, 1e-4)
    groups = [Clusters.of_equal(instance.graph, outcome.weights).n_clusters for outcome in outcomes]
    assert groups[-1] == 1
    assert any(1 < n < 60 for n in groups)


def test_features_that_nearly_agree_take_no_more_rounds() -> None:
    rng = np.random.default_rng(4)
    level = rng.lognormal(0.0, 2.0, (200, 40, 1))
    X = tuple(level[t] + 0.05 * rng.standard_normal((40, 5)) for t in range(200))
    y = tuple(x.mean(axis=1) + 0.3 * rng.standard_normal(40) for x in X)
    instance = Instance(X, y, GRAPHS["hubs"](200), 1.0)
    outcomes = followed(instance, STRENGTHS, 1e-3)
    assert {outcome.status for outcome in outcomes} == {SolveStatus.CONVERGED}
    assert sum(len(outcome.history) for outcome in outcomes) <= 6 * len(STRENGTHS)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(instances(max_tasks=6))
def test_other_solvers_take_over_where_steps_do_not_arrive(instance: Instance) -> None:
    solver, W = (
        FusionSolver(instance.statistics.quadratic, instance.graph),
        start_weights(instance.statistics),
    )
    for strength in instance.strength * np.geomspace(0.1, 10.0, 4):
        outcome = solver.solve(float(strength), W, tolerance=1e-4, follow=True)
        W = outcome.weights
        again = FusionSolver(instance.statistics.quadratic, instance.graph).solve(
            float(strength), W, tolerance=1e-4
        )
        assert outcome.status is again.status
        assert outcome.relative_gap <= max(1e-4, 1.01 * again.relative_gap)


def test_the_start_is_not_changed() -> None:
    instance = regular(np.random.default_rng(5), GRAPHS["star"](20), 2)
    W = start_weights(instance.statistics)
    before = W.copy()
    FusionSolver(instance.statistics.quadratic, instance.graph).solve(5.0, W, tolerance=1e-3, follow=True)
    assert np.array_equal(W, before)
