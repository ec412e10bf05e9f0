"""The alternation: each round lowers the smoothed objective, and the best certified gap never rises."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings

from ccmtl_core.choices.single_task import start_weights
from ccmtl_core.solver.alternating import alternate
from ccmtl_core.solver.certificate import Certificate
from ccmtl_core.solver.objective import row_norms
from ccmtl_core.solver.outcome import Recorder
from tests.core.fusion_problems import Instance, chain, disconnected, hubs, instances, regular

property_test = settings(derandomize=True, max_examples=30)


class Witness(Recorder):
    """A recorder that keeps the weights of each round."""

    def __init__(self, tolerance: float) -> None:
        super().__init__(tolerance, 100, lambda this, number: None)
        self.rounds: list[tuple[np.ndarray, float]] = []

    def consider(self, W: np.ndarray, objective: float, certificate: Certificate | None = None) -> None:
        super().consider(W, objective, certificate)
        self.latest = W.copy()

    def end_round(self, objective: float, smoothing: float, cg_iterations: int) -> None:
        super().end_round(objective, smoothing, cg_iterations)
        self.rounds.append((self.latest, smoothing))


def smoothed(instance: Instance, W: np.ndarray, smoothing: float) -> float:
    problem = instance.problem
    return problem.loss(W) + float(
        problem.radius @ np.sqrt(row_norms(problem.differences(W)) ** 2 + smoothing**2)
    )


def run(instance: Instance, tolerance: float) -> Witness:
    witness = Witness(tolerance)
    alternate(
        instance.problem, start_weights(instance.statistics), witness, instance.certifier, instance.multigrid
    )
    return witness


def check(instance: Instance, witness: Witness) -> None:
    for (before, _), (after, smoothing) in pairwise(witness.rounds):
        if smoothing < 1e-8 * np.abs(after).max():
            break  # edge weights beyond what double precision can balance
        was = smoothed(instance, before, smoothing)
        noise = 10 * instance.rounding(after)
        assert smoothed(instance, after, smoothing) <= was + noise
    gaps = [this.gap for this in witness.outcome().history if this.gap is not None]
    assert gaps or witness.outcome().objective == 0.0
    assert (np.diff(gaps) <= 0).all()
    smoothings = [smoothing for _, smoothing in witness.rounds]
    assert (np.diff(smoothings) <= 0).all()


@property_test
@given(instance=instances())
def test_rounds_lower_the_smoothed_objective_and_the_gap(instance: Instance) -> None:
    if len(instance.graph.edges):
        check(instance, run(instance, 1e-8))


@pytest.mark.parametrize("make", [chain, disconnected, hubs])
@pytest.mark.parametrize("strength", [0.1, 10.0])
def test_rounds_lower_them_on_larger_sets_too(make: type, strength: float) -> None:
    instance = regular(np.random.default_rng(0), make(200), 3).with_strength(strength)
    witness = run(instance, 1e-4)
    check(instance, witness)
    outcome = witness.outcome()
    assert outcome.relative_gap <= 1e-4
    assert outcome.objective == pytest.approx(instance.objective(outcome.weights), rel=1e-12)


@pytest.mark.parametrize("tolerance", [1e-2, 1e-6])
def test_no_round_is_spent_on_more_than_the_tolerance_asks_for(tolerance: float) -> None:
    instance = regular(np.random.default_rng(0), hubs(200), 3).with_strength(0.01)
    outcome = run(instance, tolerance).outcome()
    assert outcome.relative_gap <= tolerance
    assert (len(outcome.history) == 1) == (tolerance == 1e-2)


def test_rounds_at_one_smoothing_approach_the_minimum_of_the_smoothed_objective() -> None:
    instance = regular(np.random.default_rng(1), chain(12), 2).with_strength(5.0)
    rounds = run(instance, 1e-12).rounds
    problem = instance.problem
    sizes = []
    first = [W for W, smoothing in rounds if smoothing == rounds[0][1]]
    smoothing = rounds[0][1]
    for W in first:
        d = problem.differences(W)
        w = problem.radius / np.sqrt(row_norms(d) ** 2 + smoothing**2)
        gradient = problem.loss_gradient(W) + problem.divergence(w[:, None] * d)
        sizes.append(np.linalg.norm(gradient))
    assert sizes[-1] <= 0.2 * sizes[0]
