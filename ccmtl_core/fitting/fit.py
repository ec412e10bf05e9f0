"""Fit a model at one strength: statistics, start, graph, solve."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Unpack

from numpy.typing import ArrayLike

from ccmtl_core.base.arguments import check_callback
from ccmtl_core.base.arrays import all_finite, as_shape
from ccmtl_core.base.display import counted, named, shown
from ccmtl_core.base.exceptions import DataError
from ccmtl_core.base.threads import one_blas_thread
from ccmtl_core.base.types import FloatArray
from ccmtl_core.choices.model_choices import ChoiceKeywords, ModelChoices, SolverInput, chosen
from ccmtl_core.data.task_dataset import TaskDataset
from ccmtl_core.graph.knn_graph import TaskGraph, check_graph
from ccmtl_core.model.ccmtl_model import CCMTLModel
from ccmtl_core.solver.clusters import Clusters
from ccmtl_core.solver.fusion_solver import FusionSolver, check_solver
from ccmtl_core.solver.objective import check_strength
from ccmtl_core.solver.report import Progress, ProgressCallback, Round, SolveReport
from ccmtl_core.statistics.inputs import Statistics, statistics_of

_HIDDEN_NOTE = (
    "Some features are mixtures of others up to rounding, or constant beside an intercept, and y depends on "
    "what is left of them: weights for it cannot be computed, and the gap says how much of the objective "
    "they might save. Give such features an origin and a unit near the size of their changes (hours since "
    "the first row, say), or an intercept."
)


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
    fusion_strength : float
        λ.

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
    fusion_strength: float

    def __repr__(self) -> str:
        model, report = self.model, self.report
        return shown(
            self,
            counted(len(model.task_ids), "task"),
            named(model.feature_names, "feature"),
            f"fusion_strength {self.fusion_strength:.4g}",
            counted(Clusters.of_equal(self.graph, model.weights).n_clusters, "group"),
            f"gap {report.gap:.2g}",
            str(report.status),
        )

    @property
    def clusters(self) -> tuple[tuple[str, ...], ...]:
        """Ids of the tasks of each group of two or more that share their weights exactly, largest first."""
        groups = Clusters.of_equal(self.graph, self.model.weights).members
        return tuple(tuple(self.model.task_ids[t] for t in group) for group in groups)


@one_blas_thread()
def fit(
    data: TaskDataset | Statistics,
    fusion_strength: float,
    *,
    choices: ModelChoices | None = None,
    graph: TaskGraph | None = None,
    tolerance: float = 1e-4,
    solver: str = "auto",
    initial_weights: ArrayLike | None = None,
    on_progress: ProgressCallback | None = None,
    **keywords: Unpack[ChoiceKeywords],
) -> FitResult:
    """Fit one linear model per task, similar ones pulled together (He et al., AAAI 2019).

    Parameters
    ----------
    data : TaskDataset or statistics
        T tasks with P features; after one pass over the rows only their statistics are used.
    fusion_strength : float
        λ: zero, which gives each task alone, or from 1e-100 to 1e100; large values give one model per
        connected component. Where rounding outweighs it, each task alone is the answer.
    choices : ModelChoices, optional
        What is fitted: intercepts, scaling of losses, metric, neighbours; by default what the paper fits.
    graph : TaskGraph, optional
        Fuse along this graph instead of the nearest neighbours.
    tolerance : float
        The certified gap (J − lower bound) / J at which to stop.
    solver : str
        "dual" (fastest where every task alone is well determined, impossible elsewhere), "alternating" (the
        paper's method), "newton" (faster to many digits), or "auto": the first of these that may be enough,
        then the next. All end by fusing tasks exactly.
    initial_weights : (T, P), optional
        Where the solver begins; near the solution saves rounds. The graph does not depend on it.
    on_progress : callable, optional
        Called at each phase and round; an exception that it raises ends the fit and reaches the caller.
    **keywords
        Single choices by name, as in ``fit(data, 1.0, fit_intercept=True)``: see :class:`ModelChoices`.

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
    check_solver(solver, tolerance)
    check_strength(fusion_strength)
    check_graph(graph)
    check_callback(on_progress, "on_progress")
    choices = chosen(choices, keywords)
    clock = Clock(on_progress)
    with clock.phase("statistics"):
        statistics = statistics_of(data)
    with clock.phase("start"):
        prepared = choices.prepare(statistics)
        W = prepared.start
        if initial_weights is not None:
            W = as_shape(initial_weights, W.shape, "initial_weights")
            if not all_finite(W):
                raise DataError("initial_weights must be finite")
            W = prepared.solver_weights(W)
    with clock.phase("graph"):
        graph = choices.graph(prepared) if graph is None else graph
    return fit_prepared(prepared, graph, fusion_strength, W, tolerance, solver, clock)


def fit_prepared(
    prepared: SolverInput,
    graph: TaskGraph,
    fusion_strength: float,
    W: FloatArray,
    tolerance: float,
    solver: str,
    clock: Clock,
) -> FitResult:
    """Fit as :func:`fit` what is prepared already, starting at W (T, P), weights as the solver sees them."""
    fitted = prepared.statistics
    with clock.phase("solve"):
        outcome = FusionSolver(fitted.quadratic, graph).solve(
            fusion_strength, W, tolerance=tolerance, solver=solver, on_round=clock.round
        )
    model = prepared.model(outcome.weights)
    notes = (
        fitted.least_squares.precision_note(fitted.task_ids),
        _HIDDEN_NOTE if outcome.hidden else None,
        _components_note(graph, outcome.weights),
    )
    report = SolveReport(
        status=outcome.status,
        solver=outcome.solver,
        objective=outcome.objective,
        gap=outcome.relative_gap,
        tolerance=tolerance,
        rounds=len(outcome.history),
        cg_iterations=outcome.cg_iterations,
        seconds=dict(clock.seconds),
        history=outcome.history,
        notes=tuple(note for note in notes if note is not None),
    )
    return FitResult(model, report, graph, float(fusion_strength))


def _components_note(graph: TaskGraph, weights: FloatArray) -> str | None:
    """A note where each component of the graph is one model, and there are several of them."""
    n = graph.n_components
    if not 1 < n < graph.n_tasks or Clusters.of_equal(graph, weights).n_clusters > n:
        return None
    return (
        f"All tasks are fused as far as any strength fuses them, into {n} models and not one: the graph of "
        f"similar tasks has {n} parts that no edge joins. A larger n_neighbors can join them."
    )


class Clock:
    """Times the phases and passes progress on."""

    def __init__(self, on_progress: ProgressCallback | None = None) -> None:
        self._on_progress = on_progress or (lambda progress: None)
        self._began = time.perf_counter()
        self.seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time what the block does, and tell that it begins."""
        began = time.perf_counter()
        self._on_progress(Progress(name, 0, None, None, began - self._began))
        yield
        self.seconds[name] = time.perf_counter() - began

    def round(self, this: Round, number: int) -> None:
        """Tell of a round of the solver."""
        elapsed = time.perf_counter() - self._began
        self._on_progress(Progress("solve", number, this.objective, this.gap, elapsed))
