"""Keeping score: the best weights and the best bound, and when to stop."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ccmtl_core import SolveStatus
from ccmtl_core.solver.certificate import Certificate
from ccmtl_core.solver.objective import FusionProblem
from ccmtl_core.solver.outcome import Recorder, typical_length
from ccmtl_core.solver.report import Round
from tests.core.fusion_problems import chain, regular


def recorder(tolerance: float = 1e-3, max_rounds: int = 100) -> tuple[Recorder, list[tuple[int, Round]]]:
    seen: list[tuple[int, Round]] = []
    return Recorder(tolerance, max_rounds, lambda this, number: seen.append((number, this))), seen


def weights(value: float) -> np.ndarray:
    return np.array([[value]])


def certificate(objective: float, gap: float, rounding: float = 0.0) -> Certificate:
    return Certificate(objective, gap, rounding, np.empty((0, 1)))


def test_keeps_the_best_weights_and_the_best_bound_of_different_rounds() -> None:
    record, seen = recorder()
    record.consider(weights(0), 11.0)
    record.end_round(11.0, 1.0, 1)
    record.consider(weights(1), 10.0, certificate(10.0, 4.0))
    record.end_round(10.0, 0.5, 5)
    record.consider(weights(2), 9.0, certificate(9.0, 5.0))
    record.end_round(9.0, 0.25, 1)
    record.consider(weights(3), 8.0)
    record.end_round(8.0, 0.125, 7)
    record.consider(weights(4), 8.5)
    record.end_round(8.5, 0.125, 1)
    assert not record.finished
    assert record.gap == pytest.approx(8.0 - 6.0)
    outcome = record.outcome()
    assert outcome.weights.tolist() == [[3.0]]
    assert (outcome.objective, outcome.relative_gap, outcome.cg_iterations) == (8.0, 0.25, 15)
    assert [this.gap for this in outcome.history] == [None, 0.4, pytest.approx(3 / 9), 0.25, 0.25]
    assert [this.objective for this in outcome.history] == [11.0, 10.0, 9.0, 8.0, 8.5]
    assert [this.cg_iterations for this in outcome.history] == [1, 5, 1, 7, 1]
    assert [this.smoothing for this in outcome.history] == [1.0, 0.5, 0.25, 0.125, 0.125]
    assert seen == list(enumerate(outcome.history, start=1))


def test_zero_is_a_bound_before_any_certificate() -> None:
    record, _ = recorder()
    assert (record.relative_gap, record.finished) == (np.inf, False)
    record.consider(weights(1), 5.0)
    assert (record.gap, record.relative_gap) == (5.0, 1.0)


def test_converged_from_the_tolerance_on() -> None:
    record, _ = recorder(tolerance=0.1)
    record.consider(weights(1), 10.0, certificate(10.0, 1.01))
    assert record.status is None
    record.consider(weights(1), 10.0, certificate(10.0, 1.0))
    assert record.status == SolveStatus.CONVERGED
    assert record.outcome().status == SolveStatus.CONVERGED


def test_an_objective_of_zero_has_converged() -> None:
    record, _ = recorder()
    record.consider(weights(0), 0.0, certificate(0.0, 0.0))
    assert record.outcome().status == SolveStatus.CONVERGED
    assert record.outcome().relative_gap == 0.0


def test_an_objective_no_larger_than_its_rounding_has_a_gap_of_that_rounding() -> None:
    record, _ = recorder(tolerance=1e-4)
    record.consider(weights(0), 1e-13, certificate(1e-13, 2e-13, rounding=2e-13))
    assert record.outcome().status == SolveStatus.CONVERGED
    assert (record.outcome().objective, record.outcome().relative_gap) == (0.0, 2e-13)
    record, _ = recorder(tolerance=1e-4)
    record.consider(weights(0), 0.01, certificate(0.01, 0.02, rounding=0.02))
    assert not record.finished
    assert record.relative_gap == 0.02


def test_certificates_that_no_longer_help_are_the_limit_of_precision() -> None:
    record, _ = recorder(tolerance=1e-12, max_rounds=1000)
    certificates = 0
    while not record.finished:
        record.consider(weights(1), 10.0, certificate(10.0, 1.0))
        certificates += 1
    assert record.outcome().status == SolveStatus.PRECISION_LIMIT
    assert 5 <= certificates <= 100


def test_rounds_run_out() -> None:
    record, _ = recorder(tolerance=1e-12, max_rounds=3)
    for number in range(3):
        assert not record.finished
        assert record.last_round == (number == 2)
        record.consider(weights(number), 10.0 + number)
        record.end_round(10.0 + number, 1.0, 0)
    assert record.outcome().status == SolveStatus.ROUND_LIMIT
    assert record.outcome().weights.tolist() == [[0.0]]


def test_an_exception_of_the_listener_passes_through() -> None:
    def stop(this: Round, number: int) -> None:
        raise KeyboardInterrupt

    record = Recorder(1e-3, 10, stop)
    with pytest.raises(KeyboardInterrupt):
        record.end_round(1.0, 1.0, 0)


def test_typical_length_is_the_median_of_edges_of_positive_length() -> None:
    instance = regular(np.random.default_rng(0), chain(5), 1)
    alone = np.array([[0.0], [0.0], [1.0], [3.0], [8.0]])
    statistics = replace(
        instance.statistics, xty=np.matmul(instance.statistics.gram, alone[:, :, None])[:, :, 0]
    )
    assert typical_length(FusionProblem(statistics.quadratic, instance.graph, 1.0)) == pytest.approx(2.0)
    silent = replace(instance.statistics, xty=np.zeros((5, 1)))
    assert typical_length(FusionProblem(silent.quadratic, instance.graph, 1.0)) == 1.0
