"""An instance in, its fit and a check of what each fit must hold out."""

from __future__ import annotations

import numpy as np
import pytest

from ccmtl_core import FitResult, SolveStatus, fit
from tests.core.fusion_problems import Instance

every_solver = pytest.mark.parametrize("solver", ["newton", "alternating"])


def run(instance: Instance, tolerance: float, solver: str = "auto") -> FitResult:
    return fit(
        instance.statistics, fusion_strength=instance.strength, graph=instance.graph, tolerance=tolerance,
        solver=solver,
    )  # fmt: skip


def assert_sound(result: FitResult, tolerance: float = 1e-4) -> None:
    """Finite, certified as asked, and the report in agreement with itself."""
    report = result.report
    assert np.isfinite(result.model.weights).all()
    assert report.status == SolveStatus.CONVERGED
    assert 0 <= report.gap <= tolerance
    assert report.rounds == len(report.history)
    assert report.cg_iterations == sum(this.cg_iterations for this in report.history)
    assert {"statistics", "start", "graph", "solve"} <= set(report.seconds)
    assert all(seconds >= 0 for seconds in report.seconds.values())
