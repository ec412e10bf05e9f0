"""Exact fusion: weights near the optimum become bitwise equal groups, with flows that prove them."""

from __future__ import annotations

import numpy as np
import pytest

from ccmtl_core.solver.fusing import Candidate, fuse, fused_groups, try_to_certify
from ccmtl_core.solver.newton_step import NewtonState
from ccmtl_core.solver.objective import row_norms
from ccmtl_core.solver.outcome import Recorder
from tests.core.fusion_problems import Instance, random_graph, regular
from tests.core.oracle import optimum

SMOOTHING = 1e-6


def on_the_path(strength: float) -> tuple[Instance, Candidate]:
    rng = np.random.default_rng(0)
    instance = regular(rng, random_graph(rng, 12, 0.4), 3).with_strength(strength)
    state = NewtonState.start(instance.problem, instance.statistics.least_squares.weights)
    for smoothing in [0.1, 0.03, 0.01, 1e-3, 1e-4, 1e-5] + [SMOOTHING] * 8:
        state.step(smoothing, 1e-3)
    return instance, Candidate(state.W, state.flows(), state.w)


@pytest.mark.parametrize("strength", [0.1, 2.0, 5.0])
def test_what_the_optimum_fuses_comes_out_equal_and_the_rest_to_all_digits(strength: float) -> None:
    instance, plain = on_the_path(strength)
    groups = fused_groups(instance.problem, plain.weights, SMOOTHING)
    fused = fuse(instance.problem, plain, groups, SMOOTHING, 1e-12)
    _, W = optimum(instance)
    i, j = instance.graph.edges.T
    at_optimum = np.linalg.norm(W[i] - W[j], axis=1) == 0
    equal = (fused.weights[i] == fused.weights[j]).all(axis=1)
    assert np.array_equal(equal, at_optimum)
    assert fused.weights == pytest.approx(W, abs=1e-8)
    open_flows = instance.problem.differences(W)[~at_optimum]
    open_flows *= (instance.problem.radius[~at_optimum] / row_norms(open_flows))[:, None]
    assert fused.flows[~at_optimum] == pytest.approx(open_flows, rel=1e-6, abs=1e-6)


def test_all_fused_is_the_pooled_fit() -> None:
    instance, plain = on_the_path(1e4)
    groups = fused_groups(instance.problem, plain.weights, 1e3)
    fused = fuse(instance.problem, plain, groups, 1e3, 1e-12)
    expected = np.linalg.lstsq(np.concatenate(instance.X), np.concatenate(instance.y), rcond=None)[0]
    assert fused.weights == pytest.approx(np.tile(expected, (12, 1)), rel=1e-12)


def test_fused_weights_are_tried_first_and_plain_ones_next() -> None:
    instance, plain = on_the_path(2.0)
    record = Recorder(1e-10, 10, lambda this, number: None)
    try_to_certify(instance.problem, plain, SMOOTHING, record, instance.certifier)
    assert record.finished
    assert record.relative_gap <= 1e-10
    i, j = instance.graph.edges.T
    weights = record.outcome().weights
    assert (weights[i] == weights[j]).all(axis=1).any()
    loose = Recorder(1e-10, 10, lambda this, number: None)
    try_to_certify(instance.problem, plain, 1e3, loose, instance.certifier, fused_only=True)
    assert not loose.finished, "fused beyond reason, so not the optimum"
    one_gap = loose.gap
    try_to_certify(instance.problem, plain, 1e3, loose, instance.certifier)
    assert loose.gap < one_gap, "the plain weights are better here"
