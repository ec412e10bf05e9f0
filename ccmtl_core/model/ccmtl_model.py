"""The fitted model: one row of weights per task, predictions, saving and loading."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from operator import mul
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ccmtl_core.base.arrays import (
    all_finite,
    as_float64,
    as_id,
    as_sequence,
    as_shape,
    check_columns,
    checked_names,
    frozen,
)
from ccmtl_core.base.display import counted, named, shown
from ccmtl_core.base.exceptions import DataError, ModelFileError, UnknownTaskError
from ccmtl_core.base.frozen_value import FrozenValue
from ccmtl_core.base.near_matches import NearMatches
from ccmtl_core.base.types import FloatArray, IntArray
from ccmtl_core.model.model_file import read_model_file, write_model_file

ROWS_PER_STEP = 16_384
ONE_ID = str | int | np.integer
_NO_INTERCEPT = np.empty(0)


@dataclass(frozen=True, eq=False)
class CCMTLModel(FrozenValue):
    """One linear model per task.

    It cannot be changed: arrays that someone could still write to are copied.

    Parameters
    ----------
    weights : (T, P) float64
        Row t predicts for ``task_ids[t]``, column p belongs to ``feature_names[p]``.
    task_ids, feature_names : tuples of T and P str
        Distinct, not empty.
    metadata : mapping
        Whatever JSON can hold; kept as a copy.
    intercept : (T,) float64, optional
        What each task adds to its products; zero by default.

    Raises
    ------
    DataError
        Shapes that do not fit, weights or intercepts that are not finite, metadata that JSON cannot hold.

    Examples
    --------
    >>> model = CCMTLModel([[2.0], [3.0]], ("a", "b"), ("x",))
    >>> model.predict([[1.0], [1.0]], ["b", "a"])
    array([3., 2.])
    """

    weights: FloatArray
    task_ids: tuple[str, ...]
    feature_names: tuple[str, ...]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    intercept: FloatArray = field(default_factory=lambda: _NO_INTERCEPT)

    def __post_init__(self) -> None:
        weights = as_float64(self.weights, "weights")
        task_ids = checked_names(self.task_ids, "task id")
        feature_names = checked_names(self.feature_names, "feature name")
        if weights.shape != (len(task_ids), len(feature_names)) or weights.size == 0:
            raise DataError(
                f"weights must be ({len(task_ids)}, {len(feature_names)}) and not empty; got {weights.shape}"
            )
        intercept = np.zeros(len(task_ids)) if self.intercept is _NO_INTERCEPT else self.intercept
        intercept = as_shape(intercept, (len(task_ids),), "intercept")
        if not (all_finite(weights) and all_finite(intercept)):
            raise DataError("weights or intercept hold values that are not finite")
        try:
            metadata = json.loads(json.dumps(dict(self.metadata), allow_nan=False))
        except (TypeError, ValueError, RecursionError) as error:
            raise DataError(f"metadata must be JSON: {error}") from error
        checked = frozen(weights), task_ids, feature_names, MappingProxyType(metadata), intercept
        for entry, value in zip(fields(self), checked, strict=True):
            object.__setattr__(self, entry.name, value)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "metadata": dict(self.metadata)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({**state, "metadata": MappingProxyType(state["metadata"])})

    def __repr__(self) -> str:
        tasks, features = counted(len(self.task_ids), "task"), named(self.feature_names, "feature")
        return shown(self, tasks, features, "with intercepts" if self.intercept.any() else "")

    @cached_property
    def _row_of(self) -> dict[str, int]:
        return {name: row for row, name in enumerate(self.task_ids)}

    @cached_property
    def _near_matches(self) -> NearMatches:
        return NearMatches(self.task_ids)

    def rows(self, task: str | Sequence[object]) -> IntArray:
        """Return the places in ``task_ids`` of one id or many, (n,) int64.

        Raises
        ------
        UnknownTaskError
            The first id that the model does not know, with near matches.
        DataError
            Neither an id nor a list of ids.
        """
        row_of = self._row_of
        ids = [task] if isinstance(task, ONE_ID) else as_sequence(task, "ids of tasks")
        names = [name if type(name) is str else as_id(name) for name in ids]
        try:
            return np.array([row_of[name] for name in names], dtype=np.int64)
        except KeyError as error:
            unknown = str(error.args[0])
            raise UnknownTaskError(unknown, self._near_matches.find(unknown)) from None

    def predict(self, X: ArrayLike, task: str | Sequence[object]) -> FloatArray:
        """Predict rows of features.

        Parameters
        ----------
        X : (n, P)
            Features, in the order of ``feature_names``, as which the columns of a table of polars, pandas or
            Arrow must be called.
        task : (n,) ids, or one id for all rows
            Text or integers, read as text.

        Returns
        -------
        (n,) float64

        Raises
        ------
        UnknownTaskError
            An id that the model does not know.
        DataError
            Wrong shapes, columns of other names or in another order, features that are not finite, or a
            task that is neither an id nor a list of ids.
        """
        features = as_float64(X, "X")
        if features.ndim != 2 or features.shape[1] != len(self.feature_names):
            raise DataError(f"X must be (n, {len(self.feature_names)}); got {features.shape}")
        check_columns(X, self.feature_names, "X")
        if not all_finite(features):
            row, column = np.argwhere(~np.isfinite(features))[0]
            name = self.feature_names[column]
            raise DataError(f"row {row + 1}, feature {name!r}: {features[row, column]} is not finite")
        rows = self.rows(task)
        if isinstance(task, ONE_ID):
            rows = np.repeat(rows, len(features))
        if len(rows) != len(features):
            raise DataError(f"{len(rows)} task ids for {len(features)} rows")
        return predict_rows(self.weights, rows, features, self.intercept)

    def save(self, path: str | Path) -> None:
        """Write the model to one ``.npz`` file without pickle; a failure leaves an earlier file untouched.

        A symbolic link is followed: the file that it leads to is written.

        Raises
        ------
        ParameterError
            The path is a folder, a pipe or a device, or its folder does not exist.
        OSError
            The file cannot be written.
        """
        names = {"task_ids": self.task_ids, "feature_names": self.feature_names}
        write_model_file(path, self.weights, self.intercept, {**names, "metadata": dict(self.metadata)})

    @classmethod
    def load(cls, path: str | Path) -> CCMTLModel:
        """Read a file that :meth:`save` wrote; nothing in it can run code.

        Raises
        ------
        ModelFileError
            The file is damaged or is not a model file.
        ParameterError
            The path is not a path.
        OSError
            The file cannot be read.
        """
        weights, intercept, header = read_model_file(path)
        try:
            return cls(weights, header["task_ids"], header["feature_names"], header["metadata"], intercept)
        except (DataError, KeyError, TypeError) as error:
            raise ModelFileError(f"{path} does not hold a whole model: {error}") from error


def predict_rows(
    weights: FloatArray, row: IntArray, X: FloatArray, intercept: FloatArray | None = None
) -> FloatArray:
    """Compute w_0 x_0 + w_1 x_1 + … + b for each row, in this order; all predictions come from here.

    Row i of X (n, P) is of task ``row[i]``, which has a row of weights (T, P) and an entry of intercept (T,);
    no intercept is the same as zeros. The result (n,) is infinite or NaN where products overflow. Going
    column by column makes it the same to the last bit whether one row is predicted or a million.

    Examples
    --------
    >>> predict_rows(np.array([[1.0, 2.0]]), np.array([0]), np.array([[3.0, 4.0]]))
    array([11.])
    """
    result = np.empty(len(X))
    with np.errstate(over="ignore", invalid="ignore"):
        for first in range(0, len(X), ROWS_PER_STEP):
            step = slice(first, first + ROWS_PER_STEP)
            products = weights[row[step]] * X[step]
            total = result[step]
            total[:] = products[:, 0]
            for p in range(1, products.shape[1]):
                total += products[:, p]
            if intercept is not None:
                added = intercept[row[step]]
                np.add(total, added, out=total, where=added != 0.0)  # zero leaves -0.0 as it is
    return result


def predict_row(weights: FloatArray, x: Sequence[float], intercept: float) -> float:
    """Compute one row as :func:`predict_rows` does, to the last bit, in a fifth of the time.

    ``weights`` (P,) are those of the row's task.

    Examples
    --------
    >>> predict_row(np.array([1.0, 2.0]), [3.0, 4.0], 0.5)
    11.5
    """
    first, *rest = map(mul, weights.tolist(), x)
    for product in rest:
        first += product
    return float(first + intercept if intercept != 0.0 else first)
