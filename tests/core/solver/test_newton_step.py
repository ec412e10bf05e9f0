"""Newton steps: at a fixed smoothing they solve the smoothed problem, quadratically near the end."""

from __future__ import annotations

import numpy as np
import pytest

from ccmtl_core.solver.newton_step import NewtonState
from ccmtl_core.solver.objective import row_norms
from ccmtl_core.solver.outcome import typical_length
from tests.core.fusion_problems import Instance, chain, complete, random_graph, regular


def start(seed: int, P: int, strength: float) -> tuple[Instance, np.ndarray]:
    rng = np.random.default_rng(seed)
    instance = regular(rng, random_graph(rng, 15, 0.3), P).with_strength(strength)
    return instance, instance.statistics.least_squares.weights.copy()


def smoothed_gradient(instance: Instance, W: np.ndarray, smoothing: float) -> np.ndarray:
    problem = instance.problem
    d = problem.differences(W)
    s = np.sqrt(row_norms(d) ** 2 + smoothing**2)
    return problem.loss_gradient(W) + problem.divergence((problem.radius / s)[:, None] * d)


@pytest.mark.parametrize("P", [1, 4])
@pytest.mark.parametrize("strength", [0.1, 3.0, 100.0])
def test_steps_at_one_smoothing_solve_the_smoothed_problem(P: int, strength: float) -> None:
    instance, W = start(P, P, strength)
    problem = instance.problem
    smoothing = 0.1 * typical_length(problem)
    size = np.abs(problem.quadratic.xty).max()
    state = NewtonState(problem, instance.multigrid, W)
    sizes = []
    for _ in range(25):
        state.step(smoothing, 1e-10)
        sizes.append(np.abs(smoothed_gradient(instance, state.W, smoothing)).max() / size)
    assert sizes[-1] <= 1e-12
    d = problem.differences(state.W)
    s = np.sqrt(row_norms(d) ** 2 + smoothing**2)
    assert state.flows() == pytest.approx((problem.radius / s)[:, None] * d, rel=1e-6, abs=1e-9)
    assert state.mismatch <= 1e-6 * state.slack
    slack = problem.radius @ (row_norms(d) - row_norms(d) ** 2 / s)
    assert state.slack == pytest.approx(slack, rel=1e-6)


def test_convergence_is_quadratic() -> None:
    instance, W = start(0, 3, 3.0)
    smoothing = 0.3 * typical_length(instance.problem)
    size = np.abs(instance.problem.quadratic.xty).max()
    state = NewtonState(instance.problem, instance.multigrid, W)
    errors = []
    while not errors or errors[-1] > 1e-13:
        state.step(smoothing, 1e-12)
        errors.append(np.abs(smoothed_gradient(instance, state.W, smoothing)).max() / size)
        assert len(errors) < 30
    near = [e for e in errors if e < 1e-2]
    assert len(near) <= 5, f"from 1e-2 to 1e-13 in a few steps, not in {errors}"


def test_the_start_is_not_changed() -> None:
    instance, W = start(1, 2, 1.0)
    before = W.copy()
    NewtonState(instance.problem, instance.multigrid, W).step(0.1, 1e-6)
    assert np.array_equal(W, before)


@pytest.mark.parametrize("make", [chain, complete])
def test_flows_stay_in_their_balls(make: type) -> None:
    instance = regular(np.random.default_rng(2), make(20), 3).with_strength(10.0)
    state = NewtonState(instance.problem, instance.multigrid, instance.statistics.least_squares.weights)
    for smoothing in 0.3 ** np.arange(12):
        state.step(float(smoothing), 0.1)
        assert (row_norms(state.flows()) <= instance.problem.radius * (1 + 1e-12)).all()
        assert state.slack >= 0
