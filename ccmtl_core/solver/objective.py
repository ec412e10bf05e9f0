"""The objective of given blocks, graph and strength, its parts, and what its dual is made of.

    J(W) = 1/2 Σ_t ‖X_t W_t − y_t‖² + λ/2 Σ_e m_e ‖W_i − W_j‖₂            (He et al., AAAI 2019, equation 2)

with e = (i, j) over undirected edges and m_e their multiplicity. ``radius`` r_e = λ m_e / 2 is at once the
weight of an edge in the penalty and the radius of the ball that holds its dual variable U_e.
"""

from __future__ import annotations

import reprlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from ccmtl_core.base.arrays import is_real
from ccmtl_core.base.exceptions import DataError, ParameterError
from ccmtl_core.base.types import EPS, FloatArray, IntArray
from ccmtl_core.graph.knn_graph import TaskGraph
from ccmtl_core.kernels.solver import edge_kernels
from ccmtl_core.kernels.vectors import Lanes, lanes_for
from ccmtl_core.statistics.quadratic import Quadratic

MIN_STRENGTH, MAX_STRENGTH = 1e-100, 1e100
STRENGTHS = "0, or from 1e-100 to 1e100"


@dataclass(frozen=True, eq=False)
class FusionProblem:
    """One instance of the objective.

    Parameters
    ----------
    quadratic : Quadratic
        The loss of T tasks with P features.
    graph : TaskGraph
        On the same T tasks.
    fusion_strength : float
        λ: 0, or from 1e-100 to 1e100, in units of the loss per unit of weight.

    Raises
    ------
    DataError
        A graph on another number of tasks.
    ParameterError
        A strength that is not one of these.

    Examples
    --------
    >>> from ccmtl_core import SufficientStatistics, TaskDataset, TaskGraph
    >>> data = TaskDataset.from_arrays([[[1.0]], [[1.0]]], [[0.0], [2.0]])
    >>> graph = TaskGraph([[0, 1]], [2], n_tasks=2)
    >>> problem = FusionProblem(SufficientStatistics.from_dataset(data).quadratic, graph, fusion_strength=0.5)
    >>> problem.objective([[0.0], [2.0]]), problem.objective([[1.0], [1.0]])
    (1.0, 1.0)
    """

    quadratic: Quadratic
    graph: TaskGraph
    fusion_strength: float

    def __post_init__(self) -> None:
        if self.graph.n_tasks != self.quadratic.n_tasks:
            raise DataError(f"the graph has {self.graph.n_tasks} tasks, the data {self.quadratic.n_tasks}")
        check_strength(self.fusion_strength)

    def reordered(self, order: IntArray) -> FusionProblem:
        """The same problem with the tasks renumbered: the new task t is the old ``order[t]``."""
        return FusionProblem(
            self.quadratic.reordered(order), self.graph.reordered(order), self.fusion_strength
        )

    def at(self, fusion_strength: float) -> FusionProblem:
        """The same problem at another strength; what does not depend on it is shared."""
        other = FusionProblem(self.quadratic, self.graph, fusion_strength)
        other.__dict__.update(head=self.head, tail=self.tail)
        return other

    @cached_property
    def head(self) -> IntArray:
        """(E,) int32, the smaller task of each edge."""
        return np.ascontiguousarray(self.graph.edges[:, 0], dtype=np.int32)

    @cached_property
    def tail(self) -> IntArray:
        """(E,) int32, the larger task of each edge."""
        return np.ascontiguousarray(self.graph.edges[:, 1], dtype=np.int32)

    @cached_property
    def radius(self) -> FloatArray:
        """(E,) r_e = λ m_e / 2."""
        return 0.5 * self.fusion_strength * self.graph.multiplicity.astype(np.float64)

    @property
    def n_features(self) -> int:
        """P, the number of features."""
        return self.quadratic.n_features

    @property
    def lanes(self) -> Lanes:
        """How compiled loops take a row of weights."""
        return lanes_for(self.quadratic.n_tasks, self.n_features)

    def loss(self, weights: ArrayLike) -> float:
        """1/2 Σ_t ‖X_t W_t − y_t‖², without cancellation."""
        return 0.5 * float(self.quadratic.loss.squared_error(np.asarray(weights, dtype=np.float64)).sum())

    def loss_around(self, W: FloatArray) -> tuple[float, FloatArray]:
        """The loss, and its gradient G_t W_t − c_t (T, P), for the price of one of them."""
        error, gradient = self.quadratic.loss.around(W)
        return 0.5 * float(error.sum()), gradient

    def penalty(self, weights: ArrayLike) -> float:
        """λ/2 Σ_e m_e ‖W_i − W_j‖."""
        return float(self.radius @ self.lengths(np.asarray(weights, dtype=np.float64)))

    def objective(self, weights: ArrayLike) -> float:
        """J(W)."""
        return self.loss(weights) + self.penalty(weights)

    @cached_property
    def hidden_loss(self) -> float:
        """EPS² Σ yᵀy: a loss that cannot be told from that of a perfect fit."""
        return EPS**2 * float(self.quadratic.yty.sum())

    def is_negligible(self, penalty: float, objective: float, share: float) -> bool:
        """Whether a penalty is within this share of the objective, or of what rounding hides of it."""
        return penalty <= max(share * objective, self.hidden_loss)

    def lengths(self, W: FloatArray) -> FloatArray:
        """‖W_i − W_j‖ of each edge, (E,)."""
        out = np.empty(len(self.head))
        edge_kernels.edge_lengths(self.head, self.tail, W, out, self.lanes)
        return out

    def differences(self, W: FloatArray) -> FloatArray:
        """D W: the difference W_i − W_j of each edge, (E, P)."""
        out = np.empty((len(self.head), W.shape[1]))
        edge_kernels.edge_differences(self.head, self.tail, W, out, self.lanes)
        return out

    def divergence(self, U: FloatArray) -> FloatArray:
        """Dᵀ U: what flows out of each task, (T, P)."""
        out = np.zeros((self.quadratic.n_tasks, U.shape[1]))
        edge_kernels.add_divergence(self.head, self.tail, U, out, self.lanes)
        return out

    def loss_gradient(self, W: FloatArray) -> FloatArray:
        """G_t W_t − c_t, (T, P)."""
        return self.quadratic.loss.gradient(W)


def check_strength(fusion_strength: float) -> None:
    """Refuse a strength that is no number, negative, or of a size with which bounds cannot be computed."""
    is_number = is_real(fusion_strength)
    if is_number and (fusion_strength == 0 or MIN_STRENGTH <= fusion_strength <= MAX_STRENGTH):
        return
    hint = "" if is_number else "; select chooses one by cross-validation, fit_path fits at several"
    raise ParameterError(
        f"fusion_strength must be a number ({STRENGTHS}), not {reprlib.repr(fusion_strength)}{hint}"
    )


def row_norms(A: FloatArray) -> FloatArray:
    """Euclidean norm of each row."""
    norms: FloatArray = np.sqrt(np.einsum("ij,ij->i", A, A))
    return norms
