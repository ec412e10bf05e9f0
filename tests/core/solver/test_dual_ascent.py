"""Dual ascent: proofs that hold from the first step on, optima to many digits, exact fusion, giving up."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccmtl_core import SolveStatus, fit
from ccmtl_core.solver.clusters import Clusters, Neighbourhood
from ccmtl_core.solver.dual_ascent import DualAscent, Inverse, dual_ascent
from ccmtl_core.solver.outcome import Recorder
from tests.core.fusion_problems import Instance, chain, hubs, random_graph, regular
from tests.core.oracle import optimum


def random_instance(seed: int, strength: float) -> Instance:
    rng = np.random.default_rng(seed)
    T, P = int(rng.integers(2, 12)), int(rng.integers(1, 4))
    return regular(rng, random_graph(rng, T, 0.5), P).with_strength(strength)


def inverse_of(instance: Instance) -> Inverse:
    inverse = Inverse.of(instance.problem)
    assert inverse is not None
    return inverse


def run(instance: Instance, tolerance: float) -> Recorder:
    recorder = Recorder(tolerance, 500)
    dual_ascent(instance.problem, inverse_of(instance), recorder)
    return recorder


@settings(derandomize=True, max_examples=60)
@given(seed=st.integers(0, 10**6), exponent=st.floats(-2, 3), steps=st.integers(0, 30), size=st.floats(0, 10))
def test_the_bound_holds_at_any_flows(seed: int, exponent: float, steps: int, size: float) -> None:
    instance = random_instance(seed, 10.0**exponent)
    least, _ = optimum(instance)
    flows = size * np.random.default_rng(seed).standard_normal(
        (len(instance.graph.edges), instance.n_features)
    )
    state = DualAscent(instance.problem, inverse_of(instance), flows)
    state.climb(steps)
    W, certificate = state.certified()
    assert certificate.objective == pytest.approx(instance.objective(W), rel=1e-12)
    assert certificate.lower_bound <= least * (1 + 1e-12)
    assert instance.objective(W) >= least * (1 - 1e-12)


@pytest.mark.parametrize("strength", [0.0, 0.01, 1.0, 10.0, 1e4])
@pytest.mark.parametrize("seed", range(4))
def test_reaches_the_optimum_and_fuses_what_it_fuses(seed: int, strength: float) -> None:
    instance = random_instance(seed, strength)
    least, W = optimum(instance)
    outcome = run(instance, 1e-10).outcome()
    assert outcome.status is SolveStatus.CONVERGED
    assert outcome.objective == pytest.approx(least, rel=1e-9)
    assert outcome.weights == pytest.approx(W, abs=1e-4)
    i, j = instance.graph.edges.T
    at_optimum = np.linalg.norm(W[i] - W[j], axis=1) == 0
    equal = (outcome.weights[i] == outcome.weights[j]).all(axis=1)
    assert np.array_equal(equal, at_optimum)


@pytest.mark.parametrize("with_neighbours", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_a_neighbourhood_has_the_weights_and_the_edges_of_the_whole(seed: int, with_neighbours: bool) -> None:
    """Flows held fast count as part of Xᵀy: the flows among the neighbours give the same weights."""
    rng = np.random.default_rng(seed)
    instance = regular(rng, random_graph(rng, 30, 0.1), 3).with_strength(3.0)
    problem = instance.problem
    clusters = Clusters.along(instance.graph, rng.random(len(problem.head)) < 0.1)
    whole = DualAscent(problem, inverse_of(instance))
    whole.climb(3)
    nearby = Neighbourhood(problem, clusters, with_neighbours=with_neighbours)
    part = nearby.with_flows(whole.flows)
    inverse = Inverse.of(part)
    assert inverse is not None
    W = DualAscent(part, inverse, whole.flows[nearby.edges]).certified()[0]
    np.testing.assert_allclose(W, whole.certified()[0][nearby.tasks], rtol=1e-9, atol=1e-12)
    fused = clusters.size[clusters.label] > 1
    at_fused = fused[problem.head] | fused[problem.tail]
    ends = np.unique(problem.graph.edges[at_fused]) if with_neighbours else np.flatnonzero(fused)
    assert np.array_equal(nearby.tasks, ends), "each task that fuses, and each neighbour of one"
    np.testing.assert_array_equal(nearby.tasks[part.graph.edges], problem.graph.edges[nearby.edges])
    same = nearby.clusters.label[:, None] == nearby.clusters.label
    label = clusters.label[nearby.tasks]
    np.testing.assert_array_equal(same, label[:, None] == label)


def test_the_best_gap_never_rises() -> None:
    instance = regular(np.random.default_rng(1), hubs(60), 3).with_strength(5.0)
    gaps = [this.gap for this in run(instance, 1e-9).outcome().history]
    assert len(gaps) > 3
    assert (np.diff(np.array(gaps, dtype=float)) <= 0).all()


@settings(derandomize=True, max_examples=30)
@given(seed=st.integers(0, 10**6), P=st.integers(1, 20))
def test_inverse_blocks_and_their_norms(seed: int, P: int) -> None:
    instance = regular(np.random.default_rng(seed), chain(3), P, n=3 * P + 2)
    inverse = inverse_of(instance)
    exact = np.linalg.inv(instance.statistics.gram)
    assert inverse.blocks == pytest.approx(exact, rel=1e-8, abs=1e-10)
    norm = np.linalg.norm(exact, 2, axis=(1, 2))
    assert (norm <= inverse.norm * (1 + 1e-12)).all()
    assert (inverse.norm <= norm * P**0.125 * (1 + 1e-9)).all()


def test_no_inverse_where_a_task_is_not_well_determined() -> None:
    short = regular(np.random.default_rng(0), chain(3), 4, n=3)
    assert Inverse.of(short.problem) is None
    X = list(regular(np.random.default_rng(0), chain(3), 2).X)
    X[1] = X[1] * [[1.0, 0.0]] + X[1][:, :1] * [[0.0, 1.0]]  # two equal columns
    collinear = Instance(tuple(X), tuple(x[:, 0] for x in X), chain(3), 1.0)
    assert Inverse.of(collinear.problem) is None


def test_gives_up_where_steps_are_too_small_and_auto_goes_on() -> None:
    rng = np.random.default_rng(3)
    easy = regular(rng, hubs(40), 3, n=30).with_strength(20.0)
    X = tuple(x @ np.diag([1.0, 1e-2, 3e-3]) for x in easy.X)
    hard = Instance(X, easy.y, easy.graph, easy.strength)
    assert not run(hard, 1e-8).finished
    result = fit(hard.statistics, fusion_strength=hard.strength, graph=hard.graph, tolerance=1e-8)
    assert result.report.solver == "dual+newton"
    assert result.report.status is SolveStatus.CONVERGED


@pytest.mark.parametrize("strength", [1e3, 1e6, 1e12])
def test_far_above_the_strength_that_fuses_all_it_ends_with_the_pooled_weights(strength: float) -> None:
    instance = regular(np.random.default_rng(4), hubs(120), 3, n=30).with_strength(strength)
    outcome = run(instance, 1e-6).outcome()
    assert outcome.status is SolveStatus.CONVERGED
    pooled = np.linalg.lstsq(np.concatenate(instance.X), np.concatenate(instance.y), rcond=None)[0]
    assert outcome.weights == pytest.approx(np.tile(pooled, (120, 1)), rel=1e-9)
