"""Measure objective, gap and seconds on the School set at the five strengths of the paper's table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from scipy.io import loadmat

from benchmarks.report import Bar, Row, Section, step
from benchmarks.solver.references import admm
from benchmarks.stopwatch import best
from ccmtl_core import FitResult, SufficientStatistics, TaskDataset, fit
from ccmtl_core.methods.splitting import BlockSplitting
from ccmtl_core.solver.objective import FusionProblem

FILE = Path("school") / "school.mat"
# Two independent solvers agree on these; He et al. (AAAI 2019) print the whole part in their table.
GOLDEN = {0.01: 664642.37, 0.1: 665572.65, 1.0: 674229.19, 10.0: 725027.12, 100.0: 764844.47}
TOLERANCE = 1e-7
DIFFERENCE = "|J - golden| / golden"
MAX_DIFFERENCE, MAX_SECONDS = 1e-6, 1.0
ADMM_CAP = 20.0


def read(file: Path) -> SufficientStatistics:
    """Return the statistics of the 139 schools; the file keeps its numbers in bytes."""
    content = loadmat(file)
    X, y = ([np.asarray(block, dtype=np.float64) for block in content[name].ravel()] for name in ("X", "Y"))
    return SufficientStatistics.from_dataset(TaskDataset.from_arrays(X, [block.ravel() for block in y]))


def measure(folder: Path, repeats: int) -> Section:
    """Fit each strength of the table, or say that the file is not there."""
    if not (folder / FILE).exists():
        return Section(skipped=f"{folder / FILE} is not there; --data names the folder that holds it")
    return compare(read(folder / FILE), GOLDEN, repeats)


def compare(statistics: SufficientStatistics, golden: Mapping[float, float], repeats: int) -> Section:
    """Fit each strength of ``golden`` from the statistics, start and graph included."""
    rows = [_row(statistics, strength, value, repeats) for strength, value in golden.items()]
    largest = {name: max(row[name] for row in rows) for name in (DIFFERENCE, "gap", "seconds")}
    bars = [
        Bar(f"largest {DIFFERENCE}", largest[DIFFERENCE], MAX_DIFFERENCE),
        Bar("largest gap", largest["gap"], TOLERANCE),
        Bar("most seconds of a fit", largest["seconds"], MAX_SECONDS),
    ]
    title = f"School from statistics to gap <= {TOLERANCE:g}, start and graph included"
    note = (
        "ADMM: seconds until J is within 1e-6 of golden, graph given and no proof; "
        f"- where it takes longer than {ADMM_CAP:g} s."
    )
    return Section({title: rows}, bars, [note])


def _row(statistics: SufficientStatistics, strength: float, golden: float, repeats: int) -> Row:
    def prepare() -> partial[FitResult]:  # fresh statistics: they remember their least squares
        return partial(fit, replace(statistics), fusion_strength=strength, tolerance=TOLERANCE)

    step(f"  strength {strength:g}: our fit, then ADMM for at most {ADMM_CAP:g} s a setting")
    result, seconds = best(repeats, prepare)
    report = result.report
    problem = FusionProblem(statistics.quadratic, result.graph, strength)
    rival = admm.cheapest(problem, BlockSplitting, admm.SETTINGS, golden * (1 + MAX_DIFFERENCE), ADMM_CAP)
    return {
        "fusion_strength": strength,
        "golden J": f"{golden:.2f}",
        "J": f"{report.objective:.2f}",
        DIFFERENCE: abs(report.objective - golden) / golden,
        "gap": report.gap,
        "seconds": seconds.cpu,
        "wall seconds": seconds.wall,
        "solver": report.solver,
        "rounds": report.rounds,
        "ADMM seconds": rival.seconds.cpu if rival.reached else None,
    }
