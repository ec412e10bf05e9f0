"""Ta-Feng in, seconds of a selection out: 5 folds × up to 21 strengths and the final fit, on two cores."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.report import Bar, Section, step
from benchmarks.stopwatch import Stopwatch
from benchmarks.ta_feng import lagged_panel, transactions
from ccmtl_core import TaskDataset, select
from ccmtl_core.data.synthetic import syn
from ccmtl_core.fitting.rivals import SAME_CHOICES
from examples.ta_feng import NotToBeHad

SEED = 0
N_JOBS = 2
PATH_TOLERANCE, TOLERANCE = 1e-3, 1e-4
MAX_SECONDS = 35.0  # the paper's time for one fit


def measure(folder: Path) -> Section:
    """Choose among the default strengths, or say why the data could not be had."""
    try:
        rows = lagged_panel(transactions(folder)).dataset
    except NotToBeHad as reason:
        return Section(skipped=str(reason))
    return time_selection(rows, MAX_SECONDS)


def time_selection(rows: TaskDataset, most_seconds: float) -> Section:
    """Time a selection from rows: the pass over them, graphs, starts and the grid are included."""
    select(syn(np.random.default_rng(SEED), n_tasks=20, n_features=rows.n_features).dataset, n_folds=2)
    step("  choosing the strength, and the final fit")
    watch = Stopwatch()
    with watch.running():
        selection = select(rows, path_tolerance=PATH_TOLERANCE, tolerance=TOLERANCE, n_jobs=N_JOBS)
    path = [
        {
            "fusion_strength": f"{strength:.3g}",
            "error": error,
            "standard error": deviation,
            "groups": float(groups),
            "largest gap": float(gap),
        }
        for strength, error, deviation, groups, gap in zip(
            selection.fusion_strengths, selection.errors, selection.standard_errors,
            selection.n_groups.mean(axis=0), selection.gaps.max(axis=0), strict=True,
        )
    ]  # fmt: skip
    seconds = {
        "folds": len(selection.fold_errors),
        "strengths": len(path),
        "wall seconds": watch.seconds.wall,
        "processor seconds": watch.seconds.cpu,
        "chosen": f"{selection.fusion_strength:.4g}",
        "error": float(selection.errors[selection.chosen]),
        **{
            name.replace("_", " "): float(errors.mean())
            for name, errors in selection.rivals.items()
            if not name.endswith(SAME_CHOICES)  # the model has none
        },
    }
    bars = [
        Bar("wall seconds of the whole selection", watch.seconds.wall, most_seconds),
        Bar("largest gap on the folds", float(selection.gaps.max()), PATH_TOLERANCE),
        Bar("gap of the final fit", selection.fit.report.gap, TOLERANCE),
    ]
    notes = [
        f"{N_JOBS} threads. Wall seconds are those of a machine whose load is said above: with other work on "
        "it, half of the processor seconds tells what two free cores take.",
    ]
    return Section({"Whole selection": [seconds], "The path, means over the folds": path}, bars, notes)
