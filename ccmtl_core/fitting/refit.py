"""A fitted model and grown statistics in, the model of all rows out: no old row is read again."""

from __future__ import annotations

import numpy as np

from ccmtl_core.base.arguments import check_kind
from ccmtl_core.base.arrays import is_real
from ccmtl_core.base.exceptions import DataError, ParameterError
from ccmtl_core.base.types import FloatArray
from ccmtl_core.choices.single_task import start_weights
from ccmtl_core.fitting.fit import FitResult, fit
from ccmtl_core.graph.knn_graph import TaskGraph
from ccmtl_core.model.ccmtl_model import CCMTLModel
from ccmtl_core.solver.report import ProgressCallback
from ccmtl_core.statistics.inputs import Statistics, statistics_of
from ccmtl_core.statistics.merging import merge_statistics
from ccmtl_core.statistics.sufficient_statistics import SufficientStatistics
from ccmtl_core.statistics.triangular_statistics import TriangularStatistics


def append_statistics(
    old: SufficientStatistics, new: SufficientStatistics, *, forgetting: float = 1.0
) -> SufficientStatistics:
    """Add new rows to old ones, which may count less than they did.

    Parameters
    ----------
    old, new : SufficientStatistics
        Of the same features; tasks that ``old`` lacks come after its own.
    forgetting : float
        From 0 to 1: what an old row counts for from now on, beside 1 for a new row. Used at each appending,
        it makes the weight of a row fall geometrically.

    Raises
    ------
    ParameterError
        A factor outside [0, 1]; statistics that are none, or of two kinds.
    DataError
        Other features.

    Examples
    --------
    >>> from ccmtl_core import TaskDataset
    >>> rows = TaskDataset.from_arrays([[[1.0]]], [[2.0]], task_ids=["a"])
    >>> statistics = SufficientStatistics.from_dataset(rows)
    >>> append_statistics(statistics, statistics, forgetting=0.5).xty
    array([[3.]])
    """
    check_kind(old, "old", SufficientStatistics, TriangularStatistics)
    check_kind(new, "new", type(old))
    if not is_real(forgetting) or not 0.0 <= forgetting <= 1.0:
        raise ParameterError(f"forgetting must be from 0 to 1, not {forgetting!r}")
    kept = old if forgetting == 1.0 else old.scaled(forgetting)
    same = (old.task_ids, old.feature_names) == (new.task_ids, new.feature_names)
    return kept + new if same else merge_statistics([kept, new])


def refit(
    previous: FitResult | CCMTLModel,
    statistics: Statistics,
    *,
    fusion_strength: float,
    n_neighbors: int = 10,
    tolerance: float = 1e-4,
    solver: str = "auto",
    graph: TaskGraph | None = None,
    fit_intercept: bool = False,
    loss_scaling: str = "none",
    start: str = "least_squares",
    metric: str = "euclidean",
    on_progress: ProgressCallback | None = None,
) -> FitResult:
    """Fit anew from where an earlier fit ended.

    The result is that of :func:`ccmtl_core.fit`, certified alike. What it saves is reading old rows. The old
    weights are the start where the old graph is kept; on a graph that is rebuilt they are far from the
    solution, and a fit from the least squares takes no more rounds (docs/decisions, 20).

    Parameters
    ----------
    previous : FitResult or CCMTLModel
        Of the same features. With ``graph``, its tasks begin from their old weights, others from their own
        least squares; tasks that are not among ``statistics`` are left out.
    statistics : SufficientStatistics or TriangularStatistics
        Of all rows, old and new: see :func:`append_statistics`.
    fusion_strength, n_neighbors, tolerance, solver, fit_intercept, loss_scaling, start, metric, on_progress
        As in :func:`ccmtl_core.fit`.
    graph : TaskGraph, optional
        ``previous.graph`` keeps the old graph, if the tasks are the same ones; by default it is rebuilt.

    Raises
    ------
    DataError
        Other features than the earlier fit's, or a graph on other tasks.
    ParameterError
        As :func:`ccmtl_core.fit`.

    Examples
    --------
    >>> from ccmtl_core import TaskDataset
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2))
    >>> data = TaskDataset.from_long(X, X.sum(axis=1) + rng.normal(size=60), [t % 6 for t in range(60)])
    >>> old, new = SufficientStatistics.by_fold(data, np.arange(60) >= 48, 2)
    >>> first = fit(old, fusion_strength=0.5, n_neighbors=2)
    >>> refit(first, append_statistics(old, new), fusion_strength=0.5, n_neighbors=2).report.status.value
    'converged'
    """
    check_kind(previous, "previous", FitResult, CCMTLModel)
    statistics = statistics_of(statistics)
    old = _continued(previous.model if isinstance(previous, FitResult) else previous, statistics)
    return fit(
        statistics,
        fusion_strength=fusion_strength,
        n_neighbors=n_neighbors,
        tolerance=tolerance,
        solver=solver,
        graph=graph,
        fit_intercept=fit_intercept,
        loss_scaling=loss_scaling,
        start=start,
        metric=metric,
        initial_weights=None if graph is None else old,
        on_progress=on_progress,
    )


def _continued(model: CCMTLModel, statistics: Statistics) -> FloatArray:
    """Weights (T, P) of the model where it has them, least squares elsewhere."""
    if model.feature_names != statistics.feature_names:
        names = f"{', '.join(model.feature_names)} and {', '.join(statistics.feature_names)}"
        raise DataError(f"the earlier model has other features: {names}")
    if model.task_ids == statistics.task_ids:
        return model.weights
    row = {name: number for number, name in enumerate(model.task_ids)}
    old = np.array([row.get(name, -1) for name in statistics.task_ids], dtype=np.int64)
    start = start_weights(statistics)
    start[old >= 0] = model.weights[old[old >= 0]]
    return start
