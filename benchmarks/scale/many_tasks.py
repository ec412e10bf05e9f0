"""Measure the seconds from arrays to a certified gap on ScaleSyn of growing size, and their slope.

Tasks of 10 features and 100 samples, noise 1, in clusters of 100 whose centres are spread widely (a component
of the graph each) or so narrowly that all tasks are one component. The data are generated off the clock.

Each fit runs twice on the clock: in memory as the process finds it, and in memory that a fit before it has
freed. The most seconds are those of the first, the slope that of the second: see ``kept_memory.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from benchmarks.kept_memory import kept_memory
from benchmarks.report import Bar, Row, Section, step
from benchmarks.stopwatch import Seconds, best
from ccmtl_core import (
    FitResult,
    SufficientStatistics,
    TaskDataset,
    fit,
    fusion_threshold,
    nearest_neighbour_graph,
    single_task_weights,
)
from ccmtl_core.data.synthetic import scale_syn
from ccmtl_core.graph.leaf_search import nearest_by_leaves

SIZES = (5_000, 10_000, 20_000, 40_000, 80_000, 160_000)
SHARES = (1e-3, 1e-2, 1e-1)
SPREADS = {"apart": 5.0, "overlapping": 0.1}
TOLERANCE = 1e-4
MAX_SLOPE, MAX_SECONDS = 1.10, 8.0
BRACKET_TASKS = 5_000
WARM_TASKS = 10_000


def measure(sizes: Sequence[int] = SIZES, spreads: Sequence[str] = tuple(SPREADS), seed: int = 0) -> Section:
    """Fit each size at each share of the strength that fuses all tasks of a component."""
    tables: dict[str, list[Row]] = {}
    bars = []
    for name in spreads:
        fusing = _fusion_threshold(SPREADS[name], min(sizes[0], BRACKET_TASKS), seed)
        rows = [row for size in sizes for row in _rows(name, size, fusing, seed)]
        tables[f"centres {name} (spread {SPREADS[name]:g}), fused from {fusing:.3g} on"] = rows
        bars += _bars(name, rows)
    notes = [
        "From arrays: statistics, start, graph and solve. The slope is that of processor seconds over tasks, "
        "in memory that a fit before has freed; fresh seconds are a first fit's, in memory as it comes.",
        "The strength that fuses is bounded at the smallest size; the clusters of all sizes are alike.",
        "Overlapping centres make one cloud of 10 dimensions, in which an exact search for neighbours looks "
        "at a growing share of the points: see the column of the graph.",
    ]
    return Section(tables, bars, notes)


def _fusion_threshold(spread: float, n_tasks: int, seed: int) -> float:
    statistics = SufficientStatistics.from_dataset(_dataset(spread, n_tasks, seed))
    graph = nearest_neighbour_graph(single_task_weights(statistics))
    return fusion_threshold(statistics, graph).bracket[1]


def load_kernels(spread: float, n_tasks: int = WARM_TASKS, fusing: float = 20.0) -> None:
    """Compile, or load from disk, what a fit of any size runs."""
    small = _dataset(spread, n_tasks, seed=1)
    for share in SHARES:
        weights = fit(small, fusion_strength=fusing * share, tolerance=TOLERANCE).model.weights
    nearest_by_leaves(np.asarray(weights), 11)


def _dataset(spread: float, n_tasks: int, seed: int) -> TaskDataset:
    return scale_syn(np.random.default_rng(seed), n_tasks, center_spread=spread).dataset


def _rows(name: str, n_tasks: int, fusing: float, seed: int) -> list[Row]:
    dataset = _dataset(SPREADS[name], n_tasks, seed)
    load_kernels(SPREADS[name], min(n_tasks, WARM_TASKS), fusing)
    rows: list[Row] = []
    for share in SHARES:
        step(f"  {name}: {n_tasks:,} tasks, {share:g} of the strength that fuses all")

        def once(share: float = share) -> tuple[FitResult, Seconds]:
            return best(
                1, lambda: partial(fit, replace(dataset), fusion_strength=share * fusing, tolerance=TOLERANCE)
            )

        fresh = once()[1]
        with kept_memory():
            once()
            result, seconds = once()
        report = result.report
        rows.append(
            {
                "tasks": n_tasks,
                "share": f"{share:g}",
                "seconds": seconds.cpu,
                "fresh seconds": fresh.cpu,
                "fresh wall seconds": fresh.wall,
                **{phase: report.seconds[phase] for phase in ("statistics", "graph", "solve")},
                "components": result.graph.n_components,
                "solver": report.solver,
                "rounds": report.rounds,
                "gap": report.gap,
            }
        )
    return rows


def _bars(name: str, rows: Sequence[Row]) -> list[Bar]:
    bars = [Bar(f"{name}: largest gap", max(row["gap"] for row in rows), TOLERANCE)]
    for share in SHARES:
        of_share = [row for row in rows if row["share"] == f"{share:g}"]
        if len(of_share) > 1:
            what = f"{name}, share {share:g}: slope (in fresh memory {slope(of_share, 'fresh seconds'):.2f})"
            bars.append(Bar(what, slope(of_share), MAX_SLOPE))
    largest = [row["fresh wall seconds"] for row in rows if row["tasks"] == SIZES[-1]]
    if largest:
        bars.append(Bar(f"{name}: most seconds of {SIZES[-1]:,} tasks", max(largest), MAX_SECONDS))
    return bars


def slope(rows: Sequence[Row], of: str = "seconds") -> float:
    """Return the slope of log seconds over log tasks, by least squares."""
    tasks, seconds = (np.log([row[name] for row in rows]) for name in ("tasks", of))
    return float(np.polyfit(tasks, seconds, 1)[0])
