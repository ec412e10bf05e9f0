"""Apply the choices about a model: prepare what the solver fits, and translate its weights back.

Four choices that the paper does not have, each switched on its own (docs/decisions, 15 and 19):

- an intercept per task outside the fusion penalty: the solver gets centred statistics, and b = ȳ − x̄ᵀw;
- losses divided by each task's spread of y, or of what a simple model leaves of it, so that tasks of large
  numbers do not decide alone;
- a start, and with it the graph, from weights shrunk to the pooled ones by a ridge;
- graph and fusion in the metric of the covariance that the tasks' weights have: other features are fitted.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ccmtl_core.base.exceptions import ParameterError
from ccmtl_core.base.types import FloatArray, IntArray
from ccmtl_core.choices.feature_basis import from_basis, in_basis, to_basis
from ccmtl_core.choices.random_coefficients import random_coefficients
from ccmtl_core.choices.single_task import shrunk_weights, start_weights
from ccmtl_core.statistics.centring import Means
from ccmtl_core.statistics.gram_checks import refuse_huge
from ccmtl_core.statistics.inputs import Statistics

LOSS_SCALINGS = ("none", "spread", "residual")
STARTS = ("least_squares", "shrunk")
METRICS = ("euclidean", "mahalanobis")
LEAST_SPREAD = 0.1
"""Of the median spread: a nearly constant task counts at most ten times as much as a typical one."""
START_SHRINKAGE = 1.0


@dataclass(frozen=True)
class ModelChoices:
    """What is fitted, beside how strongly it is fused; by default what the paper fits.

    Parameters
    ----------
    fit_intercept : bool
        An intercept per task, outside the fusion penalty.
    loss_scaling : {"none", "spread", "residual"}
        "spread": divide each task's loss by the standard deviation of its y, in units of the median one;
        "residual": by that of its residuals around the expected random coefficients.
    start : {"least_squares", "shrunk"}
        "shrunk": start and graph from each task shrunk to the pooled weights.
    metric : {"euclidean", "mahalanobis"}
        "mahalanobis": distances between weights, in graph and penalty, are √((w_i − w_j)ᵀ S⁻¹ (w_i − w_j)),
        S the covariance of random coefficients (:mod:`.random_coefficients`); start and graph are
        made of their posterior means, whatever ``start`` says.

    Raises
    ------
    ParameterError
        A choice that does not exist.

    Examples
    --------
    >>> from ccmtl_core import SufficientStatistics, TaskDataset
    >>> data = TaskDataset.from_arrays([[[0.0], [1.0]]] * 2, [[5.0, 6.0], [8.0, 8.0]])
    >>> prepared = ModelChoices(fit_intercept=True).prepare(SufficientStatistics.from_dataset(data))
    >>> prepared.statistics.gram.ravel(), prepared.start.ravel()
    (array([0.5, 0.5]), array([1., 0.]))
    >>> prepared.intercept(prepared.start)
    array([5., 8.])
    """

    fit_intercept: bool = False
    loss_scaling: str = "none"
    start: str = "least_squares"
    metric: str = "euclidean"

    def __post_init__(self) -> None:
        if not isinstance(self.fit_intercept, bool | np.bool):
            raise ParameterError(f"fit_intercept must be True or False, not {self.fit_intercept!r}")
        object.__setattr__(self, "fit_intercept", bool(self.fit_intercept))
        for name, known in (("loss_scaling", LOSS_SCALINGS), ("start", STARTS), ("metric", METRICS)):
            if getattr(self, name) not in known:
                raise ParameterError(f"{name} must be one of {', '.join(known)}; not {getattr(self, name)!r}")

    def as_dict(self) -> dict[str, Any]:
        """The choices by name, as ``fit`` takes them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def prepare(self, statistics: Statistics) -> SolverInput:
        """From the statistics of the rows to those that the solver fits.

        Raises
        ------
        DataError
            An intercept or a scaling is asked for, and the statistics hold no sums; values too large to fit.
        """
        refuse_huge(statistics.task_ids, statistics.feature_names, statistics.gram, statistics.yty)
        if self.loss_scaling == "spread":
            statistics = statistics.scaled(inverse_spread(statistics))
        elif self.loss_scaling == "residual":
            statistics = statistics.scaled(self._inverse_residual(statistics))
        means = statistics.means if self.fit_intercept else None
        fitted = statistics.centred if self.fit_intercept else statistics
        if self.metric == "mahalanobis":
            prior = random_coefficients(fitted, self._free_rows(fitted))
            start = to_basis(prior.expected_weights(fitted), prior.root)
            return SolverInput(in_basis(fitted, prior.root), start, means, prior.root)
        shrunk = self.start == "shrunk"
        start = shrunk_weights(fitted, START_SHRINKAGE) if shrunk else start_weights(fitted)
        return SolverInput(fitted, start, means)

    def _free_rows(self, statistics: Statistics) -> IntArray:
        """Rows of each task less the one that its means take, (T,)."""
        return np.maximum(statistics.n_samples - self.fit_intercept, 0)

    def _inverse_residual(self, statistics: Statistics) -> FloatArray:
        """As :func:`inverse_spread`, of the residuals around expected random coefficients."""
        fitted = statistics.centred if self.fit_intercept else statistics
        prior = random_coefficients(fitted, self._free_rows(fitted))
        weight = statistics.n_samples if statistics.weight is None else statistics.weight
        return _inverse(fitted.squared_error(prior.expected_weights(fitted)), weight)


@dataclass(frozen=True, eq=False)
class SolverInput:
    """What the solver needs, and the way back.

    Parameters
    ----------
    statistics : SufficientStatistics or TriangularStatistics
        Of the rows as the choices see them; for the solver alone, errors are those of the rows themselves.
    start : (T, P) float64
        Where the solve starts, and what the graph is made of.
    means : Means or None
        Of the rows, with an intercept.
    basis : (P, P) float64 or None
        L, upper triangular, where the solver's weights z are not those of the features: w = L z.
    """

    statistics: Statistics
    start: FloatArray
    means: Means | None
    basis: FloatArray | None = None

    def weights(self, solved: FloatArray) -> FloatArray:
        """The features' weights (T, P) of solved ones; equal ones stay bitwise equal."""
        return solved if self.basis is None else from_basis(solved, self.basis)

    def solver_weights(self, weights: FloatArray) -> FloatArray:
        """What the solver calls weights (T, P) of the features."""
        return weights if self.basis is None else to_basis(weights, self.basis)

    def intercept(self, weights: FloatArray) -> FloatArray:
        """Intercepts that go with the features' weights (T, P), (T,); zero without an intercept."""
        return np.zeros(len(weights)) if self.means is None else self.means.intercept(weights)


def inverse_spread(statistics: Statistics) -> FloatArray:
    """How often the rows of each task count when its loss is divided by its spread of y.

    Returns
    -------
    (T,) float64
        median / max(spread, median / 10), with the median over the tasks whose y varies; 1 if none does.

    Examples
    --------
    >>> from ccmtl_core import SufficientStatistics, TaskDataset
    >>> data = TaskDataset.from_arrays([[[0.0], [0.0]]] * 4, [[0.0, 2.0], [1.0, 9.0], [4.0, 8.0], [3.0, 3.0]])
    >>> inverse_spread(SufficientStatistics.from_dataset(data))
    array([ 2. ,  0.5,  1. , 10. ])
    """
    return _inverse(statistics.centred.yty, statistics.means.weight)


def _inverse(squares: FloatArray, weight: FloatArray | IntArray) -> FloatArray:
    """median / max(spread, median / 10) of root mean squares, (T,)."""
    square = np.divide(squares, weight, out=np.zeros(len(weight)), where=weight > 0)
    spread = np.sqrt(square)
    if not spread.any():
        return np.ones_like(spread)
    median = float(np.median(spread[spread > 0]))
    factor: FloatArray = median / np.maximum(spread, LEAST_SPREAD * median)
    return factor
