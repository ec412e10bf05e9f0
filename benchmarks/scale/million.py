"""Measure the time and the memory from blocks of rows to certified weights of a million tasks.

Run as a process of its own, whose peak memory is its own: ``python -m benchmarks.scale.million TASKS SHARE``
prints one JSON object. Generating a block is not timed.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.report import Bar, Row, Section, step
from benchmarks.scale.many_tasks import SHARES, SPREADS, TOLERANCE, load_kernels
from benchmarks.stopwatch import Stopwatch
from ccmtl_core import SufficientStatistics, fit
from ccmtl_core.base.types import FloatArray, IntArray
from ccmtl_core.data.synthetic import scale_syn

TASKS, BLOCK_TASKS, N_FEATURES = 1_000_000, 10_000, 10
FUSING = 25.0  # about where clusters of this kind are wholly fused; many_tasks.py bounds it
MAX_SECONDS, MAX_GIGABYTES = 90.0, 8.0


def measure(n_tasks: int = TASKS) -> Section:
    """Fit at each share of the fusing strength, each in a process of its own."""
    rows = [_child(n_tasks, share) for share in SHARES]
    bars = [
        Bar("largest gap", max(row["gap"] for row in rows), TOLERANCE),
        Bar("most seconds", max(row["wall seconds"] for row in rows), MAX_SECONDS),
        Bar("most gigabytes", max(row["peak GB"] for row in rows), MAX_GIGABYTES),
    ]
    notes = [
        "From streamed blocks of rows; generating them is not timed. Peak memory is the whole process's, "
        "the blocks included.",
    ]
    return Section({f"{n_tasks:,} tasks of {N_FEATURES} features and 100 samples": rows}, bars, notes)


def _child(n_tasks: int, share: float) -> Row:
    step(f"  {n_tasks:,} tasks, {share:g} of the strength that fuses all")
    command = [sys.executable, "-m", "benchmarks.scale.million", str(n_tasks), str(share)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    row: dict[str, Any] = json.loads(done.stdout)
    return row


def blocks(n_tasks: int, generating: Stopwatch) -> Iterator[tuple[FloatArray, FloatArray, IntArray]]:
    """Yield features, targets and tasks, the tasks of a block together, and time the making of them."""
    for first in range(0, n_tasks, BLOCK_TASKS):
        with generating.running():
            size = min(BLOCK_TASKS, n_tasks - first)
            rng = np.random.default_rng([0, first])
            data = scale_syn(rng, size, n_features=N_FEATURES, center_spread=SPREADS["apart"]).dataset
            task = data.task_index + first
        yield data.X, data.y, task


def run(n_tasks: int, share: float) -> Row:
    """Fit in this process."""
    load_kernels(SPREADS["apart"])
    generating, streaming, fitting = Stopwatch(), Stopwatch(), Stopwatch()
    with streaming.running():
        statistics = SufficientStatistics.from_blocks(blocks(n_tasks, generating), n_tasks, N_FEATURES)
    with fitting.running():
        report = fit(statistics, fusion_strength=share * FUSING, tolerance=TOLERANCE).report
    spent = zip(streaming.seconds, fitting.seconds, generating.seconds, strict=True)
    cpu, wall = (streamed + fitted - generated for streamed, fitted, generated in spent)
    return {
        "share": f"{share:g}",
        "seconds": cpu,
        "wall seconds": wall,
        "peak GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _UNIT / 1e9,
        "statistics": streaming.seconds.wall - generating.seconds.wall,
        "graph": report.seconds["graph"],
        "solve": report.seconds["solve"],
        "generating": generating.seconds.wall,
        "solver": report.solver,
        "rounds": report.rounds,
        "gap": report.gap,
    }


_UNIT = 1 if sys.platform == "darwin" else 1024  # bytes in what getrusage counts

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale.million", description=__doc__)
    parser.add_argument("n_tasks", type=int)
    parser.add_argument("share", type=float, help="of the strength that fuses all")
    asked = parser.parse_args()
    print(json.dumps(run(asked.n_tasks, asked.share)))
