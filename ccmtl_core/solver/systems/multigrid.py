"""The linear system of a round, and the multigrid that preconditions it.

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
from scipy.linalg import LinAlgError, cho_factor, eigh
from scipy.linalg.lapack import dpotrs

from ccmtl_core.base.arrays import read_only
from ccmtl_core.base.types import FloatArray, IndexArray
from ccmtl_core.kernels import wide_blocks
from ccmtl_core.kernels.solver import block_kernels
from ccmtl_core.kernels.solver import system_kernels as kernels
from ccmtl_core.kernels.vectors import Lanes, lanes_for
from ccmtl_core.solver.systems.pooled_spectrum import PooledSpectrum

_DIRECT_UP_TO = 256  # unknowns of the coarsest level, solved by a dense factorisation
_STRONG = 0.25  # a tie is strong from this share of the largest tie of the task
_REDUCED = 0.8  # of its tasks must remain at most, or ties strong at one end will do
_DEFINITE = 1e-6  # smallest pivot of the scaled coarsest level that counts as definite
_NULL = 1e-13  # of its largest eigenvalue: a direction without data
_NARROW = 16  # features up to which blocks are inverted anew each time, in a compiled loop
_AHEAD = 1.5  # times a task's ties, when its wide block is inverted anew: they mostly grow
_STILL_SMOOTHS = 0.4, 1.7  # times that: ties with which the inverse still smooths; from 2 on, it might not
_WORSE = 1.5  # times the fewest cycles on the same aggregates, from where they serve no longer
_SINGLE = 1e6  # trace of a block times that of its inverse, up to which single precision keeps a digit
_COARSE_TOLERANCE = 0.25  # a coarse problem solved to this residual needs no second step


class Level:
    """One level: its graph in compressed rows, its Gram blocks, and the aggregates of the next level."""

    def __init__(self, head: IndexArray, tail: IndexArray, G: FloatArray, lanes: Lanes) -> None:
        self.n, self.P = G.shape[:2]
        self.G, self.lanes = G, lanes
        self.head, self.tail = head, tail
        self.ptr, self.split, self.nbr, self.eid = kernels.adjacency(self.n, head, tail)
        self.data = np.empty(len(self.nbr))
        self.diagonal = np.empty(self.n)
        self.inverse = np.empty(G.shape, np.float64 if self.P <= _NARROW else np.float32)
        self._inverted = np.full(self.n, np.nan)  # sums of ties that blocks were inverted with
        self.shift = np.zeros(self.n)
        self.x = np.empty((self.n, self.P))
        self.residual = np.empty((self.n, self.P))
        self.aggregate: IndexArray | None = None
        self.edge_map: IndexArray = np.empty(0, dtype=np.int32)

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
        kernels.apply_system(self.ptr, self.nbr, self.data, self.diagonal, self.G, x, out, self.lanes)
        return out

    def invert_blocks(self) -> None:
        """Invert the diagonal blocks for the smoother; wide ones only where ties have changed by much."""
        if self.P <= _NARROW:
            block_kernels.invert_blocks(read_only(self.G), self.diagonal, self.inverse, self.lanes)
            return
        least, most = (share * self._inverted for share in _STILL_SMOOTHS)
        stale = np.flatnonzero(~((least <= self.diagonal) & (self.diagonal <= most)))
        ahead = np.where(np.isnan(self._inverted[stale]), 1.0, _AHEAD)
        self._inverted[stale] = ahead * self.diagonal[stale]
        wide_blocks.invert_wide(self.G, stale, self._inverted, self.inverse)
        if self.inverse.dtype == np.float32 and not self._single_precision_will_do():
            self.inverse = np.empty(self.G.shape)
            wide_blocks.invert_wide(self.G, np.arange(self.n), self._inverted, self.inverse)
        self.shift = self._inverted - self.diagonal

    def _single_precision_will_do(self) -> bool:
        """Whether rounding the inverses to single precision is far below their smallest eigenvalues."""
        size = np.trace(self.G, axis1=1, axis2=2) + self.P * self._inverted
        with np.errstate(over="ignore"):
            condition = size * np.trace(self.inverse, axis1=1, axis2=2)
        return bool(np.all(condition <= _SINGLE))

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
    spectrum : PooledSpectrum
        Of the same blocks; the preconditioner never moves tasks along directions without data.

    Notes
    -----
    :meth:`update` must be called before :meth:`apply` and :meth:`precondition`. The preconditioner is
    symmetric up to the inner tolerance, so it wants a flexible conjugate gradient method.
    """

    def __init__(self, edges: IndexArray, gram: FloatArray, spectrum: PooledSpectrum) -> None:
        self._spectrum = spectrum
        head, tail = (np.ascontiguousarray(column, dtype=np.int32) for column in edges.T)
        self._finest = Level(head, tail, gram, lanes_for(*gram.shape[:2]))
        self.levels = [self._finest]
        self._w: FloatArray | None = None
        self._spent, self._least_spent = 0, np.inf  # cycles since the last update; fewest on these aggregates

    def update(self, w: FloatArray) -> None:
        """Take new edge weights w (E,) > 0 and rebuild the hierarchy: one pass over the edges per level.

        Wide blocks are dear to sum and to invert: their aggregates stay for as long as they serve.
        """
        if self._w is not None and np.array_equal(w, self._w):
            return
        serves = self._finest.P > _NARROW and self._spent <= _WORSE * self._least_spent + 1
        self._least_spent = min(self._least_spent, self._spent or np.inf) if serves else np.inf
        self._w, self._spent = w.copy(), 0
        depth, level = 0, self._finest
        level.set_weights(w)
        while not level.is_small:
            level.invert_blocks()
            if not serves or depth + 1 == len(self.levels):
                self.levels[depth + 1 :] = [self._coarsen(level)]
            coarse_w = np.empty(len(self.levels[depth + 1].head))
            kernels.sum_edge_weights(level.edge_map, w, coarse_w)
            depth, w = depth + 1, coarse_w
            level = self.levels[depth]
            level.set_weights(w)
        if len(level.head):
            self._factorise(level)
        else:
            level.inverse = _pseudo_inverse(level.G)

    def apply(self, x: FloatArray) -> FloatArray:
        """Return A x, both (T, P)."""
        return self._finest.apply(x)

    def precondition(self, r: FloatArray) -> FloatArray:
        """Return an approximation of A⁻¹ r, both (T, P); the array is overwritten by the next call."""
        self._spent += 1
        z = self._cycle(r, 0)
        self._spectrum.remove_null(z)
        return z

    def _coarsen(self, level: Level) -> Level:
        level.aggregate, n_coarse = _aggregate(level)
        head, tail, level.edge_map = kernels.coarse_edges(
            level.ptr, level.nbr, level.eid, level.aggregate, n_coarse
        )
        G = np.empty((n_coarse, level.P, level.P))
        kernels.sum_blocks(level.aggregate, read_only(level.G), G)
        return Level(head, tail, G, level.lanes)

    def _factorise(self, level: Level) -> None:
        """Invert the coarsest level on its range: directions without data in a component make it singular."""
        A = level.dense()
        size = np.sqrt(np.diag(A))
        size[size == 0.0] = 1.0
        A /= size[:, None] * size
        try:
            factor = cho_factor(A, check_finite=False)
            self._is_definite = bool(np.diag(factor[0]).min() > _DEFINITE)
        except LinAlgError:
            self._is_definite = False
        if self._is_definite:
            self._factor, self._size = factor, size
            return
        values, vectors = eigh(A, driver="ev", check_finite=False)  # others have failed to converge
        kept = values > _NULL * values[-1]
        scaled = vectors[:, kept] / size[:, None]
        self._inverse = (scaled / values[kept]) @ scaled.T

    def _solve_coarsest(self, level: Level, r: FloatArray) -> FloatArray:
        if len(level.head) == 0:
            x: FloatArray = np.matmul(level.inverse, r[:, :, None])[:, :, 0]
            return x
        if self._is_definite:
            factor, lower = self._factor
            x = dpotrs(factor, r.ravel() / self._size, lower)[0] / self._size
        else:
            x = self._inverse @ r.ravel()
        return x.reshape(r.shape)

    def _cycle(self, r: FloatArray, depth: int) -> FloatArray:
        level = self.levels[depth]
        if depth == len(self.levels) - 1:
            return self._solve_coarsest(level, r)
        kernels.smooth_forward(
            level.ptr, level.split, level.nbr, level.data, level.inverse, level.shift, r, level.x,
            level.residual, level.lanes,
        )  # fmt: skip
        coarse_r = np.empty((self.levels[depth + 1].n, level.P))
        kernels.restrict(level.aggregate, level.residual, coarse_r, level.lanes)
        kernels.prolong_add(level.aggregate, self._solve_coarse(coarse_r, depth + 1), level.x, level.lanes)
        kernels.smooth_backward(
            level.ptr, level.nbr, level.data, level.inverse, level.shift, r, level.x, level.lanes
        )
        return level.x

    def _solve_coarse(self, r: FloatArray, depth: int) -> FloatArray:
        """At most two steps of flexible conjugate gradients, each preconditioned by the cycle below."""
        level = self.levels[depth]
        if depth == len(self.levels) - 1:
            return self._solve_coarsest(level, r)
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


def _pseudo_inverse(G: FloatArray) -> FloatArray:
    """Inverse of each block (n, P, P) on its range, decided after scaling its columns to length one."""
    size = np.sqrt(np.diagonal(G, axis1=1, axis2=2))
    size = np.where(size > 0.0, size, 1.0)
    scale = size[:, :, None] * size[:, None, :]
    values, vectors = np.linalg.eigh(G / scale)
    kept = values > _NULL * values[:, -1:]
    inverse = np.where(kept, 1.0 / np.where(kept, values, 1.0), 0.0)
    blocks: FloatArray = np.matmul(vectors * inverse[:, None, :], np.swapaxes(vectors, 1, 2)) / scale
    return blocks


def _aggregate(level: Level) -> tuple[IndexArray, int]:
    """Aggregate number of each task, and how many: markedly fewer than tasks wherever ties exist."""
    for threshold, of_both in ((_STRONG, True), (_STRONG, False), (0.0, False)):
        rows, strong = kernels.strong_neighbours(level.ptr, level.nbr, level.data, threshold, of_both)
        aggregate = np.empty(level.n, dtype=np.int32)
        roots = np.empty(level.n, dtype=np.int32)
        count = int(amg_core.standard_aggregation(level.n, rows, strong, aggregate, roots))
        alone = np.flatnonzero(aggregate < 0)
        aggregate[alone] = count + np.arange(len(alone))
        if count + len(alone) <= _REDUCED * level.n:
            break
    return aggregate, count + len(alone)
