"""Seconds add up by phase, records are sent seldom, and an exception of the receiver ends the run."""

from __future__ import annotations

from typing import Any

import pytest

from app.training.progress import MIN_SECONDS_BETWEEN, ProgressLog
from ccmtl_core import Progress
from tests.support.clock import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sent() -> list[dict[str, Any]]:
    return []


@pytest.fixture
def log(clock: Clock, sent: list[dict[str, Any]]) -> ProgressLog:
    return ProgressLog(sent.append, clock)


def test_phases_are_timed_in_the_order_they_began(log: ProgressLog, clock: Clock) -> None:
    with log.phase("read"):
        clock.now += 2.0
    with log.phase("rows"):
        clock.now += 3.0
        on_progress = log.solver_phases("holdout_")
        on_progress(Progress("start", 0, None, None, 0.0))
        clock.now += 1.0
        on_progress(Progress("solve", 1, 7.0, 0.5, 1.0))
        clock.now += 4.0
        record = log.record()
    assert record == {
        "phase": "holdout_solve",
        "round": 1,
        "objective": 7.0,
        "gap": 0.5,
        "selection": None,
        "elapsed_seconds": 10.0,
        "phases": {"read": 2.0, "rows": 3.0, "holdout_start": 1.0, "holdout_solve": 4.0},
    }
    with log.phase("publication"):
        clock.now += 1.0
        record = log.record()
    assert record["phases"]["holdout_solve"] == 4.0
    assert record["phases"]["publication"] == 1.0
    assert sum(record["phases"].values()) == record["elapsed_seconds"] == 11.0


def test_time_after_a_fit_belongs_to_what_comes_next(log: ProgressLog, clock: Clock) -> None:
    log.solver_phases("")(Progress("solve", 1, 1.0, 1.0, 0.0))
    clock.now += 1.0
    with log.phase("evaluation"):
        clock.now += 2.0
    assert log.record()["phases"] == {"solve": 1.0, "evaluation": 2.0}


def test_statistics_given_to_a_fit_are_no_phase_of_it(log: ProgressLog) -> None:
    with log.phase("statistics"):
        log.solver_phases("holdout_")(Progress("statistics", 0, None, None, 0.0))
    assert list(log.record()["phases"]) == ["statistics"]


def test_records_are_sent_seldom(log: ProgressLog, clock: Clock, sent: list[dict[str, Any]]) -> None:
    on_progress = log.solver_phases("")
    for number in range(1, 101):
        on_progress(Progress("solve", number, 1.0, 0.1, 0.0))
        clock.now += MIN_SECONDS_BETWEEN / 8
    assert [record["round"] for record in sent] == list(range(1, 101, 8))


def test_no_number_is_sent_that_json_does_not_have(log: ProgressLog, sent: list[dict[str, Any]]) -> None:
    log.solver_phases("")(Progress("solve", 1, float("inf"), float("nan"), 0.0))
    assert (sent[0]["objective"], sent[0]["gap"]) == (None, None)


def test_the_receiver_can_end_the_run(clock: Clock) -> None:
    def refuse(record: dict[str, Any]) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError), ProgressLog(refuse, clock).phase("read"):
        pytest.fail("the phase began")


def test_compiling_is_a_phase_within_another(clock: Clock, sent: list[dict[str, Any]]) -> None:
    log = ProgressLog(sent.append, clock)
    with log.phase("statistics"):
        clock.now += 1.0
        log.compiling(True)
        assert sent[-1]["phase"] == "compiling"
        clock.now += 7.0
        log.compiling(False)
        assert sent[-1]["phase"] == "statistics"
        clock.now += 2.0
    assert log.record()["phases"] == {"statistics": 3.0, "compiling": 7.0}


def test_compiling_is_told_at_once(clock: Clock, sent: list[dict[str, Any]]) -> None:
    log = ProgressLog(sent.append, clock)
    with log.phase("selection"):
        log.compiling(True)
    assert [record["phase"] for record in sent] == ["selection", "compiling"]
