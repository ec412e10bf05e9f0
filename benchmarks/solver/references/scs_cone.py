"""Solve a cone program with SCS: a splitting method with acceleration.

Its linear systems are solved by conjugate gradients: on these problems a factorisation, of which it has two,
took several times longer in all.
"""

from __future__ import annotations

import scs

from benchmarks.solver.references.attempt import Attempt, Reaches
from benchmarks.solver.references.cone_program import ConeProgram
from benchmarks.stopwatch import Stopwatch

TOLERANCES = tuple(digit * 10.0**-digits for digits in range(1, 10) for digit in (1.0, 0.3))
MAX_ITERATIONS = 10**6


def solve(program: ConeProgram, tolerance: float, cap: float, reaches: Reaches) -> Attempt:
    """Solve to ``tolerance``, absolute and relative, for at most ``cap`` seconds."""
    data = {"P": program.quadratic, "A": program.matrix, "b": program.bound, "c": program.linear}
    watch = Stopwatch()
    with watch.running():
        solver = scs.SCS(
            data,
            {"q": [program.cone_size] * program.n_cones},
            linear_solver=scs.LinearSolver.CPU_INDIRECT,
            eps_abs=tolerance,
            eps_rel=tolerance,
            max_iters=MAX_ITERATIONS,
            time_limit_secs=cap,
            verbose=False,
        )
        solution = solver.solve()
    weights = program.weights(solution["x"])
    return Attempt(weights, watch.seconds, solution["info"]["iter"], f"{tolerance:.0e}", reaches(weights))
