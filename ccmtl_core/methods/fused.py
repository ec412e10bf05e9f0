"""Methods that pull similar tasks together along one graph: CCMTL, its rivals SRMTL and FuseMTL, and ADMM.

All take the graph of the k nearest neighbours of each task's own least squares, each directed pair counted,
as the paper's model does.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Self

import numpy as np
from sklearn.base import clone

from ccmtl_core.base.types import FloatArray
from ccmtl_core.choices.model_choices import LossScaling, Metric, ModelChoices, SolverInput
from ccmtl_core.fitting.fit import fit
from ccmtl_core.fitting.path import fit_path
from ccmtl_core.graph.knn_graph import TaskGraph
from ccmtl_core.methods.estimator import Solution, TaskRegressor, loss
from ccmtl_core.methods.splitting import split
from ccmtl_core.solver.objective import FusionProblem, row_norms
from ccmtl_core.solver.report import SolveStatus
from ccmtl_core.solver.systems.cg import flexible_cg
from ccmtl_core.solver.systems.multigrid import Multigrid
from ccmtl_core.solver.systems.pooled_spectrum import PooledSpectrum
from ccmtl_core.statistics.inputs import Statistics


class _Fused(TaskRegressor):
    """A method with a strength and a graph; at strength 0, or without edges, each task alone."""

    def __init__(
        self, fusion_strength: float = 1.0, n_neighbors: int = 10, tol: float = 1e-6, max_iter: int = 20_000
    ) -> None:
        self.fusion_strength = fusion_strength
        self.n_neighbors = n_neighbors
        self.tol = tol
        self.max_iter = max_iter

    def _solve(self, statistics: Statistics, start: FloatArray | None) -> Solution:
        choices = ModelChoices(n_neighbors=self.n_neighbors)
        prepared = choices.prepare(statistics)
        graph = choices.graph(prepared)
        if self.fusion_strength == 0.0 or not len(graph.edges):
            return Solution(prepared.start, loss(statistics, prepared.start), 1, True)
        return self._fuse(prepared, graph, prepared.start if start is None else start)

    @abstractmethod
    def _fuse(self, prepared: SolverInput, graph: TaskGraph, start: FloatArray) -> Solution:
        """Minimise along the edges of the graph."""


class SRMTL(_Fused):
    """Neighbours pulled together by squared distances.

        1/2 Σ_t ‖X_t w_t − y_t‖² + λ/2 Σ_{(i,j) ∈ G} ‖w_i − w_j‖₂²
                            (structure-regularised: Zhou, Chen & Ye, MALSAR manual, 2011)

    One linear system, solved by conjugate gradients with the multigrid of CCMTL until the energy norm of the
    residual is ``tol`` of the first. It starts from each task's least squares or, where those cost more than
    1 / ``tol`` times as much, from one model per component. At λ = 0 each task alone, for enormous λ one
    model per component.

    Parameters
    ----------
    fusion_strength : float
        λ ≥ 0.
    n_neighbors : int
        k of the graph.
    tol, max_iter
        As above.

    Examples
    --------
    >>> SRMTL(1.0).fit([[1.0], [1.0]], [0.0, 4.0], ["a", "b"]).coef_.ravel().round(3)
    array([1.6, 2.4])
    """

    def _fuse(self, prepared: SolverInput, graph: TaskGraph, start: FloatArray) -> Solution:
        statistics, problem = prepared.statistics, FusionProblem(prepared.statistics.quadratic, graph, 0.0)
        weights = self.fusion_strength * graph.multiplicity.astype(np.float64)
        spectrum = PooledSpectrum.of(statistics.gram, graph.component, graph.n_components)
        system = Multigrid(graph.edges, statistics.gram, spectrum)
        system.update(weights)

        def objective(W: FloatArray) -> float:
            return loss(statistics, W) + 0.5 * float(weights @ row_norms(problem.differences(W)) ** 2)

        pooled = _pooled(problem, spectrum, start)
        if objective(pooled) < self.tol * objective(start):  # whose energy would hide the errors of one model
            start = pooled
        found = flexible_cg(
            system.apply, system.precondition, np.asarray(statistics.xty), x0=start,
            rtol=self.tol, max_iterations=self.max_iter,
        )  # fmt: skip
        best = min(found.x, start, key=objective)  # the start where rounding alone parts neighbours
        return Solution(best, objective(best), found.iterations, found.converged)


class FuseMTL(_Fused):
    """Neighbours pulled together entry by entry, so that single weights become equal.

        1/2 Σ_t ‖X_t w_t − y_t‖² + λ/2 Σ_{(i,j) ∈ G} ‖w_i − w_j‖₁
                            (Chen et al., Ann. Appl. Stat. 6, 2012; Zhou, Liu, Narayan & Ye, KDD 2012)

    Alternating direction method of multipliers, until the estimated relative gap is ``tol``
    (:mod:`ccmtl_core.methods.splitting`). At λ = 0 each task alone, for enormous λ one model per component.

    Parameters
    ----------
    fusion_strength, n_neighbors, tol, max_iter
        As in :class:`SRMTL`.

    Examples
    --------
    >>> FuseMTL(1.0).fit([[1.0], [1.0]], [0.0, 4.0], ["a", "b"]).coef_.ravel().round(3)
    array([1., 3.])
    """

    def _fuse(self, prepared: SolverInput, graph: TaskGraph, start: FloatArray) -> Solution:
        problem = FusionProblem(prepared.statistics.quadratic, graph, self.fusion_strength)
        return split(problem, start, self.tol, self.max_iter, by_entry=True)


class ADMM(_Fused):
    """The objective of CCMTL by the solver of the network lasso, for comparison.

        1/2 Σ_t ‖X_t w_t − y_t‖² + λ/2 Σ_{(i,j) ∈ G} ‖w_i − w_j‖₂     (Hallac, Leskovec & Boyd, KDD 2015)

    Until the estimated relative gap is ``tol`` (:mod:`ccmtl_core.methods.splitting`).

    Parameters
    ----------
    fusion_strength, n_neighbors, tol, max_iter
        As in :class:`SRMTL`.

    Examples
    --------
    >>> ADMM(1.0).fit([[1.0], [1.0]], [0.0, 4.0], ["a", "b"]).coef_.ravel().round(3)
    array([1., 3.])
    """

    def _fuse(self, prepared: SolverInput, graph: TaskGraph, start: FloatArray) -> Solution:
        problem = FusionProblem(prepared.statistics.quadratic, graph, self.fusion_strength)
        return split(problem, start, self.tol, self.max_iter)


class CCMTL(TaskRegressor):
    """Convex clustering of the tasks' weights, as :func:`ccmtl_core.fit` solves it.

        1/2 Σ_t ‖X_t w_t − y_t‖² + λ/2 Σ_{(i,j) ∈ G} ‖w_i − w_j‖₂    (He, Alesiani & Shaker, AAAI 2019)

    Until the certified relative gap is ``tol``. At λ = 0 each task alone, for enormous λ one model per
    component. With the choices of :class:`ccmtl_core.ModelChoices` the loss, the intercepts and the metric of
    the penalty are theirs, and ``objective_`` is that of the problem in this metric.

    Parameters
    ----------
    fusion_strength : float
        λ ≥ 0.
    n_neighbors, fit_intercept, loss_scaling, metric
        As in :class:`ccmtl_core.ModelChoices`; by default the paper's model.
    tol : float
        As above.

    Examples
    --------
    >>> CCMTL(1.0).fit([[1.0], [1.0]], [0.0, 4.0], ["a", "b"]).coef_.ravel().round(3)
    array([1., 3.])
    """

    def __init__(
        self,
        fusion_strength: float = 1.0,
        n_neighbors: int = 10,
        fit_intercept: bool = False,
        loss_scaling: LossScaling = "none",
        metric: Metric = "euclidean",
        tol: float = 1e-6,
    ) -> None:
        self.fusion_strength = fusion_strength
        self.n_neighbors = n_neighbors
        self.fit_intercept = fit_intercept
        self.loss_scaling = loss_scaling
        self.metric = metric
        self.tol = tol

    def along(
        self, statistics: Statistics, grid: Sequence[Mapping[str, float]], *, warm: bool = False
    ) -> Iterator[Self]:
        """Fit at each of several parameters; successive ones that differ in strength alone share one path."""
        for others, run in groupby(grid, _without_strength):
            base = clone(self).set_params(**others)
            base._check_parameters()
            strengths = [parameters.get("fusion_strength", base.fusion_strength) for parameters in run]
            path = fit_path(statistics, strengths, choices=base._choices, tolerance=base.tol)
            for number, (point, strength) in enumerate(zip(path.points, strengths, strict=True)):
                model, is_done = path.model(number), point.status is SolveStatus.CONVERGED
                found = Solution(
                    model.weights.copy(), point.objective, point.rounds, is_done, model.intercept.copy()
                )
                yield clone(base).set_params(fusion_strength=strength)._take(statistics, found)

    @property
    def _choices(self) -> ModelChoices:
        return ModelChoices(self.fit_intercept, self.loss_scaling, self.metric, self.n_neighbors)

    def _solve(self, statistics: Statistics, start: FloatArray | None) -> Solution:
        result = fit(
            statistics,
            self.fusion_strength,
            choices=self._choices,
            tolerance=self.tol,
            initial_weights=start,
        )
        report, model = result.report, result.model
        is_done = report.status is SolveStatus.CONVERGED
        return Solution(model.weights.copy(), report.objective, report.rounds, is_done, model.intercept)


def _without_strength(parameters: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in parameters.items() if name != "fusion_strength"}


def _pooled(problem: FusionProblem, spectrum: PooledSpectrum, start: FloatArray) -> FloatArray:
    """The best weights that tasks of a component share; along directions without data the start's mean."""
    mean = spectrum.mean(start)
    force = -spectrum.mean(problem.loss_gradient(mean[spectrum.component])) * spectrum.size[:, None]
    inverse = np.divide(1.0, spectrum.values, out=np.zeros_like(spectrum.values), where=~spectrum.cut)
    along = inverse * np.einsum("cpa,cp->ca", spectrum.vectors, force / spectrum.scale)
    step = np.einsum("cpa,ca->cp", spectrum.vectors, along) / spectrum.scale
    return np.asarray((mean + step)[spectrum.component])
