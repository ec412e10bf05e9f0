"""The benchmark of the solver at sizes of seconds: rivals find the same optimum, figures are as told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from benchmarks.solver import bandwidth, roofline, school, small_problems, ta_feng
from benchmarks.solver.references import admm, clarabel_cone, scs_cone
from benchmarks.solver.references.attempt import Attempt, Ladder
from benchmarks.solver.references.cone_program import ConeProgram
from benchmarks.solver.references.pyamg_alternation import alternate_with_pyamg
from benchmarks.stopwatch import Seconds
from benchmarks.ta_feng import lagged_panel
from ccmtl_core import SufficientStatistics, fit, nearest_neighbour_graph
from ccmtl_core.choices.single_task import start_weights
from ccmtl_core.data.synthetic import syn
from ccmtl_core.forecasting import SeriesPanel, lag_dataset
from ccmtl_core.kernels.solver import system_kernels as kernels
from ccmtl_core.methods.splitting import BlockSplitting
from ccmtl_core.solver.objective import FusionProblem
from examples.ta_feng import generate


@pytest.fixture(scope="module")
def statistics() -> SufficientStatistics:
    tasks = syn(np.random.default_rng(3), n_tasks=40, n_features=3, center_spread=1.0)
    return SufficientStatistics.from_dataset(tasks.dataset)


@pytest.fixture(scope="module")
def problem(statistics: SufficientStatistics) -> FusionProblem:
    return FusionProblem(statistics.quadratic, nearest_neighbour_graph(start_weights(statistics), 4), 3.0)


@pytest.fixture(scope="module")
def optimum(statistics: SufficientStatistics, problem: FusionProblem) -> float:
    report = fit(
        statistics, fusion_strength=problem.fusion_strength, graph=problem.graph, tolerance=1e-10
    ).report
    assert report.gap <= 1e-10
    return report.objective


@pytest.mark.parametrize("solve", [clarabel_cone.solve, scs_cone.solve])
def test_cone_solvers_reach_the_same_optimum(
    problem: FusionProblem, optimum: float, solve: Callable[..., Attempt]
) -> None:
    attempt = solve(
        ConeProgram.of(problem), 1e-9, 60.0, lambda W: problem.objective(W) <= optimum * (1 + 1e-7)
    )
    assert attempt.reached
    assert problem.objective(attempt.weights) >= optimum * (1 - 1e-9)


@pytest.mark.parametrize("kind", [BlockSplitting, admm.EdgeSplitting])
@pytest.mark.parametrize("setting", admm.SETTINGS, ids=str)
def test_both_splittings_reach_the_same_optimum(
    problem: FusionProblem, optimum: float, kind: admm.SplittingKind, setting: admm.Setting
) -> None:
    attempt = admm.cheapest(problem, kind, (setting,), optimum * (1 + 1e-8), 30.0)
    assert attempt.reached
    assert problem.objective(attempt.weights) >= optimum * (1 - 1e-9)


def test_alternation_with_pyamg_certifies_itself(
    statistics: SufficientStatistics, problem: FusionProblem, optimum: float
) -> None:
    start = start_weights(statistics)
    found = alternate_with_pyamg(problem, start, 1e-4, cap=60.0)
    assert found.gap <= 1e-4
    assert optimum * (1 - 1e-9) <= found.objective <= optimum * (1 + 1e-4)
    stopped = alternate_with_pyamg(problem, start, 1e-4, cap=0.0)
    assert found.gap < stopped.gap
    assert stopped.rounds < found.rounds


def test_ladder_reports_the_loosest_that_reaches_and_starts_there() -> None:
    asked: list[float] = []

    def solve(tolerance: float) -> Attempt:
        asked.append(tolerance)
        return Attempt(np.zeros((1, 1)), Seconds(1.0, 1.0), 1, f"{tolerance:g}", tolerance <= needed)

    ladder = Ladder((1e-1, 1e-2, 1e-3, 1e-4))
    needed = 1e-3
    assert ladder.climb("hard", solve, cap=60.0).setting == "0.001"
    assert asked == [1e-1, 1e-2, 1e-3]
    asked.clear()
    needed = 1e-2
    assert ladder.climb("hard", solve, cap=60.0).setting == "0.01"
    assert asked == [1e-3, 1e-2, 1e-1]
    asked.clear()
    needed = 1e-9
    assert not ladder.climb("other", solve, cap=1.0).reached
    assert asked == [1e-1], "an attempt that took all the time is the last"


def test_small_problems_compare_all_solvers() -> None:
    section = small_problems.measure(1, 1, 60.0, n_tasks=40, kinds=["one component"])
    seconds, settings, ratios = section.tables.values()
    assert [row["λ / λ_fuse"] for row in seconds] == ["0.001", "0.01", "0.1", "0.3"]
    assert max(row["gap"] for row in seconds) <= 1e-8
    rivals = [row[""] for row in ratios]
    assert all(row[name] > 0 for row in seconds for name in rivals)
    assert all(row[name] for row in settings for name in rivals)
    assert len(section.bars) == len(rivals)
    by_hand = np.median([row["SCS"] / row["ours"] for row in seconds])
    assert section.bars[rivals.index("SCS")].measured == pytest.approx(by_hand)


def test_school_compares_with_golden(statistics: SufficientStatistics) -> None:
    report = fit(statistics, fusion_strength=3.0, tolerance=1e-9).report
    section = school.compare(statistics, {3.0: report.objective}, repeats=1)
    assert [bar.met for bar in section.bars] == [True, True, True]
    section = school.compare(statistics, {3.0: 1.01 * report.objective}, repeats=1)
    assert [bar.met for bar in section.bars] == [False, True, True]


def test_ta_feng_trains_on_half_of_each_product(tmp_path: Path) -> None:
    statistics = ta_feng.training_half(lagged_panel(generate(tmp_path / "few.csv", n_products=30)))
    assert set(statistics.n_samples.tolist()) == {55}, "half of the 110 days after the first ten"


def test_ta_feng_half_is_drawn_anew_for_each_product() -> None:
    values = np.tile(np.arange(1.0, 121.0), 20)
    ids = tuple(map(str, range(20)))
    panel = SeriesPanel(ids, np.arange(21) * 120, np.tile(np.arange(120), 20), values, "D")
    statistics = ta_feng.training_half(lag_dataset(panel, 5))
    assert len(set(statistics.yty.tolist())) > 15, "the same series, other days"
    again = ta_feng.training_half(lag_dataset(panel, 5))
    assert np.array_equal(statistics.yty, again.yty)


def test_ta_feng_compares_with_the_alternation_and_says_what_it_does(
    statistics: SufficientStatistics, capsys: pytest.CaptureFixture[str]
) -> None:
    section = ta_feng.compare(statistics, (3.0, 1e6), cap=20.0, repeats=1)
    said = capsys.readouterr().err.splitlines()
    for strength in ("3", "1e+06"):
        assert f"  strength {strength}: our fit, 1 times ..." in said
        assert f"  strength {strength}: the alternation with pyamg, at most 20 s ..." in said
    (rows,) = section.tables.values()
    assert [row["wholly fused"] for row in rows] == ["no", "yes"]
    assert all(row["gap"] <= 1e-4 and row["its gap"] <= 1e-4 for row in rows)
    assert section.bars[-1].measured == min(row["reference seconds"] / row["seconds"] for row in rows)


def test_kernels_are_counted_and_put_back() -> None:
    before = kernels.restrict
    aggregate, fine, coarse = np.zeros(3, dtype=np.int32), np.ones((3, 2)), np.empty((1, 2))
    with roofline.counted_kernels() as traffic:
        kernels.restrict(aggregate, fine, coarse, (0,))
        kernels.restrict(aggregate, fine, coarse, (0,))
    assert kernels.restrict is before
    assert coarse.tolist() == [[3.0, 3.0]]
    assert list(traffic) == ["restrict"]
    assert (traffic["restrict"].calls, traffic["restrict"].bytes) == (2, 2 * (3 * 4 + 6 * 8 + 2 * 8))


def test_roofline_accounts_for_the_whole_fit(
    statistics: SufficientStatistics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bandwidth, "_BYTES_TO_MOVE", 1 << 20)
    section = roofline.analyse(statistics, 3.0, {"16 kB": 1 << 14, "1 MB": 1 << 20})
    shares = [float(row["share"].rstrip("%")) for row in section.tables["Compiled kernels"]]
    assert sum(shares) == pytest.approx(100.0, abs=0.1 * len(shares))
    assert {row["phase"] for row in section.tables["Phases"]} == {"statistics", "start", "graph", "solve"}
    assert all(row["GB/s"] > 0 for row in section.tables["Copy, read and written"])
