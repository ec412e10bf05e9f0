"""Statistics in, those that the solver fits and its start out; solved weights in, intercepts out.

Three choices that the paper does not have, each switched on its own (docs/decisions, 15):

- an intercept per task outside the fusion penalty: the solver gets centred statistics, and b = ȳ − x̄ᵀw;
- losses divided by each task's spread of y, so that tasks of large numbers do not decide alone;
- a start, and with it the graph, from weights shrunk to the pooled ones by a ridge.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ccmtl_core._types import FloatArray
from ccmtl_core.centring import Means
from ccmtl_core.exceptions import ParameterError
from ccmtl_core.single_task import Statistics, shrunk_weights, start_weights

LOSS_SCALINGS = ("none", "spread")
STARTS = ("least_squares", "shrunk")
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
    loss_scaling : {"none", "spread"}
        "spread": divide each task's loss by the standard deviation of its y, in units of the median one.
    start : {"least_squares", "shrunk"}
        "shrunk": start and graph from each task shrunk to the pooled weights.

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

    def __post_init__(self) -> None:
        if not isinstance(self.fit_intercept, bool):
            raise ParameterError(f"fit_intercept must be True or False, not {self.fit_intercept!r}")
        for name, known in (("loss_scaling", LOSS_SCALINGS), ("start", STARTS)):
            if getattr(self, name) not in known:
                raise ParameterError(f"{name} must be one of {', '.join(known)}; not {getattr(self, name)!r}")

    def as_dict(self) -> dict[str, Any]:
        """The choices by name, as ``fit`` takes them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def prepare(self, statistics: Statistics) -> Prepared:
        """From the statistics of the rows to those that the solver fits.

        Raises
        ------
        DataError
            An intercept or a scaling is asked for, and the statistics hold no sums.
        """
        if self.loss_scaling == "spread":
            statistics = statistics.scaled(inverse_spread(statistics))
        means = statistics.means if self.fit_intercept else None
        fitted = statistics.centred if self.fit_intercept else statistics
        shrunk = self.start == "shrunk"
        start = shrunk_weights(fitted, START_SHRINKAGE) if shrunk else start_weights(fitted)
        return Prepared(fitted, start, means)


@dataclass(frozen=True, eq=False)
class Prepared:
    """What the solver needs, and the way back.

    Parameters
    ----------
    statistics : SufficientStatistics or TriangularStatistics
        Of the rows as the choices see them; for the solver alone, errors are those of the rows themselves.
    start : (T, P) float64
        Where the solve starts, and what the graph is made of.
    means : Means or None
        Of the rows, with an intercept.
    """

    statistics: Statistics
    start: FloatArray
    means: Means | None

    def intercept(self, weights: FloatArray) -> FloatArray:
        """Intercepts that go with solved weights (T, P), (T,); zero without an intercept."""
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
    weight = statistics.means.weight
    square = np.divide(statistics.centred.yty, weight, out=np.zeros_like(weight), where=weight > 0)
    spread = np.sqrt(square)
    if not spread.any():
        return np.ones_like(spread)
    median = float(np.median(spread[spread > 0]))
    factor: FloatArray = median / np.maximum(spread, LEAST_SPREAD * median)
    return factor
