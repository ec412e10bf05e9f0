"""How long each step from 2.7 million rows to weights takes on Ta-Feng, at several fusion strengths."""

from __future__ import annotations

import argparse
import time

from rich.console import Console
from rich.table import Table

from app.training.evaluation import evaluate
from benchmarks.ta_feng import lagged_panel, training_and_held_out
from ccmtl_core import fit

STRENGTHS = (1.0, 100.0, 3e3, 3e5)


def main() -> None:
    """Print a table with one line for each strength."""
    argparse.ArgumentParser(prog="python -m benchmarks.fit", description=__doc__).parse_args()
    start = time.perf_counter()
    lagged = lagged_panel()
    read = time.perf_counter()
    training, held_out = training_and_held_out(lagged)
    counted = time.perf_counter()
    console = Console()
    console.print(
        f"{lagged.dataset.n_samples.sum():,} rows of {lagged.dataset.n_tasks:,} tasks: "
        f"read, summed, filled and lagged in {read - start:.2f} s, statistics of both halves in "
        f"{counted - read:.2f} s",
        highlight=False,
    )
    fit(training, fusion_strength=1.0)  # load the compiled kernels
    table = Table(
        "fusion_strength", "seconds", "of these the graph", "rounds", "certified gap", "held-out RMSE"
    )
    for strength in STRENGTHS:
        start = time.perf_counter()
        result = fit(training, fusion_strength=strength)
        seconds = time.perf_counter() - start
        rmse = evaluate(result.model, training, held_out)["rmse_mean_of_tasks"]["ccmtl"]
        report = result.report
        table.add_row(
            f"{strength:g}",
            f"{seconds:.2f}",
            f"{report.seconds['graph']:.2f}",
            str(report.rounds),
            f"{report.gap:.1e}",
            f"{rmse:.4f}",
        )
    console.print(table)


if __name__ == "__main__":
    main()
