"""Data and a fusion strength in, a certified model out: statistics, start, graph, solve."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
from threadpoolctl import threadpool_limits

from ccmtl_core._types import FloatArray
from ccmtl_core.certificate import Certifier
from ccmtl_core.clusters import Clusters
from ccmtl_core.exceptions import ParameterError
from ccmtl_core.knn_graph import TaskGraph, nearest_neighbour_graph
from ccmtl_core.model import CCMTLModel
from ccmtl_core.objective import FusionProblem
from ccmtl_core.single_task import Statistics, start_weights
from ccmtl_core.solver.alternating import alternate
from ccmtl_core.solver.multigrid import Multigrid
from ccmtl_core.solver.newton import newton
from ccmtl_core.solver.outcome import Outcome, Recorder
from ccmtl_core.solver.pooled_spectrum import PooledSpectrum
from ccmtl_core.solver.report import Progress, ProgressCallback, Round, SolveReport
from ccmtl_core.statistics import SufficientStatistics
from ccmtl_core.task_dataset import TaskDataset

SOLVERS = {"alternating": alternate, "newton": newton}
_ALTERNATE_FROM = 1e-6  # tolerance; the alternation is the faster of the two above it, Newton's method below
_ALTERNATE_ROUNDS = 24  # after which "auto" goes on with Newton's method
_MAX_ROUNDS = 200


@dataclass(frozen=True, eq=False)
class FitResult:
    """A fitted model, how the solve went, and the graph it was fused along.

    Parameters
    ----------
    model : CCMTLModel
        Weights (T, P), task ids, feature names, ``predict``.
    report : SolveReport
        Status, objective, certified gap, effort, seconds by phase.
    graph : TaskGraph
        Edges (E, 2) and multiplicity (E,).

    Examples
    --------
    >>> import numpy as np
    >>> from ccmtl_core import TaskDataset
    >>> data = TaskDataset.from_arrays([np.eye(1)] * 3, [[0.0], [1.0], [9.0]], task_ids=["a", "b", "c"])
    >>> fit(data, fusion_strength=1.0, n_neighbors=1).clusters
    (('a', 'b'),)
    """

    model: CCMTLModel
    report: SolveReport
    graph: TaskGraph

    @property
    def clusters(self) -> tuple[tuple[str, ...], ...]:
        """Ids of the tasks of each group that shares one model exactly, largest group first."""
        groups = Clusters.of_equal(self.graph, self.model.weights).members
        return tuple(tuple(self.model.task_ids[t] for t in group) for group in groups)


def fit(
    data: TaskDataset | Statistics,
    *,
    fusion_strength: float,
    n_neighbors: int = 10,
    tolerance: float = 1e-4,
    solver: str = "auto",
    graph: TaskGraph | None = None,
    on_progress: ProgressCallback | None = None,
) -> FitResult:
    """Fit one linear model per task, similar ones pulled together (He et al., AAAI 2019).

    Parameters
    ----------
    data : TaskDataset or statistics
        T tasks with P features; everything after one pass over the rows uses the statistics only.
    fusion_strength : float
        λ ≥ 0. Zero gives each task alone; large values give one model per connected component.
    n_neighbors : int
        k of the nearest-neighbour graph; ignored with ``graph``.
    tolerance : float
        The certified gap (J − lower bound) / J at which to stop.
    solver : str
        "alternating" (the paper's method), "newton" (faster to many digits), or "auto": the first where a
        few rounds of it are enough, then the second. Both end by fusing tasks exactly.
    graph : TaskGraph, optional
        Fuse along this graph instead of the nearest neighbours.
    on_progress : callable, optional
        Called at each phase and round; an exception that it raises ends the fit and reaches the caller.

    Returns
    -------
    FitResult
        Also when the tolerance was not reached: ``report.status`` says so and what to try.

    Raises
    ------
    DataError, ParameterError
        Data or arguments that cannot be used.

    Examples
    --------
    >>> import numpy as np
    >>> from ccmtl_core import TaskDataset, fit
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.normal(size=(20, 2)) for _ in range(12)]
    >>> y = [x @ [1.0, -1.0] + rng.normal(size=20) for x in X]
    >>> result = fit(TaskDataset.from_arrays(X, y), fusion_strength=0.1, n_neighbors=3)
    >>> result.report.status.value, result.model.weights.shape
    ('converged', (12, 2))
    """
    if not (np.isfinite(tolerance) and tolerance > 0):
        raise ParameterError(f"tolerance must be a finite number above 0, not {tolerance}")
    if solver not in ("auto", *SOLVERS):
        raise ParameterError(f"solver must be one of {', '.join(['auto', *SOLVERS])}; not {solver!r}")
    clock = _Clock(on_progress)
    with clock.phase("statistics"):
        statistics = SufficientStatistics.from_dataset(data) if isinstance(data, TaskDataset) else data
    with clock.phase("start"):
        W = start_weights(statistics)
    with clock.phase("graph"):
        graph = nearest_neighbour_graph(W, n_neighbors) if graph is None else graph
        problem = FusionProblem(statistics, graph, float(fusion_strength))
    with clock.phase("solve"), threadpool_limits(limits=1, user_api="blas"):
        name, outcome = _solve(problem, W, solver, Recorder(tolerance, _MAX_ROUNDS, clock.round))
    model = CCMTLModel(outcome.weights, statistics.task_ids, statistics.feature_names)
    note = statistics.least_squares.precision_note(statistics.task_ids)
    report = _report(name, outcome, tolerance, clock, () if note is None else (note,))
    return FitResult(model, report, graph)


def _solve(problem: FusionProblem, W: FloatArray, solver: str, recorder: Recorder) -> tuple[str, Outcome]:
    """Solve with the tasks renumbered so that neighbours are close in memory; return name and outcome."""
    order = problem.graph.locality_order()
    problem, W = problem.reordered(order), W[order]
    graph, gram = problem.graph, problem.statistics.gram
    spectrum = PooledSpectrum.of(gram, graph.component, graph.n_components)
    multigrid = Multigrid(graph.edges, gram, spectrum)
    certifier = Certifier(problem, multigrid, spectrum)
    if problem.penalty(W) <= 0.5 * recorder.tolerance * problem.objective(W):
        name, outcome = "direct", _direct(W, certifier, recorder)
    else:
        name, outcome = _iterate(problem, W, solver, recorder, certifier, multigrid)
    weights = np.empty_like(W)
    weights[order] = outcome.weights
    return name, replace(outcome, weights=weights)


def _iterate(
    problem: FusionProblem,
    W: FloatArray,
    solver: str,
    recorder: Recorder,
    certifier: Certifier,
    multigrid: Multigrid,
) -> tuple[str, Outcome]:
    """Run the solver asked for; "auto" alternates first where that may be enough, then takes Newton steps."""
    if solver != "auto":
        return solver, SOLVERS[solver](problem, W, recorder, certifier, multigrid)
    names = []
    if recorder.tolerance >= _ALTERNATE_FROM:
        names.append("alternating")
        alternate(problem, W, recorder, certifier, multigrid, max_rounds=_ALTERNATE_ROUNDS)
    if not recorder.finished:
        names.append("newton")
        newton(problem, W, recorder, certifier, multigrid)
    return "+".join(names), recorder.outcome()


def _direct(W: FloatArray, certifier: Certifier, recorder: Recorder) -> Outcome:
    """The start itself, where the penalty is too small to move it (as for λ = 0, or without edges)."""
    flows = np.zeros((len(certifier.problem.head), W.shape[1]))
    certificate = certifier.certify(W, flows, recorder.tolerance)
    recorder.consider(W, certificate.objective, certificate)
    recorder.end_round(certificate.objective, 0.0, 0)
    return recorder.outcome()


def _report(
    name: str, outcome: Outcome, tolerance: float, clock: _Clock, notes: tuple[str, ...]
) -> SolveReport:
    return SolveReport(
        status=outcome.status,
        solver=name,
        objective=outcome.objective,
        gap=outcome.relative_gap,
        tolerance=tolerance,
        rounds=len(outcome.history),
        cg_iterations=outcome.cg_iterations,
        seconds=dict(clock.seconds),
        history=outcome.history,
        notes=notes,
    )


class _Clock:
    """Times the phases and passes progress on."""

    def __init__(self, on_progress: ProgressCallback | None) -> None:
        self._on_progress = on_progress or (lambda progress: None)
        self._began = time.perf_counter()
        self.seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        began = time.perf_counter()
        self._on_progress(Progress(name, 0, None, None, began - self._began))
        yield
        self.seconds[name] = time.perf_counter() - began

    def round(self, this: Round, number: int) -> None:
        elapsed = time.perf_counter() - self._began
        self._on_progress(Progress("solve", number, this.objective, this.gap, elapsed))
