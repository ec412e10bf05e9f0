"""Statistics and a graph in, certified weights at any strength out: what strengths share is computed once.

Tasks are renumbered so that neighbours are close in memory; spectra, the certificate's forest and the finest
level of the multigrid depend on neither λ nor the weights.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from threadpoolctl import threadpool_limits

from ccmtl_core._types import FloatArray
from ccmtl_core.certificate import Certifier
from ccmtl_core.exceptions import ParameterError
from ccmtl_core.knn_graph import TaskGraph
from ccmtl_core.objective import FusionProblem
from ccmtl_core.single_task import Statistics
from ccmtl_core.solver.alternating import alternate
from ccmtl_core.solver.multigrid import Multigrid
from ccmtl_core.solver.newton import newton
from ccmtl_core.solver.outcome import Outcome, Recorder, RoundCallback
from ccmtl_core.solver.pooled_spectrum import PooledSpectrum

SOLVERS = {"alternating": alternate, "newton": newton}
_ALTERNATE_FROM = 1e-6  # tolerance; the alternation is the faster of the two above it, Newton's method below
_ALTERNATE_ROUNDS = 24  # after which "auto" goes on with Newton's method
_MAX_ROUNDS = 200


class FusionSolver:
    """Minimises the objective of one data set on one graph, at one strength after the other.

    Parameters
    ----------
    statistics : SufficientStatistics or TriangularStatistics
        T tasks with P features.
    graph : TaskGraph
        On the same T tasks.

    Raises
    ------
    DataError
        A graph on another number of tasks.

    Examples
    --------
    >>> from ccmtl_core import SufficientStatistics, TaskDataset, TaskGraph
    >>> data = TaskDataset.from_arrays([[[1.0]], [[1.0]]], [[0.0], [2.0]])
    >>> solver = FusionSolver(SufficientStatistics.from_dataset(data), TaskGraph([[0, 1]], [2], n_tasks=2))
    >>> solver.solve(0.5, np.array([[0.0], [2.0]])).weights.ravel().round(3)
    array([0.5, 1.5])
    """

    def __init__(self, statistics: Statistics, graph: TaskGraph) -> None:
        self._order = graph.locality_order()
        self._problem = FusionProblem(statistics, graph, 0.0).reordered(self._order)
        graph, gram = self._problem.graph, self._problem.statistics.gram
        spectrum = PooledSpectrum.of(gram, graph.component, graph.n_components)
        self._multigrid = Multigrid(graph.edges, gram, spectrum)
        self._certifier = Certifier(self._problem, self._multigrid, spectrum)

    def solve(
        self,
        fusion_strength: float,
        start: FloatArray,
        *,
        tolerance: float = 1e-4,
        solver: str = "auto",
        on_round: RoundCallback | None = None,
    ) -> Outcome:
        """Minimise at one strength.

        Parameters
        ----------
        fusion_strength : float
            λ ≥ 0.
        start : (T, P) float64
            Start weights; the nearer to the optimum, the better.
        tolerance : float
            The certified gap (J − lower bound) / J at which to stop.
        solver : str
            As in :func:`ccmtl_core.fit`.
        on_round : callable, optional
            Called with each round and its number.

        Raises
        ------
        ParameterError
            A strength, tolerance or solver that does not exist.
        """
        check_solver(solver, tolerance)
        problem, W = self._problem.at(float(fusion_strength)), start[self._order]
        certifier = self._certifier.at(problem)
        recorder = Recorder(tolerance, _MAX_ROUNDS, on_round)
        with threadpool_limits(limits=1, user_api="blas"):
            if problem.penalty(W) <= 0.5 * tolerance * problem.objective(W):
                outcome = _direct(W, certifier, recorder)
            else:
                outcome = _iterate(problem, W, solver, recorder, certifier, self._multigrid)
        weights = np.empty_like(outcome.weights)
        weights[self._order] = outcome.weights
        return replace(outcome, weights=weights)


def check_solver(solver: str, tolerance: float) -> None:
    """Refuse a tolerance or a solver that does not exist."""
    if not (np.isfinite(tolerance) and tolerance > 0):
        raise ParameterError(f"tolerance must be a finite number above 0, not {tolerance}")
    if solver not in ("auto", *SOLVERS):
        raise ParameterError(f"solver must be one of {', '.join(['auto', *SOLVERS])}; not {solver!r}")


def _iterate(
    problem: FusionProblem,
    W: FloatArray,
    solver: str,
    recorder: Recorder,
    certifier: Certifier,
    multigrid: Multigrid,
) -> Outcome:
    """Run the solver asked for; "auto" alternates first where that may be enough, then takes Newton steps."""
    if solver != "auto":
        return replace(SOLVERS[solver](problem, W, recorder, certifier, multigrid), solver=solver)
    names = []
    if recorder.tolerance >= _ALTERNATE_FROM:
        names.append("alternating")
        alternate(problem, W, recorder, certifier, multigrid, max_rounds=_ALTERNATE_ROUNDS)
    if not recorder.finished:
        names.append("newton")
        newton(problem, W, recorder, certifier, multigrid)
    return replace(recorder.outcome(), solver="+".join(names))


def _direct(W: FloatArray, certifier: Certifier, recorder: Recorder) -> Outcome:
    """The start itself, where the penalty is too small to move it (as for λ = 0, or without edges)."""
    flows = np.zeros((len(certifier.problem.head), W.shape[1]))
    certificate = certifier.certify(W, flows, recorder.tolerance)
    recorder.consider(W, certificate.objective, certificate)
    recorder.end_round(certificate.objective, 0.0, 0)
    return replace(recorder.outcome(), solver="direct")
