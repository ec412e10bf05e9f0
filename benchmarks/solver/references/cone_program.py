"""Write a fusion problem as a quadratic program over second-order cones, for solvers of those.

With V = W − ŵ around each task's least squares ŵ_t, and s_e ≥ ‖W_i − W_j‖,

    minimise 1/2 Σ V_tᵀ G_t V_t + Σ r_e s_e   subject to   (s_e, V_i − V_j + ŵ_i − ŵ_j) in the cone, each e.

Statistics instead of rows, and objectives counted from the least loss, suit both solvers best: the program
is small, and their relative tolerances are about what fusion costs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ccmtl_core.base.types import FloatArray
from ccmtl_core.solver.objective import FusionProblem


@dataclass(frozen=True, eq=False)
class ConeProgram:
    """Minimise 1/2 xᵀ quadratic x + linear·x with bound − matrix x in ``n_cones`` cones of ``cone_size``.

    ``quadratic`` is the upper triangle; x holds V, then s.
    """

    quadratic: sparse.csc_matrix
    linear: FloatArray
    matrix: sparse.csc_matrix
    bound: FloatArray
    n_cones: int
    cone_size: int
    start: FloatArray

    @classmethod
    def of(cls, problem: FusionProblem) -> ConeProgram:
        """Write a fusion problem in this form."""
        start = problem.quadratic.least_squares.weights
        T, P = start.shape
        E = len(problem.head)
        ends = np.r_[problem.head, problem.tail]
        incidence = sparse.csr_array((np.r_[np.ones(E), -np.ones(E)], (np.r_[:E, :E], ends)), shape=(E, T))
        first, others = np.eye(P + 1)[:, :1], np.eye(P + 1)[:, 1:]
        blocks = sparse.block_diag([*problem.quadratic.gram, sparse.csr_array((E, E))], format="csc")
        matrix = sparse.hstack(
            [-sparse.kron(incidence, others), -sparse.kron(sparse.eye_array(E), first)], format="csc"
        )
        return cls(
            sparse.csc_matrix(sparse.triu(blocks)),
            np.r_[np.zeros(T * P), problem.radius],
            sparse.csc_matrix(matrix),
            np.pad(problem.differences(start), ((0, 0), (1, 0))).ravel(),
            E,
            P + 1,
            start,
        )

    def weights(self, x: FloatArray) -> FloatArray:
        """Return W (T, P) of a solution x."""
        return self.start + np.asarray(x)[: self.start.size].reshape(self.start.shape)
