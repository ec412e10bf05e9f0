"""Judge sets of features by one model that all series share, from the statistics of the widest rows alone.

Such a model costs one small solve, and its errors on held-out rows a product with their Gram blocks. A fused
model costs a solve of all series. So many sets can be compared before the best one is fused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ccmtl_core.base.types import BoolArray, FloatArray
from ccmtl_core.statistics.sufficient_statistics import SufficientStatistics

LEAST_DIRECTION = 1e-10
"""Of the largest eigenvalue: directions of the features below it are taken for mixtures of others."""


class SharedErrors(NamedTuple):
    """Root mean squared errors (C,) of C models: mean over series, and over all series at once."""

    of_series: FloatArray
    over_all: FloatArray


@dataclass(frozen=True, eq=False)
class _Fold:
    """What trains, summed over the T series, and what is held out.

    Parameters
    ----------
    gram, xty : dict of bool to (P, P), (P,) float64
        Of the rows as they are, and with each series' means taken out (True).
    x_mean, y_mean : (T, P), (T,) float64
        Means of each series; those of all for a series without rows.
    held_out : SufficientStatistics
        Of the block that comes next.
    """

    gram: dict[bool, FloatArray]
    xty: dict[bool, FloatArray]
    x_mean: FloatArray
    y_mean: FloatArray
    held_out: SufficientStatistics

    def weights(self, wanted: BoolArray, fit_intercept: bool) -> FloatArray:
        """Least squares of all rows on the features wanted, (P,), zero for the others."""
        gram, xty = self.gram[fit_intercept][np.ix_(wanted, wanted)], self.xty[fit_intercept][wanted]
        length = np.sqrt(np.maximum(np.diagonal(gram), 0.0))
        length = np.where(length > 0.0, length, 1.0)
        values, vectors = np.linalg.eigh(gram / np.outer(length, length))
        kept = values > LEAST_DIRECTION * max(float(values[-1]), 0.0)
        vectors = vectors[:, kept]
        found = np.zeros(len(wanted))
        found[wanted] = (vectors / values[kept]) @ (vectors.T @ (xty / length)) / length
        return found

    def errors(self, W: FloatArray, fit_intercept: bool) -> SharedErrors:
        """Of models (C, P) on what is held out."""
        part = self.held_out
        T, P = part.xty.shape
        squares = (W[:, :, None] * W[:, None, :]).reshape(len(W), P * P)
        error = part.gram.reshape(T, P * P) @ squares.T - 2.0 * (part.xty @ W.T) + part.yty[:, None]
        if fit_intercept and part.x_sum is not None and part.y_sum is not None:
            b = self.y_mean[:, None] - self.x_mean @ W.T
            error += b * (2.0 * (part.x_sum @ W.T) - 2.0 * part.y_sum[:, None] + b * part.n_samples[:, None])
        some = part.n_samples > 0
        squares = np.maximum(error[some], 0.0) / part.n_samples[some, None]
        return SharedErrors(np.sqrt(squares).mean(axis=0), np.sqrt(squares.mean(axis=0)))


class SharedModels:
    """Errors of shared models on each block of time but the first, trained on those before it.

    Parameters
    ----------
    blocks : sequence of SufficientStatistics
        Of the widest rows, P features, the oldest block first; with sums of x and y.

    Examples
    --------
    >>> from ccmtl_core import TaskDataset
    >>> data = TaskDataset.from_arrays([[[1.0, 0.0], [2.0, 1.0], [3.0, 0.0]]], [[2.0, 4.0, 6.0]])
    >>> blocks = SufficientStatistics.by_fold(data, [0, 0, 1], 2)
    >>> SharedModels(blocks).errors([[True, False], [False, True]], fit_intercept=False).of_series
    array([0., 6.])
    """

    def __init__(self, blocks: Sequence[SufficientStatistics]) -> None:
        T, P = blocks[0].xty.shape
        plain, target = np.zeros((P, P)), np.zeros(P)
        x_sum, y_sum, n = np.zeros((T, P)), np.zeros(T), np.zeros(T)
        self._folds = []
        for trains, held_out in pairwise(blocks):
            assert trains.x_sum is not None
            assert trains.y_sum is not None
            plain, target = plain + trains.gram.sum(axis=0), target + trains.xty.sum(axis=0)
            x_sum, y_sum, n = x_sum + trains.x_sum, y_sum + trains.y_sum, n + trains.n_samples
            count = np.maximum(n, 1.0)[:, None]
            some = n > 0
            x_mean = np.where(some[:, None], x_sum / count, x_sum.sum(axis=0) / n.sum())
            y_mean = np.where(some, y_sum / count[:, 0], y_sum.sum() / n.sum())
            gram = {False: plain, True: plain - x_mean[some].T @ x_sum[some]}
            xty = {False: target, True: target - x_mean[some].T @ y_sum[some]}
            self._folds.append(_Fold(gram, xty, x_mean, y_mean, held_out))

    def errors(self, wanted: Sequence[BoolArray] | BoolArray, *, fit_intercept: bool) -> SharedErrors:
        """Mean error over the blocks of each of C sets of features.

        Parameters
        ----------
        wanted : (C, P) bool
            The features of each set.
        fit_intercept : bool
            Give each series an intercept of its own.

        Returns
        -------
        SharedErrors
            Means over blocks.
        """
        sets = np.asarray(wanted, dtype=np.bool_)
        total = np.zeros((2, len(sets)))
        for fold in self._folds:
            W = np.array([fold.weights(one, fit_intercept) for one in sets])
            total += fold.errors(W, fit_intercept)
        return SharedErrors(*total / len(self._folds))
