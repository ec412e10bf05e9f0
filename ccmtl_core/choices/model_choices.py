"""Apply the choices about a model: prepare what the solver fits, and translate its weights back.

Beyond the paper (docs/decisions, 15 and 19), each switched on its own:

- an intercept per task outside the fusion penalty: the solver gets centred statistics, and b = ȳ − x̄ᵀw;
- losses divided by each task's spread of y, so that tasks of large numbers do not decide alone;
- graph and fusion in the metric of the covariance that the tasks' weights have: other features are fitted.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypedDict, get_args

import numpy as np

from ccmtl_core.base.arguments import check_kind
from ccmtl_core.base.exceptions import ParameterError
from ccmtl_core.base.near_matches import NearMatches
from ccmtl_core.base.types import FloatArray
from ccmtl_core.choices.feature_basis import from_basis, in_basis, independent_features, to_basis
from ccmtl_core.choices.random_coefficients import random_coefficients
from ccmtl_core.choices.single_task import start_weights
from ccmtl_core.graph.knn_graph import TaskGraph, check_neighbors, nearest_neighbour_graph
from ccmtl_core.model.ccmtl_model import CCMTLModel
from ccmtl_core.statistics.centring import Means
from ccmtl_core.statistics.gram_checks import refuse_huge
from ccmtl_core.statistics.inputs import Statistics

LossScaling = Literal["none", "spread"]
Metric = Literal["euclidean", "mahalanobis"]
LEAST_SPREAD = 0.1
"""Of the median spread: a nearly constant task counts at most ten times as much as a typical one."""


class ChoiceKeywords(TypedDict, total=False):
    """The fields of :class:`ModelChoices`, for functions that take them by name."""

    fit_intercept: bool
    loss_scaling: LossScaling
    metric: Metric
    n_neighbors: int


@dataclass(frozen=True)
class ModelChoices:
    """What is fitted, beside how strongly it is fused; by default what the paper fits.

    Parameters
    ----------
    fit_intercept : bool
        Give each task an intercept of its own, which the fusion leaves alone.
    loss_scaling : {"none", "spread"}
        What each task's loss is divided by: nothing, or the standard deviation of its y, so that tasks of
        large numbers do not decide alone.
    metric : {"euclidean", "mahalanobis"}
        How far weights are from each other, in the graph and in the penalty. "mahalanobis": in units of the
        covariance that the tasks' weights have, so that features of any scale, and any mixture of them, count
        by how much they vary between tasks.
    n_neighbors : int
        Neighbours of each task in the graph of similar tasks.

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
    >>> prepared.model(prepared.start).intercept
    array([5., 8.])
    """

    fit_intercept: bool = False
    loss_scaling: LossScaling = "none"
    metric: Metric = "euclidean"
    n_neighbors: int = 10

    def __post_init__(self) -> None:
        if not isinstance(self.fit_intercept, bool | np.bool):
            raise ParameterError(f"fit_intercept must be True or False, not {self.fit_intercept!r}")
        object.__setattr__(self, "fit_intercept", bool(self.fit_intercept))
        for name, known in (("loss_scaling", get_args(LossScaling)), ("metric", get_args(Metric))):
            if getattr(self, name) not in known:
                raise ParameterError(f"{name} must be one of {', '.join(known)}; not {getattr(self, name)!r}")
        check_neighbors(self.n_neighbors)

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
        means = statistics.means if self.fit_intercept else None
        fitted = statistics.centred if self.fit_intercept else statistics
        names = statistics.feature_names
        if self.metric == "euclidean":
            return SolverInput(fitted, start_weights(fitted), means, names)
        independent, basis = independent_features(fitted, statistics) or (fitted, np.eye(len(names)))
        # Of the rows of each task, one less tells of the noise where its means are taken out.
        prior = random_coefficients(independent, np.maximum(statistics.n_samples - self.fit_intercept, 0))
        start = to_basis(prior.expected_weights(independent), prior.root)
        return SolverInput(in_basis(independent, prior.root), start, means, names, basis @ prior.root)

    def graph(self, prepared: SolverInput) -> TaskGraph:
        """The graph of each task's nearest neighbours at the start of the solve."""
        return nearest_neighbour_graph(prepared.start, self.n_neighbors)


def chosen(choices: ModelChoices | None, keywords: Mapping[str, Any]) -> ModelChoices:
    """The choices that a function was called with: an object, single fields by name, or both.

    Raises
    ------
    ParameterError
        A name that is no choice, or a value that does not exist.

    Examples
    --------
    >>> chosen(ModelChoices(fit_intercept=True), {"metric": "mahalanobis"})
    ModelChoices(fit_intercept=True, loss_scaling='none', metric='mahalanobis', n_neighbors=10)
    """
    if choices is not None:
        check_kind(choices, "choices", ModelChoices)
    known = [field.name for field in fields(ModelChoices)]
    for name in keywords:
        if name not in known:
            near = NearMatches(known).find(name, limit=1)
            hint = f"did you mean {near[0]}?" if near else f"the choices are {', '.join(known)}"
            raise ParameterError(f"there is no argument or choice {name!r}; {hint}")
    return replace(choices or ModelChoices(), **keywords)


def choice_texts() -> dict[str, str]:
    """What each choice means, as :class:`ModelChoices` documents it, for the command line and the service.

    Examples
    --------
    >>> choice_texts()["n_neighbors"]
    'Neighbours of each task in the graph of similar tasks.'
    """
    found = re.findall(r"^(\w+) : .*\n((?: {4}.*\n)+)", inspect.getdoc(ModelChoices) or "", re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in found}


@dataclass(frozen=True, eq=False)
class SolverInput:
    """Statistics and weights as the solver takes them, and the way back from its solution to a model.

    Parameters
    ----------
    statistics : SufficientStatistics or TriangularStatistics
        Of the rows as the choices see them; for the solver alone, errors are those of the rows themselves.
    start : (T, P) float64
        Where the solve starts, and what the graph is made of.
    means : Means or None
        Of the rows, with an intercept.
    feature_names : tuple of P str
        Of the features of the rows, which can be more than the solver sees.
    basis : (P, K) float64 or None
        B, where the solver's weights z are not those of the features: w = B z.
    """

    statistics: Statistics
    start: FloatArray
    means: Means | None
    feature_names: tuple[str, ...]
    basis: FloatArray | None = None

    def weights(self, solved: FloatArray) -> FloatArray:
        """The features' weights (T, P) of solved ones (T, K); equal ones stay bitwise equal."""
        return solved if self.basis is None else from_basis(solved, self.basis)

    def solver_weights(self, weights: FloatArray) -> FloatArray:
        """Return weights (T, P) of the features in the basis that the solver works in."""
        return weights if self.basis is None else to_basis(weights, self.basis)

    def intercept(self, weights: FloatArray) -> FloatArray | None:
        """Intercepts that go with the features' weights (T, P), (T,); None without an intercept."""
        return None if self.means is None else self.means.intercept(weights)

    def model(self, solved: FloatArray) -> CCMTLModel:
        """The model of solved weights (T, P), or of one row (P,) for all tasks."""
        return self.model_of(self.weights(self._of_all(solved)))

    def model_of(self, weights: FloatArray) -> CCMTLModel:
        """The model of the features' weights (T, P)."""
        names = self.statistics.task_ids, self.feature_names
        intercept = self.intercept(weights)
        return CCMTLModel(
            weights, *names, intercept=np.zeros(len(weights)) if intercept is None else intercept
        )

    def squared_error(self, solved: FloatArray, held_out: Statistics) -> FloatArray:
        """Errors (T,) on held-out rows of solved weights (T, P), or of one row (P,) for all tasks."""
        W = self.weights(self._of_all(solved))
        return held_out.squared_error(W, self.intercept(W))

    def _of_all(self, solved: FloatArray) -> FloatArray:
        return np.ascontiguousarray(np.broadcast_to(solved, self.start.shape))


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
    weight = statistics.means.weight
    square = np.divide(statistics.centred.yty, weight, out=np.zeros(len(weight)), where=weight > 0)
    spread = np.sqrt(square)
    if not spread.any():
        return np.ones_like(spread)
    median = float(np.median(spread[spread > 0]))
    factor: FloatArray = median / np.maximum(spread, LEAST_SPREAD * median)
    return factor
