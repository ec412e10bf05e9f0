"""Edge weights and Gram blocks in; the system's product and its multigrid preconditioner out.

The system is A = L ⊗ I_P + blockdiag(G), with L the weighted graph Laplacian (He et al., AAAI 2019,
equation 6). Every level keeps that form: a level made by aggregating tasks is again a Laplacian plus Gram
blocks, that is, the pooled regression of the aggregated tasks, so no matrix of size T·P is ever built.
All P columns travel together. Aggregates come from pyamg's standard aggregation of the strong ties;
prolongation is piecewise constant, the smoother symmetric block Gauss-Seidel, and coarse problems are
solved by two steps of conjugate gradients (the K-cycle: Notay & Vassilevski, Numer. Linear Algebra Appl.
15, 2008), which makes the convergence independent of the number of levels.
"""

from __future__ import annotations

import numpy as np
from pyamg import amg_core
from scipy.linalg import cho_factor, cho_solve

from ccmtl_core._types import FloatArray, IntArray
from ccmtl_core.solver import kernels
from ccmtl_core.solver.kernels import Dims, dims_for

_DIRECT_UP_TO = 256  # unknowns of the coarsest level, solved by a dense factorisation
_STRONG = 0.25  # a tie is strong from this share of the largest tie of the task
_STRICT_FROM = 4000  # tasks; a larger level asks for strength at both ends, which makes smaller aggregates
_COARSE_TOLERANCE = 0.25  # a coarse problem solved to this residual needs no second step


class Level:
    """One level: its graph in compressed rows, its Gram blocks, and the aggregates of the next level."""

    def __init__(self, head: IntArray, tail: IntArray, G: FloatArray, dims: Dims) -> None:
        self.n, self.P = G.shape[:2]
        self.G, self.dims = G, dims
        self.head, self.tail = head, tail
        self.ptr, self.split, self.nbr, self.eid = kernels.adjacency(self.n, head, tail)
        self.data = np.empty(len(self.nbr))
        self.diagonal = np.empty(self.n)
        self.inverse = np.empty_like(G)
        self.x = np.empty((self.n, self.P))
        self.residual = np.empty((self.n, self.P))
        self.aggregate: IntArray | None = None
        self.edge_map: IntArray = np.empty(0, dtype=np.int32)

    @property
    def is_small(self) -> bool:
        """Whether the level is solved directly rather than coarsened."""
        return self.n * self.P <= _DIRECT_UP_TO or self.n == 1 or len(self.head) == 0

    def set_weights(self, w: FloatArray) -> None:
        """Take new edge weights (E,)."""
        kernels.spread_edge_weights(self.ptr, self.eid, w, self.data, self.diagonal)

    def apply(self, x: FloatArray) -> FloatArray:
        """Return A x, (n, P)."""
        out = np.empty_like(x)
        kernels.apply_system(self.ptr, self.nbr, self.data, self.diagonal, self.G, x, out, self.dims)
        return out

    def invert_blocks(self) -> None:
        """Invert the diagonal blocks for the smoother."""
        if self.P <= 16:
            kernels.invert_blocks(self.G, self.diagonal, self.inverse, self.dims)
            return
        blocks = self.G + self.diagonal[:, None, None] * np.eye(self.P)
        top = np.trace(blocks, axis1=1, axis2=2)
        blocks += np.where(top > 0, 1e-15 * top, 1.0)[:, None, None] * np.eye(self.P)
        self.inverse[:] = np.linalg.inv(blocks)

    def dense(self) -> FloatArray:
        """Return A as a matrix (n·P, n·P)."""
        laplacian = np.diag(self.diagonal)
        rows = np.repeat(np.arange(self.n), np.diff(self.ptr))
        np.subtract.at(laplacian, (rows, self.nbr), self.data)
        A = np.zeros((self.n, self.P, self.n, self.P))
        for p in range(self.P):
            A[:, p, :, p] = laplacian
        tasks = np.arange(self.n)
        A[tasks, :, tasks, :] += self.G
        return A.reshape(self.n * self.P, self.n * self.P)


class Multigrid:
    """The system A on a fixed graph, with edge weights that change, and its K-cycle.

    Parameters
    ----------
    edges : (E, 2) int
        Pairs i < j.
    gram : (T, P, P) float64
        The blocks G_t.

    Notes
    -----
    :meth:`update` must be called before :meth:`apply` and :meth:`precondition`. The preconditioner is
    symmetric up to the inner tolerance, so it wants a flexible conjugate gradient method.
    """

    def __init__(self, edges: IntArray, gram: FloatArray) -> None:
        head, tail = (np.ascontiguousarray(column, dtype=np.int32) for column in edges.T)
        self._finest = Level(head, tail, gram, dims_for(*gram.shape[:2]))
        self.levels = [self._finest]

    def update(self, w: FloatArray) -> None:
        """Take new edge weights w (E,) > 0 and rebuild the hierarchy: one pass over the edges per level."""
        level = self._finest
        self.levels = [level]
        level.set_weights(w)
        while not level.is_small:
            level.invert_blocks()
            level, w = self._coarsen(level, w)
            level.set_weights(w)
            self.levels.append(level)
        if len(level.head) == 0:
            level.invert_blocks()
        else:
            self._factorise(level)

    def apply(self, x: FloatArray) -> FloatArray:
        """Return A x, both (T, P)."""
        return self._finest.apply(x)

    def precondition(self, r: FloatArray) -> FloatArray:
        """Return an approximation of A⁻¹ r, both (T, P); the array is overwritten by the next call."""
        return self._cycle(r, 0)

    def _coarsen(self, level: Level, w: FloatArray) -> tuple[Level, FloatArray]:
        level.aggregate, n_coarse = _aggregate(level)
        head, tail, level.edge_map = kernels.coarse_edges(
            level.ptr, level.nbr, level.eid, level.aggregate, n_coarse
        )
        G = np.empty((n_coarse, level.P, level.P))
        kernels.sum_blocks(level.aggregate, level.G, G)
        coarse_w = np.empty(len(head))
        kernels.sum_edge_weights(level.edge_map, w, coarse_w)
        return Level(head, tail, G, level.dims), coarse_w

    def _factorise(self, level: Level) -> None:
        A = level.dense()
        # Features empty in all tasks of a component leave A singular: lift it to the rounding level.
        A[np.diag_indices_from(A)] += 1e-14 * np.trace(A) / len(A) + np.finfo(float).tiny
        self._factor = cho_factor(A, overwrite_a=True, check_finite=False)

    def _cycle(self, r: FloatArray, depth: int) -> FloatArray:
        level = self.levels[depth]
        if level.aggregate is None or depth == len(self.levels) - 1:
            if len(level.head) == 0:
                return np.matmul(level.inverse, r[:, :, None])[:, :, 0]
            return cho_solve(self._factor, r.ravel(), check_finite=False).reshape(r.shape)
        kernels.smooth_forward(
            level.ptr, level.split, level.nbr, level.data, level.inverse, r, level.x, level.residual,
            level.dims,
        )  # fmt: skip
        coarse_r = np.empty((self.levels[depth + 1].n, level.P))
        kernels.restrict(level.aggregate, level.residual, coarse_r, level.dims)
        kernels.prolong_add(level.aggregate, self._solve_coarse(coarse_r, depth + 1), level.x, level.dims)
        kernels.smooth_backward(level.ptr, level.nbr, level.data, level.inverse, r, level.x, level.dims)
        return level.x

    def _solve_coarse(self, r: FloatArray, depth: int) -> FloatArray:
        """At most two steps of flexible conjugate gradients, each preconditioned by the cycle below."""
        if depth == len(self.levels) - 1:
            return self._cycle(r, depth)
        level = self.levels[depth]
        p = self._cycle(r, depth).copy()
        Ap = level.apply(p)
        curvature = np.vdot(p, Ap)
        if not curvature > 0.0:
            return p
        step = np.vdot(p, r) / curvature
        x = step * p
        left = r - step * Ap
        if np.vdot(left, left) <= _COARSE_TOLERANCE**2 * np.vdot(r, r):
            return x
        z = self._cycle(left, depth)
        beta = np.vdot(z, Ap) / curvature
        q = z - beta * p
        Aq = level.apply(q)
        curvature = np.vdot(q, Aq)
        if curvature > 0.0:
            x += (np.vdot(q, left) / curvature) * q
        return x


def _aggregate(level: Level) -> tuple[IntArray, int]:
    """Aggregate number of each task, and how many; at most half as many as tasks wherever ties exist."""
    strict = level.n >= _STRICT_FROM
    for threshold, of_both in ((_STRONG, strict), (_STRONG, False), (0.0, False)):
        rows, strong = kernels.strong_neighbours(level.ptr, level.nbr, level.data, threshold, of_both)
        aggregate = np.empty(level.n, dtype=np.int32)
        roots = np.empty(level.n, dtype=np.int32)
        count = int(amg_core.standard_aggregation(level.n, rows, strong, aggregate, roots))
        alone = np.flatnonzero(aggregate < 0)
        aggregate[alone] = count + np.arange(len(alone))
        if count + len(alone) <= level.n / 2:
            break
    return aggregate, count + len(alone)
