"""Fit at several strengths in turn, from the least to the largest: the path over λ.

Each solve starts from the weights of the strength before, and what strengths share (statistics, graph,
spectra, the order in memory) is computed once. From the proved λ_fuse on, the fused weights are the answer,
and the flows that prove λ_fuse prove them.
"""

from __future__ import annotations

import reprlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from ccmtl_core.base.arguments import check_callback
from ccmtl_core.base.display import counted, shown, spread
from ccmtl_core.base.exceptions import ParameterError
from ccmtl_core.base.threads import one_blas_thread
from ccmtl_core.base.types import FloatArray
from ccmtl_core.choices.model_choices import ChoiceKeywords, ModelChoices, SolverInput, chosen
from ccmtl_core.data.task_dataset import TaskDataset
from ccmtl_core.fitting.strength import FusionBounds, strength_grid
from ccmtl_core.graph.knn_graph import TaskGraph, check_graph
from ccmtl_core.model.ccmtl_model import CCMTLModel
from ccmtl_core.solver.clusters import Clusters
from ccmtl_core.solver.fusion_solver import FusionSolver, check_solver
from ccmtl_core.solver.objective import STRENGTHS, check_strength
from ccmtl_core.solver.report import SolveStatus
from ccmtl_core.statistics.inputs import Statistics, statistics_of


@dataclass(frozen=True, eq=False)
class PathPoint:
    """The solution at one strength.

    Parameters
    ----------
    fusion_strength : float
        λ.
    weights : (T, P) float64
        W.
    n_groups : int
        Groups of tasks that share one model exactly, single tasks included.
    objective, gap : float
        J, and its certified relative gap.
    status : SolveStatus
        How the solve ended.
    solver : str
        What ran.
    rounds, cg_iterations : int
        Effort.
    seconds : float
        Wall time.
    """

    fusion_strength: float
    weights: FloatArray
    n_groups: int
    objective: float
    gap: float
    status: SolveStatus
    solver: str
    rounds: int
    cg_iterations: int
    seconds: float

    def __repr__(self) -> str:
        strength, groups = f"fusion_strength {self.fusion_strength:.4g}", counted(self.n_groups, "group")
        return shown(self, strength, groups, f"gap {self.gap:.2g}", str(self.status))


@dataclass(frozen=True, eq=False)
class FusionPath:
    """Solutions in the order of the strengths asked for, and the graph that they were fused along.

    Parameters
    ----------
    points : tuple of PathPoint
        One for each strength.
    graph : TaskGraph
        The same for all.
    solver_input : SolverInput
        What was fitted, and where intercepts come from.
    """

    points: tuple[PathPoint, ...]
    graph: TaskGraph
    solver_input: SolverInput

    def __repr__(self) -> str:
        gap = max(point.gap for point in self.points)
        return shown(
            self,
            counted(self.graph.n_tasks, "task"),
            f"{len(self.points)} fusion_strengths from {spread(self.fusion_strengths.tolist())}",
            f"{spread(self.n_groups)} groups",
            f"largest gap {gap:.2g}",
        )

    @property
    def fusion_strengths(self) -> FloatArray:
        """(L,) The strengths."""
        return np.array([point.fusion_strength for point in self.points])

    @property
    def n_groups(self) -> tuple[int, ...]:
        """Groups of tasks at each strength."""
        return tuple(point.n_groups for point in self.points)

    def model(self, number: int) -> CCMTLModel:
        """The model of one point, by its place in ``points``."""
        return self.solver_input.model_of(self.points[number].weights)


@one_blas_thread()
def fit_path(
    data: TaskDataset | Statistics,
    fusion_strengths: ArrayLike | None = None,
    *,
    choices: ModelChoices | None = None,
    graph: TaskGraph | None = None,
    tolerance: float = 1e-4,
    solver: str = "auto",
    on_point: Callable[[PathPoint], None] | None = None,
    **keywords: Unpack[ChoiceKeywords],
) -> FusionPath:
    """Fit at each of several strengths, for little more than the price of a few.

    Parameters
    ----------
    data : TaskDataset or statistics
        T tasks with P features.
    fusion_strengths : array-like of float, optional
        Any number of λ, each 0 or from 1e-100 to 1e100, in any order; by default
        :func:`ccmtl_core.strength_grid`.
    choices, graph, tolerance, solver, **keywords
        As in :func:`ccmtl_core.fit`.
    on_point : callable, optional
        Called with each point as it is found, strengths rising.

    Returns
    -------
    FusionPath
        One solution for each strength.

    Raises
    ------
    ParameterError
        Strengths, a tolerance or a solver that do not exist.

    Examples
    --------
    >>> data = TaskDataset.from_arrays([[[1.0]]] * 3, [[0.0], [1.0], [9.0]])
    >>> fit_path(data, [12.0, 0.0, 1.0], n_neighbors=1).n_groups
    (1, 3, 2)
    """
    check_solver(solver, tolerance)
    check_graph(graph)
    check_callback(on_point, "on_point")
    choices = chosen(choices, keywords)
    statistics = statistics_of(data)
    prepared = choices.prepare(statistics)
    graph = choices.graph(prepared) if graph is None else graph
    if fusion_strengths is None:
        fusion_strengths = strength_grid(prepared.statistics, graph)
    asked = checked_strengths(fusion_strengths)
    order = np.argsort(asked, kind="stable")
    points: list[PathPoint] = []
    fitted, rising = prepared.statistics, asked[order]
    for solved in walk(fitted, graph, prepared.start, rising, tolerance=tolerance, solver=solver):
        points.append(replace(solved, weights=prepared.weights(solved.weights)))
        if on_point is not None:
            on_point(points[-1])
    return FusionPath(tuple(points[place] for place in np.argsort(order)), graph, prepared)


def walk(
    statistics: Statistics,
    graph: TaskGraph,
    start: FloatArray,
    strengths: FloatArray | Sequence[float],
    *,
    tolerance: float,
    solver: str = "auto",
) -> Iterator[PathPoint]:
    """Solve at rising strengths, the first from ``start`` (T, P), each other from the weights before it."""
    shared = FusionSolver(statistics.quadratic, graph)
    bounds, fused = FusionBounds(statistics, graph), None
    W = start
    for strength in map(float, strengths):
        began = time.perf_counter()
        if fused is None and len(graph.edges) and bounds.fuses_all(strength):
            fused = bounds.found()
        if fused is not None:
            outcome = shared.solve(strength, fused.weights, tolerance=tolerance, flows=fused.flows)
        else:
            outcome = shared.solve(strength, W, tolerance=tolerance, solver=solver, follow=len(strengths) > 1)
        seconds = time.perf_counter() - began
        W = outcome.weights if strength > 0.0 else start
        yield PathPoint(
            fusion_strength=strength,
            weights=outcome.weights,
            n_groups=Clusters.of_equal(graph, outcome.weights).n_clusters,
            objective=outcome.objective,
            gap=outcome.relative_gap,
            status=outcome.status,
            solver=outcome.solver,
            rounds=len(outcome.history),
            cg_iterations=outcome.cg_iterations,
            seconds=seconds,
        )


def checked_strengths(fusion_strengths: ArrayLike, *, distinct: bool = False) -> FloatArray:
    """Return strengths as (L,) float64; none, unusable ones or, if asked, repeated ones are refused."""
    fault = (
        f"fusion_strengths must be a list of one or more numbers, each {STRENGTHS}; not "
        f"{reprlib.repr(fusion_strengths)}. Leave it out for a grid that is made from the data"
    )
    try:
        asked = np.asarray(fusion_strengths)
    except ValueError as error:  # lists of different lengths
        raise ParameterError(fault) from error
    if asked.ndim != 1 or not len(asked):
        raise ParameterError(fault)
    for strength in asked.tolist():
        check_strength(strength)
    if distinct and len(set(asked.tolist())) < len(asked):
        named = reprlib.repr(fusion_strengths)
        raise ParameterError(f"fusion_strengths must hold no number twice; not {named}")
    return asked.astype(np.float64)
