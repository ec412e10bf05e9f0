"""Which directions the rows of a whole component determine, and which they do not.

Along a direction in which no task of a component has data, all its tasks can shift together without
changing the objective: the solver stays where it started, and the certificate needs no bound there. The
solver also stays where the data are too faint to be told from rounding: whether y depends on such a direction
all the same is for :meth:`PooledSpectrum.hides` to say.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ccmtl_core.base.arrays import read_only
from ccmtl_core.base.types import EPS, BoolArray, FloatArray, IntArray
from ccmtl_core.kernels.grouping import group_sums
from ccmtl_core.kernels.solver import system_kernels as kernels
from ccmtl_core.statistics.least_squares import SURE

_STILL = 1e-13  # of the largest eigenvalue, columns scaled to length one: the solver does not move along it
_ROUNDING = 8.0 * np.finfo(float).eps  # times P: below it, an eigenvalue cannot be told from zero


@dataclass(frozen=True, eq=False)
class PooledSpectrum:
    """Of Σ_t G_t over each of C components.

    Parameters
    ----------
    component : (T,) int64
        Component of each task.
    size : (C,) int64
        Tasks of each component.
    null : (C, P, P) float64 or None
        Orthogonal projector on the directions with no data or only a rounding's worth; None where there are
        none in any component.
    smallest : (C,) float64
        A lower bound on the eigenvalues along all directions with data; infinite where there are none.
    values, vectors, scale : (C, P), (C, P, P), (C, P) float64
        Σ G_t = S V diag(values) Vᵀ S with S = diag(scale), columns scaled to length one.
    """

    component: IntArray
    size: IntArray
    null: FloatArray | None
    smallest: FloatArray
    values: FloatArray
    vectors: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, gram: FloatArray, component: IntArray, n_components: int) -> PooledSpectrum:
        """Compute it; rank is decided after scaling the columns to length one."""
        P = gram.shape[1]
        pooled = np.zeros((n_components, P, P))
        kernels.sum_blocks(component, read_only(gram), pooled)
        length = np.sqrt(np.diagonal(pooled, axis1=1, axis2=2))
        scale = np.where(length > 0, length, 1.0)
        values, vectors = np.linalg.eigh(pooled / (scale[:, :, None] * scale[:, None, :]))
        empty = values <= _STILL * values[:, -1:]
        certain = _certain(values)
        kept = np.where(certain > 0.0, certain, np.inf).min(axis=1)
        faint = _faint(gram, component, scale)
        kept = np.where(
            (faint > 0.0).sum(axis=1) > (certain > 0.0).sum(axis=1),
            np.where(faint > 0.0, faint, np.inf).min(axis=1),
            kept,
        )
        shortest = np.where(length > 0, length, np.inf).min(axis=1)
        finite = np.isfinite(kept)
        smallest = np.where(finite, kept * np.where(finite, shortest, 1.0) ** 2, np.inf)
        null = _projector(vectors, empty, scale) if empty.any() else None
        size = np.bincount(component, minlength=n_components)
        return cls(component, size, null, smallest, values, vectors, scale)

    @cached_property
    def cut(self) -> BoolArray:
        """(C, P) Directions whose eigenvalue cannot be told from zero."""
        return np.asarray(_certain(self.values) <= 0.0)

    def hides(self, xty: FloatArray, fitted: FloatArray, terms: FloatArray) -> tuple[BoolArray, FloatArray]:
        """Whether J falls, by more than rounding, along directions of a component that rounding hides.

        Parameters
        ----------
        xty, fitted : (T, P) float64
            c_t and G_t w_t; flows cancel in the sum of c_t − G_t w_t over a component.
        terms : (T, P) float64
            |G_t| |w_t|: rounding of G_t w_t is relative to them, that of c_t to itself.

        Returns
        -------
        (C,) bool, (C,) float64
            And by how much it may fall, where not, by what rounding of G_t w_t does along them.
        """
        cut, P = self.cut, xty.shape[1]
        rounding = SURE * EPS * np.abs(xty) + P * _ROUNDING * terms
        total, size = (self.mean(x) * self.size[:, None] / self.scale for x in (xty - fitted, rounding))
        along = np.einsum("cpa,cp->ca", self.vectors, total)
        noise = np.einsum("cpa,cp->ca", np.abs(self.vectors), size)
        # What a direction with data leaks into a hidden one, by the rounding of the eigenvectors.
        relative = np.divide(self.values[:, -1:], self.values, out=np.zeros_like(along), where=~cut)
        leak = P * _ROUNDING * (np.abs(along) * relative).sum(axis=1, keepdims=True)
        beyond = (cut & (np.abs(along) > noise + leak)).any(axis=1)
        # A residual as large as rounding, along an eigenvalue as large as rounding, in 1/2 b² / w.
        lost = ((self.mean(terms) * self.size[:, None] / self.scale) ** 2).sum(axis=1)
        largest = np.where(self.values[:, -1] > 0.0, self.values[:, -1], 1.0)
        return beyond, np.where(cut.any(axis=1), 0.5 * P * _ROUNDING * lost / largest, 0.0)

    def remove_null(self, x: FloatArray) -> None:
        """Take from x (T, P), in place, what all tasks of a component share along directions without data."""
        if self.null is None:
            return
        mean = self.mean(x)
        x -= np.matmul(self.null, mean[:, :, None])[self.component, :, 0]

    def mean(self, x: FloatArray) -> FloatArray:
        """Mean of x (T, P) over each component, (C, P)."""
        return group_sums(self.component, x, len(self.size)) / self.size[:, None]


def _projector(vectors: FloatArray, empty: BoolArray, scale: FloatArray) -> FloatArray:
    """Projectors on span(vectors[:, empty] / scale), one component at a time: few have any."""
    C, P = scale.shape
    null = np.zeros((C, P, P))
    for c in np.flatnonzero(empty.any(axis=1)):
        basis, _ = np.linalg.qr(vectors[c][:, empty[c]] / scale[c][:, None])
        null[c] = basis @ basis.T
    return null


def _certain(values: FloatArray) -> FloatArray:
    """Eigenvalues (C, P) lowered by a bound on their rounding errors."""
    lowered: FloatArray = values - values.shape[1] * _ROUNDING * values[:, -1:]
    return lowered


def _faint(gram: FloatArray, component: IntArray, scale: FloatArray) -> FloatArray:
    """Lower bounds (C, P) on the scaled eigenvalues that show directions which only faint tasks know."""
    S = gram / (scale[:, :, None] * scale[:, None, :])[component]
    size = np.trace(S, axis1=1, axis2=2)
    even = np.zeros((len(scale), *gram.shape[1:]))
    kernels.sum_blocks(component, read_only(S / np.where(size > 0.0, size, 1.0)[:, None, None]), even)
    least = np.full(len(scale), np.inf)
    np.minimum.at(least, component, np.where(size > 0.0, size, np.inf))
    return _certain(np.linalg.eigvalsh(even)) * np.where(np.isfinite(least), least, 0.0)[:, None]
