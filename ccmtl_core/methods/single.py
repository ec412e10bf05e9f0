"""The simple rivals with a ridge: one model for all (STL), each task alone (ITL), each shrunk to the one."""

from __future__ import annotations

import numpy as np

from ccmtl_core.base.types import FloatArray
from ccmtl_core.choices.single_task import pooled_weights, shrunk_weights
from ccmtl_core.methods.estimator import Solution, TaskRegressor, loss
from ccmtl_core.statistics.inputs import Statistics


class STL(TaskRegressor):
    """One model for all tasks pooled, with a ridge ("STL" of He et al., AAAI 2019).

        1/2 Σ_t ‖X_t w − y_t‖² + ρ/2 ‖w‖²                  (Hoerl & Kennard, Technometrics 12, 1970)

    A closed form; at ρ = 0 minimum-norm least squares of all rows, for enormous ρ zero.

    Parameters
    ----------
    ridge : float
        ρ ≥ 0.

    Examples
    --------
    >>> STL().fit([[1.0], [1.0]], [0.0, 2.0], ["a", "b"]).coef_.ravel()
    array([1., 1.])
    """

    def __init__(self, ridge: float = 0.0) -> None:
        self.ridge = ridge

    def _solve(self, statistics: Statistics, start: FloatArray | None) -> Solution:
        weights = _ridge(statistics.pooled(), self.ridge)[0]
        W = np.tile(weights, (statistics.n_tasks, 1))
        return Solution(W, loss(statistics, W) + 0.5 * self.ridge * float(weights @ weights), 1, True)


class ITL(TaskRegressor):
    """Each task alone, with one ridge for all ("ITL" of He et al., AAAI 2019).

        1/2 Σ_t ‖X_t w_t − y_t‖² + ρ/2 Σ_t ‖w_t‖²          (Hoerl & Kennard, Technometrics 12, 1970)

    A closed form; at ρ = 0 minimum-norm least squares of each task, for enormous ρ zero.

    Parameters
    ----------
    ridge : float
        ρ ≥ 0.

    Examples
    --------
    >>> ITL(ridge=1.0).fit([[1.0], [1.0]], [0.0, 2.0], ["a", "b"]).coef_.ravel()
    array([0., 1.])
    """

    def __init__(self, ridge: float = 0.0) -> None:
        self.ridge = ridge

    def _solve(self, statistics: Statistics, start: FloatArray | None) -> Solution:
        W = _ridge(statistics, self.ridge)
        return Solution(W, loss(statistics, W) + 0.5 * self.ridge * float(np.vdot(W, W)), 1, True)


class Shrunk(TaskRegressor):
    """Each task shrunk to the pooled weights by one ridge: the simplest way to borrow from the others.

        1/2 Σ_t ‖X_t w_t − y_t‖² + s g / 2 Σ_t ‖w_t − w‖²,     w the pooled weights

    with g the mean square that a feature gathers in a task, as :func:`ccmtl_core.shrunk_weights` has it. A
    closed form; at s = 0 each task alone, for enormous s the pooled weights.

    Parameters
    ----------
    shrinkage : float
        s ≥ 0, without unit.

    Examples
    --------
    >>> Shrunk(shrinkage=1.0).fit([[1.0], [1.0]], [0.0, 2.0], ["a", "b"]).coef_.ravel()
    array([0.5, 1.5])
    """

    def __init__(self, shrinkage: float = 1.0) -> None:
        self.shrinkage = shrinkage

    def _solve(self, statistics: Statistics, start: FloatArray | None) -> Solution:
        if self.shrinkage == 0.0:
            W = statistics.least_squares.weights.copy()
            return Solution(W, loss(statistics, W), 1, True)
        W = shrunk_weights(statistics, self.shrinkage)
        size = float(np.trace(statistics.gram, axis1=1, axis2=2).mean()) / statistics.n_features
        apart = W - pooled_weights(statistics)
        return Solution(
            W, loss(statistics, W) + 0.5 * self.shrinkage * size * float(np.vdot(apart, apart)), 1, True
        )


def _ridge(statistics: Statistics, ridge: float) -> FloatArray:
    """(X_tᵀX_t + ρ I)⁻¹ X_tᵀy_t of each task, (T, P)."""
    if ridge == 0.0:
        return statistics.least_squares.weights.copy()
    regular = statistics.gram + ridge * np.eye(statistics.n_features)
    return np.asarray(np.linalg.solve(regular, statistics.xty[:, :, None])[:, :, 0])
