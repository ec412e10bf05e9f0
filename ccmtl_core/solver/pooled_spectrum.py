"""Gram blocks and components in, what each component knows as a whole out: directions with and without data.

Along a direction in which no task of a component has data, all its tasks can shift together without
changing the objective: the solver stays where it started, and the certificate needs no bound there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ccmtl_core._types import BoolArray, FloatArray, IntArray
from ccmtl_core.solver import kernels

_NULL = 1e-13  # of the largest eigenvalue, columns scaled to length one: a direction without data


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
        Orthogonal projector on the directions without data; None where every component has data in all.
    smallest : (C,) float64
        A lower bound on the eigenvalues along all other directions; infinite where there are none.
    """

    component: IntArray
    size: IntArray
    null: FloatArray | None
    smallest: FloatArray

    @classmethod
    def of(cls, gram: FloatArray, component: IntArray, n_components: int) -> PooledSpectrum:
        """Compute it; rank is decided after scaling the columns to length one."""
        P = gram.shape[1]
        pooled = np.zeros((n_components, P, P))
        kernels.sum_blocks(component, gram, pooled)
        length = np.sqrt(np.diagonal(pooled, axis1=1, axis2=2))
        scale = np.where(length > 0, length, 1.0)
        values, vectors = np.linalg.eigh(pooled / (scale[:, :, None] * scale[:, None, :]))
        empty = values <= _NULL * values[:, -1:]
        kept = np.where(empty, np.inf, values).min(axis=1)
        shortest = np.where(length > 0, length, np.inf).min(axis=1)
        finite = np.isfinite(kept)
        smallest = np.where(finite, kept * np.where(finite, shortest, 1.0) ** 2, np.inf)
        null = _projector(vectors, empty, scale) if empty.any() else None
        return cls(component, np.bincount(component, minlength=n_components), null, smallest)

    def remove_null(self, x: FloatArray) -> None:
        """Take from x (T, P), in place, what all tasks of a component share along directions without data."""
        if self.null is None:
            return
        mean = self.mean(x)
        x -= np.matmul(self.null, mean[:, :, None])[self.component, :, 0]

    def mean(self, x: FloatArray) -> FloatArray:
        """Mean of x (T, P) over each component, (C, P)."""
        total = np.zeros((len(self.size), x.shape[1]))
        np.add.at(total, self.component, x)
        total /= self.size[:, None]
        return total


def _projector(vectors: FloatArray, empty: BoolArray, scale: FloatArray) -> FloatArray:
    """Projectors on span(vectors[:, empty] / scale), one component at a time: few have any."""
    C, P = scale.shape
    null = np.zeros((C, P, P))
    for c in np.flatnonzero(empty.any(axis=1)):
        basis, _ = np.linalg.qr(vectors[c][:, empty[c]] / scale[c][:, None])
        null[c] = basis @ basis.T
    return null
