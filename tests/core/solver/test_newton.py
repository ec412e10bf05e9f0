"""The path of Newton steps: certified at every tolerance, in few rounds, on every shape of graph."""

from __future__ import annotations

import numpy as np
import pytest

from ccmtl_core import SolveStatus
from ccmtl_core.choices.single_task import start_weights
from ccmtl_core.solver.newton import newton
from ccmtl_core.solver.objective import row_norms
from ccmtl_core.solver.outcome import Outcome, Recorder
from tests.core.fusion_problems import GRAPHS, Instance, regular


def run(instance: Instance, tolerance: float) -> Outcome:
    recorder = Recorder(tolerance, 200, lambda this, number: None)
    W = start_weights(instance.statistics)
    return newton(instance.problem, W, recorder, instance.certifier, instance.multigrid)


@pytest.mark.parametrize("graph_name", GRAPHS)
@pytest.mark.parametrize("strength", [0.03, 1.0, 30.0, 1e3, 1e6])
def test_every_graph_to_a_gap_of_1e_8_in_few_rounds(graph_name: str, strength: float) -> None:
    T = 120 if graph_name == "complete" else 300
    instance = regular(np.random.default_rng(1), GRAPHS[graph_name](T), 3).with_strength(strength)
    outcome = run(instance, 1e-8)
    assert outcome.status == SolveStatus.CONVERGED
    assert outcome.relative_gap <= 1e-8
    assert outcome.objective == pytest.approx(instance.objective(outcome.weights), rel=1e-12)
    assert len(outcome.history) <= 60


@pytest.mark.parametrize("strength", [0.1, 3.0, 30.0])
def test_tighter_tolerances_end_inside_the_gaps_of_looser_ones(strength: float) -> None:
    instance = regular(np.random.default_rng(2), GRAPHS["hubs"](200), 2).with_strength(strength)
    loose, tight = run(instance, 1e-3), run(instance, 1e-11)
    assert loose.relative_gap <= 1e-3
    assert tight.relative_gap <= 1e-11
    assert loose.objective * (1 - loose.relative_gap) <= tight.objective <= loose.objective * (1 + 1e-11)


def test_optimality_holds_where_no_edge_is_fused() -> None:
    instance = regular(np.random.default_rng(3), GRAPHS["chain"](50), 3).with_strength(0.05)
    W = run(instance, 1e-13).weights
    problem = instance.problem
    d = problem.differences(W)
    assert row_norms(d).min() > 1e-3
    U = problem.radius[:, None] * d / row_norms(d)[:, None]
    gradient = problem.loss_gradient(W) + problem.divergence(U)
    assert np.abs(gradient).max() <= 1e-5 * np.abs(problem.quadratic.xty).max()


def test_the_start_is_not_changed() -> None:
    instance = regular(np.random.default_rng(4), GRAPHS["star"](20), 2).with_strength(5.0)
    W = start_weights(instance.statistics)
    before = W.copy()
    recorder = Recorder(1e-6, 200, lambda this, number: None)
    newton(instance.problem, W, recorder, instance.certifier, instance.multigrid)
    assert np.array_equal(W, before)
