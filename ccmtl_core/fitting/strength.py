"""Find the scale of the fusion strength λ: where tasks begin to fuse, and from where all are fused.

(Which λ is taken, cross-validation chooses in :mod:`ccmtl_core.fitting.selection`.)

A component of the graph is wholly fused from λ_fuse on, the least λ for which flows U exist with

    DᵀU = g,  2 ‖U_e‖ / m_e ≤ λ on every edge,        g_t = c_t − G_t w,                             (balance)

where w are the weights of the component's pooled rows: g are the forces that its tasks exert on them. Any
balanced flow gives an upper bound, its largest load 2 ‖U_e‖ / m_e; any φ (T, P) a lower bound, since
⟨g, φ⟩ = ⟨U, D φ⟩ ≤ λ/2 Σ m_e ‖(D φ)_e‖. Both come from one Laplacian flow U = m ρ D φ, whose conductances ρ
are raised where the load is small. The flow need not be exact: what the solve leaves unbalanced is carried
along a tree, and a bound on the rounding is added.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ccmtl_core.base.arguments import check_kind
from ccmtl_core.base.arrays import is_real, is_whole
from ccmtl_core.base.display import counted, shown
from ccmtl_core.base.exceptions import ParameterError
from ccmtl_core.base.types import EPS, BoolArray, FloatArray
from ccmtl_core.graph.forest import Forest, spanning_forest
from ccmtl_core.graph.knn_graph import TaskGraph
from ccmtl_core.kernels.block_products import times
from ccmtl_core.kernels.grouping import group_sums
from ccmtl_core.kernels.solver import edge_kernels
from ccmtl_core.solver.objective import MIN_STRENGTH, FusionProblem, row_norms
from ccmtl_core.solver.systems.cg import flexible_cg
from ccmtl_core.solver.systems.multigrid import Multigrid
from ccmtl_core.solver.systems.pooled_spectrum import PooledSpectrum
from ccmtl_core.statistics.inputs import Statistics, statistics_of
from ccmtl_core.statistics.quadratic import Quadratic

RATIO = 1.1
_MOST_STEPS = 100
_CLOSER = 0.999  # of the distance between two bounds: only steps to less than this count as progress
_SOLVE_TOLERANCE = 1e-3
_LEAST_SHARE = 1e-6  # of the largest load: smaller loads count as this, which limits how ρ grows in a step
_WIDEST = 1e8  # the largest ρ
_GRID_START = 1e-3  # of λ_fuse: the largest strength that a grid may begin with, after zero
_ROUNDING = 100.0  # times the possible rounding: a smaller bound cannot be told from zero


@dataclass(frozen=True, eq=False)
class FusionThreshold:
    """Proved bounds on the strength from which each component has one model.

    Parameters
    ----------
    lower, upper : (C,) float64
        For each of the C components, in the numbering of ``graph.component``.
    flows : (E, P) float64
        The balanced flows U whose largest load is ``upper``.
    weights : (T, P) float64
        The fused weights themselves.
    """

    lower: FloatArray
    upper: FloatArray
    flows: FloatArray
    weights: FloatArray

    def __repr__(self) -> str:
        low, high = self.bracket
        fused = f"each fused from between {low:.4g} and {high:.4g} on"
        return shown(self, counted(len(self.lower), "component"), fused)

    @property
    def bracket(self) -> tuple[float, float]:
        """Bounds on the strength from which every component has one model."""
        return float(self.lower.max()), float(self.upper.max())


def fused_weights(statistics: Statistics, graph: TaskGraph) -> FloatArray:
    """Return the limit of a large strength: minimum-norm least squares of each component's pooled rows.

    Returns
    -------
    (T, P) float64
        The same in all tasks of a component.

    Examples
    --------
    >>> from ccmtl_core import SufficientStatistics, TaskDataset
    >>> data = TaskDataset.from_arrays([[[1.0]], [[1.0]], [[1.0]]], [[0.0], [2.0], [5.0]])
    >>> graph = TaskGraph([[0, 1]], [2], n_tasks=3)
    >>> fused_weights(SufficientStatistics.from_dataset(data), graph).ravel()
    array([1., 1., 5.])
    """
    return _fused_weights(_on(graph, statistics), graph)


def single_task_cuts(statistics: Statistics, graph: TaskGraph) -> FloatArray:
    """Return 2 ‖g_t‖ / Σ_{e ∋ t} m_e, (T,): below it task t, beside fused others, has weights of its own.

    It is zero for a task without edges.

    Examples
    --------
    >>> from ccmtl_core import SufficientStatistics, TaskDataset
    >>> data = TaskDataset.from_arrays([[[1.0]], [[1.0]]], [[0.0], [2.0]])
    >>> single_task_cuts(SufficientStatistics.from_dataset(data), TaskGraph([[0, 1]], [2], n_tasks=2))
    array([1., 1.])
    """
    problem = FusionProblem(_on(graph, statistics), graph, 0.0)
    return _cuts(problem, -problem.loss_gradient(_fused_weights(problem.quadratic, graph)))


def fusion_threshold(statistics: Statistics, graph: TaskGraph, *, ratio: float = RATIO) -> FusionThreshold:
    """Bound, from both sides, the strength from which each component of the graph has one model.

    Parameters
    ----------
    statistics : SufficientStatistics or TriangularStatistics
        T tasks with P features.
    graph : TaskGraph
        On the same T tasks.
    ratio : float
        Of upper to lower bound, at which to stop; above 1. Bounds that no longer come closer stay as they
        are, and so do those of tasks that agree already up to rounding: lower 0, upper tiny.

    Returns
    -------
    FusionThreshold
        The bounds, by component.

    Raises
    ------
    ParameterError
        A ratio of 1 or less; data that is none, or a graph that is none.

    Examples
    --------
    >>> from ccmtl_core import SufficientStatistics, TaskDataset
    >>> data = TaskDataset.from_arrays([[[1.0]], [[1.0]]], [[0.0], [2.0]])
    >>> statistics = SufficientStatistics.from_dataset(data)
    >>> bounds = fusion_threshold(statistics, TaskGraph([[0, 1]], [2], n_tasks=2))
    >>> np.round(bounds.bracket, 6)
    array([1., 1.])
    """
    if not is_real(ratio) or not ratio > 1.0:
        raise ParameterError(f"ratio must be above 1, not {ratio!r}")
    bounds = FusionBounds(statistics, graph)
    bounds.tighten(ratio)
    return bounds.found()


def strength_grid(statistics: Statistics, graph: TaskGraph, n: int = 21) -> FloatArray:
    """Return strengths that span from each task alone to everything fused.

    After zero comes a geometric grid up to the upper bound on λ_fuse. It begins at the median of the positive
    single-task cuts, because a few tasks can push λ_fuse far above the strengths at which most tasks fuse; or
    at a thousandth of the upper bound if that is less, because similar tasks fuse with their neighbours at
    far smaller strengths than with all.

    Parameters
    ----------
    statistics, graph
        As for :func:`fusion_threshold`.
    n : int
        Number of strengths, 3 or more, zero included.

    Returns
    -------
    (n,) float64
        Increasing. Zero alone, (1,), where no task differs from the fused weights by more than rounding.

    Raises
    ------
    ParameterError
        Fewer than three strengths.

    Examples
    --------
    >>> from ccmtl_core import SufficientStatistics, TaskDataset
    >>> data = TaskDataset.from_arrays([[[1.0]]] * 3, [[0.0], [2.0], [30.0]])
    >>> graph = TaskGraph([[0, 1], [1, 2]], [2, 2], n_tasks=3)
    >>> strength_grid(SufficientStatistics.from_dataset(data), graph, 3).round(2)
    array([ 0.  ,  0.02, 19.33])
    """
    if not is_whole(n) or n < 3:
        raise ParameterError(f"a grid needs at least 3 strengths, not {n!r}")
    bounds = fusion_threshold(statistics, graph)
    cuts = single_task_cuts(statistics, graph)
    most = bounds.bracket[1]
    telling = cuts[cuts > EPS * most]
    if bounds.bracket[0] == 0.0 or most < MIN_STRENGTH or not len(telling):
        return np.zeros(1)
    least = max(min(float(np.median(telling)), _GRID_START * most), MIN_STRENGTH)
    return np.concatenate([[0.0], np.geomspace(least, most, n - 1)])


def _on(graph: TaskGraph, data: Statistics) -> Quadratic:
    """Return the numbers of statistics as blocks; refuse data, or a graph, of another type."""
    quadratic = statistics_of(data).quadratic
    check_kind(graph, "graph", TaskGraph)
    return quadratic


def _fused_weights(quadratic: Quadratic, graph: TaskGraph) -> FloatArray:
    fused = quadratic.summed(graph.component, graph.n_components).least_squares.weights
    return fused[graph.component]


class FusionBounds:
    """The bounds of :func:`fusion_threshold`, which come closer from step to step.

    Parameters
    ----------
    statistics, graph
        As for :func:`fusion_threshold`.
    """

    def __init__(self, statistics: Statistics, graph: TaskGraph) -> None:
        quadratic = _on(graph, statistics)
        self._graph, self._order = graph, graph.locality_order()
        self.problem = problem = FusionProblem(quadratic, graph, 0.0).reordered(self._order)
        quadratic, graph = problem.quadratic, problem.graph
        self.component = graph.component
        self.edge_component = graph.component[problem.head]
        self.m = graph.multiplicity.astype(np.float64)
        self.weights = _fused_weights(quadratic, graph)
        forces = -problem.loss_gradient(self.weights)
        size = np.sqrt(self._sum_tasks(np.einsum("tp,tp->t", forces, forces)))
        self.size = np.where(size > 0.0, size, 1.0)  # components are solved together, each on its own scale
        self.g = forces / self.size[self.component, None]
        self.rounding = self._rounding() / self.size
        self.lower = np.zeros(graph.n_components)
        np.maximum.at(self.lower, self.component, _cuts(problem, self.g))
        self.lower = np.where(self.lower > _ROUNDING * self.rounding, self.lower - 2.0 * self.rounding, 0.0)
        self.upper = np.where(np.bincount(self.component) > 1, np.inf, 0.0)
        self.flows = np.zeros((len(self.m), quadratic.n_features))
        self._rho, self._phi = np.ones(len(self.m)), np.zeros_like(self.g)
        self._steps = 0
        self._distance = np.full(graph.n_components, np.inf)  # of the bounds, when they last came closer
        self._since = np.zeros(graph.n_components, dtype=np.int64)  # steps since then

    def fuses_all(self, strength: float) -> bool:
        """Whether each component provably has one model at a strength; takes steps until the bounds tell."""
        while np.all(self.lower * self.size <= strength) and np.any(self._is_open(RATIO)):
            if np.all(self.upper * self.size <= strength):
                return True
            self._step()
        return bool(np.all(self.upper * self.size <= strength))

    def tighten(self, ratio: float) -> None:
        """Take steps until the bounds of each component are within ``ratio``, or come no closer."""
        while np.any(self._is_open(ratio)):
            self._step()

    def _is_open(self, ratio: float) -> BoolArray:
        """(C,) Whether bounds are not within ``ratio``, and came closer in the last 1 / (ratio - 1) steps."""
        is_tight = (self.upper <= ratio * self.lower) | (self.upper <= _ROUNDING * self.rounding)
        return ~is_tight & (self._since * (ratio - 1.0) < 1.0) & (self._steps < _MOST_STEPS)

    @cached_property
    def _forest(self) -> Forest:
        return spanning_forest(self.problem.graph)

    @cached_property
    def _multigrid(self) -> Multigrid:
        problem = self.problem
        no_data = np.zeros((problem.quadratic.n_tasks, *[problem.quadratic.n_features] * 2))
        spectrum = PooledSpectrum.of(no_data, self.component, problem.graph.n_components)
        return Multigrid(problem.graph.edges, no_data, spectrum)

    def _step(self) -> None:
        problem, conductance = self.problem, self.m * self._rho
        self._multigrid.update(conductance)
        solve = self._multigrid.apply, self._multigrid.precondition, self.g
        self._phi = flexible_cg(*solve, x0=self._phi, rtol=_SOLVE_TOLERANCE).x
        D = problem.differences(self._phi)
        self._update_lower_bound(self._phi, D)
        U = conductance[:, None] * D
        edge_kernels.send_to_roots(*self._forest, self.g - problem.divergence(U), U)
        share = self._update_upper_bound(U)
        self._rho = np.minimum(self._rho / np.sqrt(np.maximum(share, _LEAST_SHARE)), _WIDEST)
        self._note_progress()

    def _note_progress(self) -> None:
        distance = self.upper - self.lower
        closer = distance < _CLOSER * self._distance
        self._distance = np.where(closer, distance, self._distance)
        self._since = np.where(closer, 0, self._since + 1)
        self._steps += 1

    def _update_lower_bound(self, phi: FloatArray, D: FloatArray) -> None:
        """Raise ``lower`` to 2 ⟨g, φ⟩ / Σ m ‖D φ‖, less what rounding can have added, where that is more."""
        reach = np.zeros(len(self.lower))
        np.maximum.at(reach, self.component, row_norms(phi))
        gained = self._sum_tasks(np.einsum("tp,tp->t", self.g, phi)) - 2.0 * reach * self.rounding
        lengths = np.bincount(self.edge_component, self.m * row_norms(D), len(self.lower))
        bound = np.divide(2.0 * gained, lengths, out=np.zeros_like(gained), where=lengths > 0.0)
        self.lower = np.maximum(self.lower, (1.0 - 1e-12) * bound)

    def _update_upper_bound(self, U: FloatArray) -> FloatArray:
        """Lower ``upper`` to the largest load of balanced flows, where that is less.

        Returns the load of each edge as a share of the largest in its component, (E,).
        """
        load = 2.0 * row_norms(U) / self.m
        most = np.zeros_like(self.upper)
        np.maximum.at(most, self.edge_component, load)
        bound = (1.0 + 1e-12) * most + 2.0 * self.rounding
        better = bound < self.upper
        self.upper = np.where(better, bound, self.upper)
        np.copyto(self.flows, U, where=better[self.edge_component, None])
        most = most[self.edge_component]
        return np.divide(load, most, out=np.ones_like(load), where=most > 0.0)

    def _rounding(self) -> FloatArray:
        """(C,) How much rounding can have moved the forces of a component, and their sum, ideally zero."""
        quadratic = self.problem.quadratic
        terms = times(np.abs(quadratic.gram), np.abs(self.weights))
        terms += np.abs(quadratic.xty)
        rounding = 4.0 * (quadratic.n_features + 2) * EPS * self._sum_tasks(row_norms(terms))
        left = self._sum_tasks(self.problem.loss_gradient(self.weights))
        return rounding + row_norms(left)

    def _sum_tasks(self, values: FloatArray) -> FloatArray:
        return group_sums(self.component, values, self.problem.graph.n_components)

    def found(self) -> FusionThreshold:
        """The bounds in the numbering of the graph that was given."""
        graph, order = self._graph, self._order
        component = np.empty(graph.n_components, dtype=np.int64)
        component[graph.component[order]] = self.component
        weights, flows = np.empty_like(self.weights), np.empty_like(self.flows)
        weights[order] = self.weights
        edge, sign = graph.edges_in(order)
        flows[edge] = (sign * self.size[self.edge_component])[:, None] * self.flows
        lower, upper = self.lower * self.size, self.upper * self.size
        return FusionThreshold(lower[component], upper[component], flows, weights)


def _cuts(problem: FusionProblem, forces: FloatArray) -> FloatArray:
    """2 ‖g_t‖ / Σ_{e ∋ t} m_e of each task, (T,)."""
    T, m = problem.quadratic.n_tasks, problem.graph.multiplicity
    held = np.bincount(problem.head, m, T) + np.bincount(problem.tail, m, T)
    cuts: FloatArray = np.divide(2.0 * row_norms(forces), held, out=np.zeros(T), where=held > 0.0)
    return cuts
