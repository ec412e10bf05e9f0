"""Solve a cone program with Clarabel: an interior-point method with a sparse factorisation per step."""

from __future__ import annotations

import clarabel

from benchmarks.solver.references.attempt import Attempt, Reaches
from benchmarks.solver.references.cone_program import ConeProgram
from benchmarks.stopwatch import Stopwatch

TOLERANCES = tuple(10.0**-digits for digits in range(2, 11))


def solve(program: ConeProgram, tolerance: float, cap: float, reaches: Reaches) -> Attempt:
    """Solve to ``tolerance`` in gap and feasibility, for at most ``cap`` seconds."""
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.time_limit = cap
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
    watch = Stopwatch()
    with watch.running():
        cones = [clarabel.SecondOrderConeT(program.cone_size)] * program.n_cones
        solver = clarabel.DefaultSolver(
            program.quadratic, program.linear, program.matrix, program.bound, cones, settings
        )
        solution = solver.solve()
    weights = program.weights(solution.x)
    return Attempt(weights, watch.seconds, solution.iterations, f"{tolerance:.0e}", reaches(weights))
