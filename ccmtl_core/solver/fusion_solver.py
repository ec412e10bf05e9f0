"""Solves one problem at any strength; what strengths share is computed once.

Many tasks are renumbered so that neighbours are close in memory; spectra, the certificate's forest and the
finest level of the multigrid depend on neither λ nor the weights.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property, partial

import numpy as np

from ccmtl_core.base.arrays import is_real
from ccmtl_core.base.exceptions import ParameterError
from ccmtl_core.base.threads import one_blas_thread
from ccmtl_core.base.types import EPS, FloatArray
from ccmtl_core.graph.knn_graph import TaskGraph
from ccmtl_core.kernels.block_products import times
from ccmtl_core.solver.alternating import alternate
from ccmtl_core.solver.certificate import Certifier
from ccmtl_core.solver.dual_ascent import Inverse, dual_ascent
from ccmtl_core.solver.newton import Follower, newton
from ccmtl_core.solver.objective import FusionProblem
from ccmtl_core.solver.outcome import TIGHT, Outcome, Recorder, RoundCallback
from ccmtl_core.solver.report import SolveStatus
from ccmtl_core.solver.systems.multigrid import Multigrid
from ccmtl_core.solver.systems.pooled_spectrum import PooledSpectrum
from ccmtl_core.statistics.least_squares import SURE
from ccmtl_core.statistics.quadratic import Quadratic

SOLVERS = ("auto", "dual", "alternating", "newton")
_ALTERNATE_ROUNDS = 36  # after which "auto" goes on with Newton's method
_FOLLOW_FROM = 1e-5  # tolerance; below, edges must be fused exactly, which takes solves of its own
_MOSTLY = 0.9  # of the tasks with more independent rows than features: steps from strength to strength win
_WIDE = 17  # features from which they always do, as other solvers are slow
_MORE = 1.02  # times what is hidden of J at one solution may be hidden at one nearby
_LEAST_LEFT = 0.1  # of a tolerance, beside what is hidden, that steps go on for
_SLOW = 8  # rounds of the other solvers, after which they win as well
_MAX_ROUNDS = 200
_IN_CACHE = 2**20  # bytes of Gram blocks, up to which tasks need not be renumbered to be close in memory


class FusionSolver:
    """Minimises the objective of one data set on one graph, at one strength after the other.

    Parameters
    ----------
    quadratic : Quadratic
        The loss of T tasks with P features.
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
    >>> blocks = SufficientStatistics.from_dataset(data).quadratic
    >>> solver = FusionSolver(blocks, TaskGraph([[0, 1]], [2], n_tasks=2))
    >>> solver.solve(0.5, np.array([[0.0], [2.0]])).weights.ravel().round(3)
    array([0.5, 1.5])
    """

    def __init__(self, quadratic: Quadratic, graph: TaskGraph) -> None:
        self._graph, self._problem = graph, FusionProblem(quadratic, graph, 0.0)
        self._order = np.arange(graph.n_tasks)
        self._was_slow = False
        if self._problem.quadratic.gram.nbytes > _IN_CACHE:
            self._order = graph.locality_order()
            self._problem = self._problem.reordered(self._order)

    @cached_property
    def _inverse(self) -> Inverse | None:
        return Inverse.of(self._problem)

    @cached_property
    def _spectrum(self) -> PooledSpectrum:
        graph = self._problem.graph
        return PooledSpectrum.of(self._problem.quadratic.gram, graph.component, graph.n_components)

    @cached_property
    def _multigrid(self) -> Multigrid:
        return Multigrid(self._problem.graph.edges, self._problem.quadratic.gram, self._spectrum)

    @cached_property
    def _follower(self) -> Follower:
        return Follower(self._multigrid)

    @cached_property
    def _certifier(self) -> Certifier:
        return Certifier(self._problem, self._multigrid, self._spectrum)

    @one_blas_thread()
    def solve(
        self,
        fusion_strength: float,
        start: FloatArray,
        *,
        tolerance: float = 1e-4,
        solver: str = "auto",
        flows: FloatArray | None = None,
        follow: bool = False,
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
        flows : (E, P) float64, optional
            Edge flows U that may prove the start optimal, as those of :class:`ccmtl_core.FusionThreshold` do
            for the fused weights; where they do, the start is the answer. The dual ascent begins from them.
        follow : bool
            Let "auto" begin with Newton steps from the last solve of this kind, at a lower strength nearby.
        on_round : callable, optional
            Called with each round and its number.

        Returns
        -------
        Outcome
            The best weights found, with their certificate.

        Raises
        ------
        ParameterError
            A strength, tolerance or solver that does not exist.
        """
        check_solver(solver, tolerance)
        problem, W = self._problem.at(float(fusion_strength)), start[self._order]
        if fusion_strength == 0.0:  # each task alone is optimal, and edges have no weight to iterate with
            W = _alone(problem, W)
        recorder, ran = Recorder(tolerance, _MAX_ROUNDS, on_round), []
        for name, method in self._methods(solver, problem, W, flows, follow, recorder):
            ran.append(name)
            method()
            if recorder.finished:
                break
        outcome = recorder.outcome()
        hidden = self._hidden_part(problem, outcome.weights)
        if ran == ["following"] and hidden > 0.0 and self._follow_further(problem, recorder, hidden):
            outcome = recorder.outcome()
            hidden = self._hidden_part(problem, outcome.weights)
        self._was_slow |= len(outcome.history) > _SLOW
        outcome = outcome.hiding(hidden, tolerance)
        weights = np.empty_like(outcome.weights)
        weights[self._order] = outcome.weights
        return replace(outcome, weights=weights, solver="+".join(ran))

    def _hidden_part(self, problem: FusionProblem, W: FloatArray) -> float:
        """Return the part of J of tasks whose y depends on directions lost to rounding.

        Directions may be lost in a task alone, or in all tasks of a component together.
        """
        quadratic, rounding = problem.quadratic, 0.0
        hides = quadratic.least_squares.hides
        if self._inverse is None and problem.radius.any() and self._spectrum.cut.any():
            G = quadratic.gram
            fitted, terms = times(G, W), times(np.abs(G), np.abs(W))
            of_component, least = self._spectrum.hides(quadratic.xty, fitted, terms)
            hides = hides | of_component[problem.graph.component]
            # Of weights that are not out of proportion it is lost in the rounding of y itself.
            rounding = float(least.sum()) if least.sum() > SURE * EPS * float(quadratic.yty.sum()) else 0.0
        if not hides.any():
            return rounding
        edges = hides[problem.head] | hides[problem.tail]
        penalty = problem.radius[edges] @ problem.lengths(W)[edges]
        return 0.5 * float(quadratic.loss.squared_error(W)[hides].sum()) + float(penalty) + rounding

    def _methods(
        self,
        solver: str,
        problem: FusionProblem,
        W: FloatArray,
        flows: FloatArray | None,
        follow: bool,
        recorder: Recorder,
    ) -> Iterator[tuple[str, Callable[[], object]]]:
        """Yield the methods to run, by name, one after the other until the recorder has finished."""
        U = None if flows is None else self._renumbered(flows)
        if U is not None:
            yield "direct", partial(_direct, W, U, self._certifier.at(problem), recorder)
        if follow and solver == "auto" and self._may_follow(problem, recorder.tolerance):
            certifier = self._certifier.at(problem)
            yield "following", partial(self._follower.solve, problem, W, recorder, certifier)
        if solver in ("auto", "dual"):
            if self._inverse is not None:
                yield "dual", partial(dual_ascent, problem, self._inverse, recorder, U)
            elif solver == "dual":
                raise ParameterError(
                    "solver 'dual' needs more independent rows than features in every task; take 'auto'"
                )
        if solver == "dual":
            return
        yield from self._iterative(solver, problem, W, recorder)

    def _may_follow(self, problem: FusionProblem, tolerance: float) -> bool:
        """Whether Newton steps from the strength before are worth a try."""
        if tolerance < _FOLLOW_FROM or not problem.radius.any() or self._follower.gave_up:
            return False
        if self._was_slow or problem.n_features >= _WIDE:
            return True
        return self._certifier.share_determined >= _MOSTLY

    def _follow_further(self, problem: FusionProblem, recorder: Recorder, hidden: float) -> bool:
        """Go on until the gap and the part of J lost to rounding are within the tolerance together."""
        outcome, tolerance = recorder.outcome(), recorder.tolerance
        if outcome.status is not SolveStatus.CONVERGED or not outcome.objective > 0.0:
            return False
        left = tolerance - _MORE * hidden / outcome.objective
        if not _LEAST_LEFT * tolerance <= left < outcome.relative_gap:
            return False
        recorder.tolerance = left
        self._follower.solve(problem, outcome.weights, recorder, self._certifier.at(problem))
        recorder.tolerance = tolerance
        return True

    def _iterative(
        self, solver: str, problem: FusionProblem, W: FloatArray, recorder: Recorder
    ) -> Iterator[tuple[str, Callable[[], object]]]:
        """The methods that solve systems."""
        certifier = self._certifier.at(problem)
        for V in (W, _alone(problem, W)):
            if problem.is_negligible(problem.penalty(V), problem.objective(V), 0.5 * recorder.tolerance):
                none = np.zeros((len(problem.head), W.shape[1]))
                yield "direct", partial(_direct, V, none, certifier, recorder)
        rest = problem, W, recorder, certifier, self._multigrid
        if solver == "alternating":
            yield solver, partial(alternate, *rest)
        elif solver != "newton" and recorder.tolerance >= TIGHT:
            yield "alternating", partial(alternate, *rest, max_rounds=_ALTERNATE_ROUNDS)
        yield "newton", partial(newton, *rest)

    def _renumbered(self, flows: FloatArray) -> FloatArray:
        """Return flows, given by the caller's order of tasks and edges, in the order used here."""
        edge, sign = self._graph.edges_in(self._order)
        renumbered: FloatArray = sign[:, None] * flows[edge]
        return renumbered


def check_solver(solver: str, tolerance: float) -> None:
    """Refuse a tolerance or a solver that does not exist."""
    if not (is_real(tolerance) and 0 < tolerance <= sys.float_info.max):
        raise ParameterError(f"tolerance must be a finite number above 0, not {tolerance!r}")
    if solver not in SOLVERS:
        raise ParameterError(f"solver must be one of {', '.join(SOLVERS)}; not {solver!r}")


def _alone(problem: FusionProblem, W: FloatArray) -> FloatArray:
    """The least squares of each task that has data, the weights W (T, P) of one that has none."""
    telling = np.diagonal(problem.quadratic.gram, axis1=1, axis2=2).max(axis=1) > 0.0
    return np.where(telling[:, None], problem.quadratic.least_squares.weights, W)


def _direct(W: FloatArray, flows: FloatArray, certifier: Certifier, recorder: Recorder) -> None:
    """The start itself, where the penalty is too small to move it (as for λ = 0), or flows prove it."""
    certificate = certifier.certify(W, flows, recorder.tolerance)
    recorder.consider(W, certificate.objective, certificate)
    recorder.end_round(certificate.objective, 0.0, 0)
