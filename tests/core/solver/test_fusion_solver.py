"""One solver for many strengths: the same answers as a fit of each alone."""

from __future__ import annotations

import numpy as np
import pytest

from ccmtl_core import ParameterError, SolveStatus, fit, fused_weights, fusion_threshold
from ccmtl_core.choices.single_task import start_weights
from ccmtl_core.solver.fusion_solver import FusionSolver
from tests.core.fusion_problems import random_graph, regular


def test_each_strength_gives_what_a_fit_of_its_own_gives() -> None:
    instance = regular(np.random.default_rng(0), random_graph(np.random.default_rng(1), 30, 0.2), 3)
    solver, start = (
        FusionSolver(instance.statistics.quadratic, instance.graph),
        start_weights(instance.statistics),
    )
    for strength in (3.0, 0.0, 0.3, 30.0, 3.0):
        outcome = solver.solve(strength, start, tolerance=1e-9)
        alone = fit(instance.statistics, fusion_strength=strength, graph=instance.graph, tolerance=1e-9)
        assert outcome.weights.tobytes() == alone.model.weights.tobytes()
        assert (outcome.objective, outcome.relative_gap) == (alone.report.objective, alone.report.gap)


def test_a_start_at_the_optimum_ends_where_it_began() -> None:
    instance = regular(np.random.default_rng(2), random_graph(np.random.default_rng(3), 30, 0.2), 3)
    solver = FusionSolver(instance.statistics.quadratic, instance.graph)
    best = solver.solve(2.0, start_weights(instance.statistics), tolerance=1e-10)
    again = solver.solve(2.0, best.weights, tolerance=1e-10)
    assert again.objective == pytest.approx(best.objective, rel=1e-10)
    np.testing.assert_allclose(again.weights, best.weights, atol=1e-4)


@pytest.mark.parametrize("strength", [0.02, 2.0, 200.0])
def test_a_start_whose_tasks_are_all_alike_is_no_answer_by_itself(strength: float) -> None:
    instance = regular(np.random.default_rng(4), random_graph(np.random.default_rng(5), 30, 0.2), 3)
    solver = FusionSolver(instance.statistics.quadratic, instance.graph)
    fused = fused_weights(instance.statistics, instance.graph)
    from_above = solver.solve(strength, fused, tolerance=1e-8)
    from_below = solver.solve(strength, start_weights(instance.statistics), tolerance=1e-8)
    assert from_above.status is SolveStatus.CONVERGED
    assert from_above.objective == pytest.approx(from_below.objective, rel=1e-7)


def test_flows_that_prove_the_fused_weights_spare_the_solve() -> None:
    instance = regular(np.random.default_rng(6), random_graph(np.random.default_rng(7), 30, 0.2), 3)
    solver = FusionSolver(instance.statistics.quadratic, instance.graph)
    bounds = fusion_threshold(instance.statistics, instance.graph)
    low, high = bounds.bracket
    fused = solver.solve(high, bounds.weights, tolerance=1e-10, flows=bounds.flows)
    assert (fused.solver, fused.status) == ("direct", SolveStatus.CONVERGED)
    assert np.array_equal(fused.weights, bounds.weights)
    below = solver.solve(0.5 * low, bounds.weights, tolerance=1e-8, flows=bounds.flows)
    assert below.solver != "direct"
    assert below.status is SolveStatus.CONVERGED
    assert below.objective < instance.with_strength(0.5 * low).objective(bounds.weights)


def test_many_features_are_followed_from_the_first_strength_on() -> None:
    graph = random_graph(np.random.default_rng(9), 30, 0.2)
    for P, first in ((16, "alternating"), (17, "following")):
        instance = regular(np.random.default_rng(8), graph, P, n=9)  # fewer rows than features
        solver = FusionSolver(instance.statistics.quadratic, graph)
        outcome = solver.solve(2.0, start_weights(instance.statistics), tolerance=1e-3, follow=True)
        assert outcome.solver.split("+")[0] == first
        assert outcome.status is SolveStatus.CONVERGED


@pytest.mark.parametrize(("share", "status"), [(0.8, "converged"), (0.95, "precision_limit")])
def test_steps_go_on_until_the_gap_leaves_room_for_what_is_hidden(
    share: float, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    instance = regular(np.random.default_rng(8), random_graph(np.random.default_rng(9), 30, 0.2), 3)
    solver, tolerance = FusionSolver(instance.statistics.quadratic, instance.graph), 1e-3
    start = start_weights(instance.statistics)
    plain = solver.solve(2.0, start, tolerance=tolerance, follow=True)
    assert plain.relative_gap > (1.0 - share) * tolerance, "the first certificate leaves no room"
    hidden = share * tolerance * plain.objective
    monkeypatch.setattr(FusionSolver, "_hidden_part", lambda self, problem, W: hidden)
    solver = FusionSolver(instance.statistics.quadratic, instance.graph)
    outcome = solver.solve(2.0, start, tolerance=tolerance, follow=True)
    assert (outcome.solver, str(outcome.status)) == ("following", status)
    assert (outcome.relative_gap <= tolerance) == (status == "converged")


@pytest.mark.parametrize("strength", [-1.0, np.nan, np.inf])
def test_strengths_that_do_not_exist_are_refused(strength: float) -> None:
    instance = regular(np.random.default_rng(0), random_graph(np.random.default_rng(1), 5, 0.5), 2)
    with pytest.raises(ParameterError, match="fusion_strength must be a number"):
        FusionSolver(instance.statistics.quadratic, instance.graph).solve(strength, np.zeros((5, 2)))
