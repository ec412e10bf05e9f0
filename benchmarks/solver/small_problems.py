"""Measure the seconds to a gap of 1e-8 on small synthetic problems, beside other ways to the same optimum.

Each rival runs at its cheapest setting that brings J to 1e-7 of the optimum. What it needs to write down its
matrices, and to evaluate J, is off its clock. Ours includes the start and a proof; all share one graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import product
from statistics import median

import numpy as np

from benchmarks.report import Bar, Row, Section, step
from benchmarks.solver.references import admm, clarabel_cone, scs_cone
from benchmarks.solver.references.attempt import Attempt, Ladder
from benchmarks.solver.references.cone_program import ConeProgram
from benchmarks.stopwatch import Seconds, best
from ccmtl_core import FitResult, SufficientStatistics, fit, fusion_threshold, nearest_neighbour_graph
from ccmtl_core.base.types import FloatArray
from ccmtl_core.choices.single_task import start_weights
from ccmtl_core.data.synthetic import scale_syn
from ccmtl_core.methods.splitting import BlockSplitting
from ccmtl_core.solver.objective import FusionProblem

KINDS = {"ten components": (5.0, 0.1), "one component": (0.3, 0.3)}
"""Standard deviations of the clusters' centres, and of the tasks around them."""
SHARE = "λ / λ_fuse"
SHARES = (1e-3, 1e-2, 1e-1, 0.3)
TOLERANCE, ACCURACY = 1e-8, 1e-7
FACTOR_SETTINGS = (admm.Setting(10.0, is_balanced=False),)
"""Nearly all of the time goes into the first factorisation: a second would cost more than it saves."""
LIMITS = {"Clarabel": 20.0, "SCS": 5.0, "ADMM, a factor per task": 5.0, "ADMM, one factor": 5.0}

Rival = Callable[["Case"], Attempt]


@dataclass(frozen=True, eq=False)
class Case:
    """One problem, and our answer to it."""

    label: dict[str, str]
    problem: FusionProblem
    optimum: float
    gap: float
    seconds: Seconds

    @cached_property
    def program(self) -> ConeProgram:
        """The same as a cone program."""
        return ConeProgram.of(self.problem)

    @property
    def target(self) -> float:
        """The J that is good enough."""
        return self.optimum * (1.0 + ACCURACY)

    def reaches(self, weights: FloatArray) -> bool:
        """Whether weights (T, P) are good enough."""
        return self.problem.objective(weights) <= self.target


def measure(
    n_seeds: int, repeats: int, cap: float, n_tasks: int = 1000, kinds: Sequence[str] = tuple(KINDS)
) -> Section:
    """Solve every kind, seed and share of the strength that fuses all, by every solver."""
    rivals = _rivals(cap)
    solved = [
        (case, {name: solve(case) for name, solve in rivals.items()})
        for kind, seed in product(kinds, range(n_seeds))
        for case in _cases(kind, seed, n_tasks, repeats)
    ]
    ratios = {
        name: [attempts[name].seconds.cpu / case.seconds.cpu for case, attempts in solved] for name in rivals
    }
    goal = f"ours to gap <= {TOLERANCE:g}, the others to (J - J*) / J* <= {ACCURACY:g}"
    tables: dict[str, list[Row]] = {
        f"Seconds, {n_tasks} tasks, 10 features: {goal}": [
            _seconds(case, attempts) for case, attempts in solved
        ],
        "Cheapest setting: tolerance of Clarabel and SCS; first penalty of ADMM": [
            {**case.label, **{name: attempt.setting for name, attempt in attempts.items()}}
            for case, attempts in solved
        ],
        "Seconds over ours": [
            {"": name, "median": median(ratios[name]), "least": min(ratios[name]), "most": max(ratios[name])}
            for name in rivals
        ],
    }
    bars = [
        Bar(f"{name}, seconds over ours, median", median(ratios[name]), LIMITS[name], at_least=True)
        for name in rivals
    ]
    note = f"Where a rival did not get there within {cap:g} s, its ratio is a lower bound."
    return Section(tables, bars, [note])


def _seconds(case: Case, attempts: dict[str, Attempt]) -> Row:
    ours = {"fusion_strength": case.problem.fusion_strength, "gap": case.gap, "ours": case.seconds.cpu}
    return {**case.label, **ours, **{name: attempt.seconds.cpu for name, attempt in attempts.items()}}


def _rivals(cap: float) -> dict[str, Rival]:
    """Return each rival's search for its cheapest setting; what it finds at one case starts the next."""
    ladders = {"Clarabel": Ladder(clarabel_cone.TOLERANCES), "SCS": Ladder(scs_cone.TOLERANCES)}
    solvers = {"Clarabel": clarabel_cone.solve, "SCS": scs_cone.solve}

    def climb(name: str, case: Case) -> Attempt:
        def solve(tolerance: float) -> Attempt:
            return solvers[name](case.program, tolerance, cap, case.reaches)

        return ladders[name].climb(case.label[SHARE], solve, cap)

    return {
        "Clarabel": partial(climb, "Clarabel"),
        "SCS": partial(climb, "SCS"),
        "ADMM, a factor per task": partial(_admm, BlockSplitting, admm.SETTINGS, cap),
        "ADMM, one factor": partial(_admm, admm.EdgeSplitting, FACTOR_SETTINGS, cap),
    }


def _admm(kind: admm.SplittingKind, settings: Sequence[admm.Setting], cap: float, case: Case) -> Attempt:
    return admm.cheapest(case.problem, kind, settings, case.target, cap)


def _cases(kind: str, seed: int, n_tasks: int, repeats: int) -> Iterator[Case]:
    tasks = scale_syn(
        np.random.default_rng(seed),
        n_tasks,
        tasks_per_cluster=n_tasks // 10,
        center_spread=KINDS[kind][0],
        task_spread=KINDS[kind][1],
    )
    statistics = SufficientStatistics.from_dataset(tasks.dataset)
    graph = nearest_neighbour_graph(start_weights(statistics))
    whole = fusion_threshold(statistics, graph, ratio=1.02).bracket[1]
    for share in SHARES:
        strength = share * whole

        def prepare(strength: float = strength) -> partial[FitResult]:  # fresh statistics, as in ta_feng.py
            return partial(
                fit, replace(statistics), fusion_strength=strength, tolerance=TOLERANCE, graph=graph
            )

        step(f"  {kind}, seed {seed}, {share:g} of the strength that fuses all")
        result, seconds = best(repeats, prepare)
        problem = FusionProblem(statistics.quadratic, graph, strength)
        label = {"kind": kind, "seed": str(seed), SHARE: f"{share:g}"}
        yield Case(label, problem, result.report.objective, result.report.gap, seconds)
