"""What all methods share: rows become statistics, a solver makes weights of these, weights predict."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from ccmtl_core.base.arguments import check_integer
from ccmtl_core.base.arrays import all_finite, as_sequence, as_shape, is_real
from ccmtl_core.base.exceptions import DataError, ParameterError
from ccmtl_core.base.threads import one_blas_thread
from ccmtl_core.base.types import FloatArray, IntArray
from ccmtl_core.data.task_dataset import TaskDataset
from ccmtl_core.model.ccmtl_model import CCMTLModel, predict_rows
from ccmtl_core.statistics.inputs import Statistics
from ccmtl_core.statistics.sufficient_statistics import SufficientStatistics

try:
    from sklearn.base import BaseEstimator, RegressorMixin, clone
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise ImportError("ccmtl_core.methods needs scikit-learn: pip install 'ccmtl[reproduce]'") from error


_CHOICES = ("fit_intercept", "loss_scaling", "metric")
"""Parameters that ``ModelChoices`` checks."""


class Solution(NamedTuple):
    """What a solver found: weights (T, P), their objective, its effort, and whether it kept its promise."""

    weights: FloatArray
    objective: float
    n_iter: int
    converged: bool
    intercept: FloatArray | None = None


class TaskRegressor(RegressorMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """One linear model per task, in the manner of scikit-learn.

    The loss is 1/2 Σ_t ‖X_t w_t − y_t‖², to which each method adds a penalty; a solver sees the statistics of
    the rows alone, so that a step costs T P² operations, whatever the number of rows. Strengths are 0 or
    above, ``tol`` is above 0, and what is counted (clusters, neighbours, steps) is an integer from 1 up.

    Attributes
    ----------
    coef_ : (T, P) float64
        One row of weights per task.
    intercept_ : (T,) float64
        Zero, but for methods with an intercept.
    task_ids_ : tuple of T str
        The task of each row of ``coef_``.
    objective_ : float
        Loss and penalty at ``coef_``.
    n_iter_ : int
        Iterations of the solver, 1 for a closed form.
    converged_ : bool
        Whether the solver reached ``tol``, in the sense that its class states.
    """

    def fit(self, X: ArrayLike, y: ArrayLike, tasks: ArrayLike | Sequence[object] | None = None) -> Self:
        """Fit one model per task.

        Parameters
        ----------
        X : (n, P)
            Features of all tasks, in any order of rows.
        y : (n,)
            Targets.
        tasks : (n,) ids, optional
            The task of each row: text or integers, read as text. Without it all rows are one task, "0".

        Returns
        -------
        self

        Raises
        ------
        ValueError
            Arrays that do not fit each other or are not finite, a parameter that is not allowed.
        """
        features, targets = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        ids = ["0"] * len(targets) if tasks is None else _ids(tasks)
        data = TaskDataset.from_long(features, targets, ids)
        return self._fitted(SufficientStatistics.from_dataset(data), None)

    def fit_statistics(self, statistics: Statistics, start: ArrayLike | None = None) -> Self:
        """Fit from the statistics of the rows.

        Parameters
        ----------
        statistics : statistics
            T tasks with P features.
        start : (T, P), optional
            Weights near the solution, from which an iterative solver begins.

        Returns
        -------
        self

        Raises
        ------
        DataError
            A start of another shape, or one that is not finite.
        """
        if start is None:
            return self._fitted(statistics, None)
        weights = as_shape(start, statistics.xty.shape, "start")
        if not all_finite(weights):
            raise DataError("start must be finite")
        return self._fitted(statistics, weights)

    def along(
        self, statistics: Statistics, grid: Sequence[Mapping[str, float]], *, warm: bool = False
    ) -> Iterator[Self]:
        """Fit at each of several parameters in turn.

        Parameters
        ----------
        statistics : statistics
            Of the rows.
        grid : sequence of mappings
            Parameters by name.
        warm : bool
            Start each fit from the weights of the one before.

        Returns
        -------
        iterator of estimators
            New ones, in the order of the grid.
        """
        start: FloatArray | None = None
        for parameters in grid:
            model = clone(self).set_params(**parameters).fit_statistics(statistics, start)
            start = model.coef_ if warm else None
            yield model

    @one_blas_thread()
    def _fitted(self, statistics: Statistics, start: FloatArray | None) -> Self:
        self._check_parameters()
        return self._take(statistics, self._solve(statistics, start))

    def _take(self, statistics: Statistics, found: Solution) -> Self:
        self.n_features_in_, self.task_ids_ = statistics.n_features, statistics.task_ids
        self.coef_, self.objective_ = np.ascontiguousarray(found.weights), float(found.objective)
        self.intercept_ = np.zeros(len(self.coef_)) if found.intercept is None else found.intercept
        self.n_iter_, self.converged_ = max(1, found.n_iter), bool(found.converged)
        return self

    def predict(self, X: ArrayLike, tasks: ArrayLike | Sequence[object] | None = None) -> FloatArray:
        """Predict each row by the weights of its task.

        Parameters
        ----------
        X : (n, P)
            Features.
        tasks : (n,) ids, optional
            The task of each row; may be left out where the model has one task.

        Returns
        -------
        (n,) float64

        Raises
        ------
        UnknownTaskError
            A task that was not fitted.
        """
        check_is_fitted(self)
        features: FloatArray = validate_data(self, X, dtype=np.float64, reset=False)
        if tasks is None and len(self.task_ids_) > 1:
            raise DataError(f"the model has {len(self.task_ids_)} tasks: predict needs the task of each row")
        rows = np.zeros(len(features), dtype=np.int64) if tasks is None else self._rows(tasks)
        if len(rows) != len(features):
            raise DataError(f"{len(rows)} task ids for {len(features)} rows")
        return predict_rows(self.coef_, rows, features, self.intercept_)

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike,
        tasks: ArrayLike | Sequence[object] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return the R² of scikit-learn over all rows, 1 − Σ v (ŷ − y)² / Σ v (y − ȳ)².

        Parameters
        ----------
        X, tasks
            As in :meth:`predict`.
        y : (n,)
            Targets.
        sample_weight : (n,), optional
            v ≥ 0, how much each row counts, by default 1 each; ȳ is the mean by these weights.

        Returns
        -------
        float
            Of targets that are all the same 1 if each prediction is exact, otherwise 0.

        Raises
        ------
        DataError
            Targets or weights that are not one number for each row, weights that are negative or all zero.
        UnknownTaskError
            A task that was not fitted.
        """
        predicted = self.predict(X, tasks)
        target = as_shape(y, predicted.shape, "y")
        v = np.ones_like(target)
        if sample_weight is not None:
            v = as_shape(sample_weight, target.shape, "sample_weight")
            if not (all_finite(v) and (v >= 0.0).all() and v.any()):
                raise DataError("sample_weight must be finite, not negative, and above 0 for some row")
        spread = float(v @ (target - np.average(target, weights=v)) ** 2)
        error = float(v @ (predicted - target) ** 2)
        return 1.0 - error / spread if spread > 0.0 else float(error == 0.0)

    def _rows(self, tasks: ArrayLike | Sequence[object]) -> IntArray:
        names = tuple(f"x_{p}" for p in range(self.coef_.shape[1]))
        return CCMTLModel(self.coef_, self.task_ids_, names).rows(_ids(tasks))

    def _check_parameters(self) -> None:
        """Refuse parameters that are no numbers or out of range; those in ``_CHOICES`` are checked later."""
        for name, value in self.get_params(deep=False).items():
            if name.startswith(("n_", "max_")):
                check_integer(value, name, 1)
            elif name in _CHOICES:
                continue
            elif not is_real(value):
                raise ParameterError(f"{name} must be a number, not {value!r}")
            elif not 0 <= value <= sys.float_info.max:
                raise ParameterError(f"{name} must be finite and not negative, not {value!r}")
            elif name == "tol" and value == 0:
                raise ParameterError("tol must be above 0")

    @abstractmethod
    def _solve(self, statistics: Statistics, start: FloatArray | None) -> Solution:
        """Minimise the objective of the class."""


def _ids(tasks: Any) -> Sequence[object]:
    """Ids as the dataset takes them: arrays as lists."""
    return as_sequence(np.asarray(tasks).tolist() if hasattr(tasks, "dtype") else tasks, "tasks")


def loss(statistics: Statistics, W: FloatArray) -> float:
    """1/2 Σ_t ‖X_t w_t − y_t‖²."""
    return 0.5 * float(statistics.squared_error(W).sum())
