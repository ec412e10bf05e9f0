"""Solve a fusion problem by the paper's alternation, with pyamg as its preconditioner.

He et al. (AAAI 2019, algorithm 1) renew the edge weights and solve equation 6 by conjugate gradients in
turn. Here pyamg's smoothed aggregation preconditions one column of W at a time, on the T × T matrix Laplacian
+ diag(tr G_t / P), built anew in each round. Smoothing, inner tolerance and rounds are those that reached a
gap of 1e-4 on Ta-Feng soonest: a smoothing held at a small fixed value, more exact inner solves, and a matrix
of its own for each column all took longer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyamg
from scipy import sparse

from benchmarks.stopwatch import Seconds, Stopwatch
from ccmtl_core.base.types import FloatArray
from ccmtl_core.solver.certificate import Certifier
from ccmtl_core.solver.objective import FusionProblem, row_norms
from ccmtl_core.solver.outcome import typical_length
from ccmtl_core.solver.systems.cg import Operator, flexible_cg
from ccmtl_core.solver.systems.multigrid import Level, Multigrid
from ccmtl_core.solver.systems.pooled_spectrum import PooledSpectrum

FIRST_SMOOTHING = 1e-2  # of the typical edge length of the start
SHRINK = 0.3
ROUNDS_PER_SMOOTHING = 4
INNER_TOLERANCE = 0.1
MAX_CG = 60
MAX_COARSE = 300


@dataclass(frozen=True, eq=False)
class Alternated:
    """Where the alternation stopped."""

    objective: float
    gap: float
    seconds: Seconds
    rounds: int
    cg_iterations: int


def alternate_with_pyamg(problem: FusionProblem, W: FloatArray, tolerance: float, cap: float) -> Alternated:
    """Alternate from W (T, P) until the certified gap is within ``tolerance`` or ``cap`` seconds are spent.

    Certificates are this project's own and are computed off the clock, before each fall of the smoothing.
    """
    graph, gram = problem.graph, problem.quadratic.gram
    spectrum = PooledSpectrum.of(gram, graph.component, graph.n_components)
    certifier = Certifier(problem, Multigrid(graph.edges, gram, spectrum), spectrum)
    system = Level(problem.head, problem.tail, gram, problem.lanes)
    smoothing = FIRST_SMOOTHING * typical_length(problem)
    watch, rounds, iterations = Stopwatch(), 0, 0
    objective, bound = np.inf, 0.0
    while True:
        for _ in range(ROUNDS_PER_SMOOTHING):
            with watch.running():
                w = problem.radius / np.sqrt(row_norms(problem.differences(W)) ** 2 + smoothing**2)
                system.set_weights(w)
                solved = flexible_cg(
                    system.apply, column_preconditioner(problem, w, spectrum), problem.quadratic.xty, x0=W,
                    rtol=INNER_TOLERANCE, max_iterations=MAX_CG,
                )  # fmt: skip
                W = solved.x
            rounds, iterations = rounds + 1, iterations + solved.iterations
        certificate = certifier.certify(W, w[:, None] * problem.differences(W), tolerance, w)
        objective, bound = min(objective, certificate.objective), max(bound, certificate.lower_bound)
        gap = (objective - bound) / objective
        if gap <= tolerance or watch.seconds.cpu >= cap:
            return Alternated(objective, gap, watch.seconds, rounds, iterations)
        smoothing *= SHRINK


def column_preconditioner(problem: FusionProblem, w: FloatArray, spectrum: PooledSpectrum) -> Operator:
    """Return a V-cycle of smoothed aggregation for edge weights w (E,), applied column by column."""
    gram, T = problem.quadratic.gram, problem.graph.n_tasks
    own = np.trace(gram, axis1=1, axis2=2) / gram.shape[1]
    i, j, tasks = problem.head, problem.tail, np.arange(T, dtype=np.int32)
    ties = np.bincount(i, w, T) + np.bincount(j, w, T)
    own += 1e-12 * ties.max()  # a component without data would make the matrix singular
    A = sparse.csr_matrix((np.r_[-w, -w, ties + own], (np.r_[i, j, tasks], np.r_[j, i, tasks])), shape=(T, T))
    cycle = pyamg.smoothed_aggregation_solver(A, max_coarse=MAX_COARSE).aspreconditioner("V")

    def precondition(r: FloatArray) -> FloatArray:
        z = np.stack([cycle.matvec(column) for column in np.ascontiguousarray(r.T)], axis=1)
        z = np.ascontiguousarray(z)
        spectrum.remove_null(z)
        return z

    return precondition
