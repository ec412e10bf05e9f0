"""Details that the paper leaves open, varied one by one: how rows are split, scaled and searched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from sklearn.base import clone

from ccmtl_core.base.types import BoolArray, FloatArray
from ccmtl_core.data.task_dataset import TaskDataset
from ccmtl_core.methods import CCMTL
from ccmtl_core.reproduce.readers import N_LAGS, Split, in_folds, n_training, random_ranks
from ccmtl_core.reproduce.rivals import POWERS, RIVALS, Rival

_ROUNDING = 1e-12


@dataclass(frozen=True)
class Protocol:
    """One way to run an experiment; by default that of the tables.

    Parameters
    ----------
    n_lags : int
        How many values before are the features of a series.
    first_rows_train : bool
        Not random rows of each task but its first.
    constant : bool
        A feature of ones besides.
    centred : bool
        Features and targets of a task lose the mean of its rows for training, which is an intercept of each
        task without penalty.
    divided_by : "nothing", "maximum" or "spread"
        What the targets of a task, and its features, are divided by: the largest or the standard deviation of
        its targets for training. Errors are measured in the unit of the file all the same.
    standardised : bool
        Features have mean 0 and standard deviation 1 over all rows for training.
    ridge : bool
        STL and ITL have a ridge, not least squares.
    n_neighbors : int
        Of the graph.
    """

    n_lags: int = N_LAGS
    first_rows_train: bool = False
    constant: bool = False
    centred: bool = False
    divided_by: Literal["nothing", "maximum", "spread"] = "nothing"
    standardised: bool = False
    ridge: bool = True
    n_neighbors: int = 10

    def split(self, data: TaskDataset, share: float, n_folds: int, rng: np.random.Generator) -> Split:
        """Split the rows and change them as the protocol says, by what the rows for training have."""
        index = data.task_index
        in_order = np.arange(len(index)) - data.offsets[:-1][index]
        rank = in_order if self.first_rows_train else random_ranks(data, rng)
        trains = rank < n_training(data, share)[index]
        unit = self._unit(data, trains)
        X, y = data.X / unit[index][:, None], data.y / unit[index]
        if self.standardised:
            mean, spread = X[trains].mean(axis=0), X[trains].std(axis=0)
            X = np.where(spread > 0.0, (X - mean) / np.where(spread > 0.0, spread, 1.0), X)
        if self.centred:
            X, y = (_centred(A, _means(A, data, trains)[index]) for A in (X, y))
        names = data.feature_names
        if self.constant:
            X, names = np.column_stack([X, np.ones(len(X))]), (*names, "constant")
        changed = TaskDataset(X, y, data.offsets, data.task_ids, names)
        return replace(in_folds(changed, rank, share, n_folds, rng), unit=unit)

    def rival(self, rival: Rival) -> Rival:
        """The method with the graph and the search of the protocol."""
        model = clone(rival.model)
        if "n_neighbors" in model.get_params():
            model.set_params(n_neighbors=self.n_neighbors)
        values = (0.0,) if rival.parameters == ("ridge",) and not self.ridge else rival.values
        return replace(rival, model=model, values=values)

    def _unit(self, data: TaskDataset, trains: BoolArray) -> FloatArray:
        unit = np.ones(data.n_tasks)
        if self.divided_by == "maximum":
            unit = np.zeros(data.n_tasks)
            np.maximum.at(unit, data.task_index[trains], np.abs(data.y[trains]))
        elif self.divided_by == "spread":
            centred = data.y - _means(data.y, data, trains)[data.task_index]
            unit = np.sqrt(_means(centred**2, data, trains))
        return np.where(unit > 0.0, unit, 1.0)


def _centred(A: FloatArray, means: FloatArray) -> FloatArray:
    """A less its means. What rounding leaves of a constant becomes zero: its weights would be enormous."""
    return np.where(np.abs(A - means) > _ROUNDING * np.abs(A), A - means, 0.0)


def _means(A: FloatArray, data: TaskDataset, trains: BoolArray) -> FloatArray:
    """Means of the rows for training of each task, of A (n,) or (n, P)."""
    index = data.task_index[trains]
    columns = A[trains].reshape(len(index), -1).T
    sums = np.stack([np.bincount(index, column, data.n_tasks) for column in columns], axis=1)
    counts = np.maximum(np.bincount(index, minlength=data.n_tasks), 1)
    return (sums / counts[:, None]).reshape(data.n_tasks, *A.shape[1:])


COMPARED: Mapping[str, Rival] = {
    **{name: RIVALS[name] for name in ("STL", "ITL", "shrunk")},
    "CCMTL": Rival(CCMTL(tol=1e-3), ("fusion_strength",), POWERS[::2]),
}
"""What is compared: one strength in each power of ten for CCMTL, as many protocols are searched."""

_SHARED = {
    "as in the tables": Protocol(),
    "least squares": Protocol(ridge=False),
    "3 neighbours": Protocol(n_neighbors=3),
    "30 neighbours": Protocol(n_neighbors=30),
    "intercept of each task": Protocol(centred=True),
}
OF_SCHOOL: Mapping[str, Protocol] = {
    **_SHARED,
    "standardised": Protocol(standardised=True),
    "standardised, intercept of each task": Protocol(standardised=True, centred=True),
    "first rows": Protocol(first_rows_train=True),
}
OF_SERIES: Mapping[str, Protocol] = {
    **_SHARED,
    "10 lags": Protocol(n_lags=10),
    "constant": Protocol(constant=True),
    "standardised, constant": Protocol(standardised=True, constant=True),
    "divided by maximum": Protocol(divided_by="maximum"),
    "divided by maximum, constant": Protocol(divided_by="maximum", constant=True),
    "divided by spread": Protocol(divided_by="spread"),
    "divided by spread, constant": Protocol(divided_by="spread", constant=True),
    "divided by spread, intercept of each task": Protocol(divided_by="spread", centred=True),
    "first half": Protocol(first_rows_train=True),
    "first half, constant": Protocol(first_rows_train=True, constant=True),
    "first half, intercept of each task": Protocol(first_rows_train=True, centred=True),
    "first half, divided by maximum, constant": Protocol(
        first_rows_train=True, divided_by="maximum", constant=True
    ),
    "first half, divided by spread": Protocol(first_rows_train=True, divided_by="spread"),
}
