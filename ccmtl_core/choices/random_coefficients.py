"""Estimate mean, covariance and noise of random coefficients, and each task's expected weights.

The model of Swamy (Econometrica 38, 1970) and Laird and Ware (Biometrics 38, 1982):

    y_t = X_t w_t + e_t,     w_t ~ N(m, S),     e_t ~ N(0, σ²)

fitted by expectation-maximisation of the marginal likelihood, from statistics alone. With S = L Lᵀ and
w_t = m + L z_t, the posterior of z_t has the precision B_t = I + Lᵀ G_t L / σ², which is never singular, and
the mean B_t⁻¹ Lᵀ (c_t − G_t m) / σ².
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import rq

from ccmtl_core.base.arrays import read_only
from ccmtl_core.base.display import counted, shown
from ccmtl_core.base.threads import WORTH_SHARING, sharing, slices
from ccmtl_core.base.types import FloatArray, IntArray
from ccmtl_core.choices.feature_basis import from_basis
from ccmtl_core.choices.single_task import pooled_weights
from ccmtl_core.kernels.statistics.posterior_kernel import expect, expect_wide
from ccmtl_core.statistics.inputs import Statistics, statistics_of

MAX_STEPS = 1000
PATIENCE = 1e-5
"""Mean gain of a task's log-likelihood in one step, below which to stop."""
LEAST_VARIANCE = 1e-4
"""Of the mean variance over directions, in units of what the rows tell of them: S stays invertible."""
SILENT = 1e-10
"""Of the largest eigenvalue of the mean Gram block: directions below it tell nothing of the weights."""
LEAST_NOISE = 1e-12
"""Of the pooled model's: with less left, rows are fitted exactly, the likelihood has no bound."""
LEAST_RATIO = 1e-4
"""What noise and variances can fall to in one plain step."""
TINY = 1e-150
"""A deviation that is none, in units of the first one."""
MEMORY = 5
"""Steps before, from which the next one is extrapolated."""
WIDE = 17
"""Features from which a step, which costs their cube, is taken by BLAS, with fewer tasks, and fewer times."""
MOST_DRAWN = 1000
"""Tasks of many features, drawn by chance, whose likelihood is climbed."""
WIDE_PATIENCE = 1e-3
"""``PATIENCE`` for many features: what is left to gain says little of any one of their variances."""


@dataclass(frozen=True, eq=False)
class RandomCoefficients:
    """A normal distribution of the tasks' weights, and the noise around them.

    Parameters
    ----------
    mean : (P,) float64
        m.
    root : (P, P) float64
        L, upper triangular with a positive diagonal; the covariance is S = L Lᵀ.
    noise : float
        σ², the variance of a row.
    log_likelihoods : tuple of float
        Of all rows, without its constant, at each step; none falls below the one before.
    """

    mean: FloatArray
    root: FloatArray
    noise: float
    log_likelihoods: tuple[float, ...]

    def __repr__(self) -> str:
        return shown(self, counted(len(self.mean), "feature"), f"noise {self.noise:.4g}")

    @property
    def covariance(self) -> FloatArray:
        """S, (P, P)."""
        return self.root @ self.root.T

    def expected_scores(self, statistics: Statistics) -> FloatArray:
        """The posterior mean of z_t = L⁻¹ (w_t − m), (T, P): how many deviations each task is from m."""
        return _Posterior(statistics, statistics.n_samples).at(self).scores

    def expected_weights(self, statistics: Statistics) -> FloatArray:
        """Each task's posterior mean, (T, P): its own weights shrunk to m as far as its rows leave open.

        Examples
        --------
        >>> from ccmtl_core import SufficientStatistics, TaskDataset
        >>> data = TaskDataset.from_arrays([[[1.0]], [[1.0]]], [[0.0], [2.0]])
        >>> prior = RandomCoefficients(np.ones(1), np.ones((1, 1)), 1.0, ())
        >>> prior.expected_weights(SufficientStatistics.from_dataset(data)).ravel()
        array([0.5, 1.5])
        """
        return self.mean + from_basis(self.expected_scores(statistics), self.root)


def random_coefficients(statistics: Statistics, n_rows: IntArray | None = None) -> RandomCoefficients:
    """Estimate mean, covariance and noise from all tasks that have rows.

    Parameters
    ----------
    statistics : SufficientStatistics or TriangularStatistics
        T tasks with P features.
    n_rows : (T,) int64, optional
        Rows that tell of the noise, where they are not ``n_samples``: one less for each mean taken out.

    Returns
    -------
    RandomCoefficients
        Of data that say nothing: all weights zero, unit covariance.

    Examples
    --------
    >>> from ccmtl_core import SufficientStatistics, TaskDataset
    >>> rng = np.random.default_rng(0)
    >>> X, W = rng.standard_normal((500, 20, 1)), 3.0 + 0.5 * rng.standard_normal((500, 1))
    >>> y = X[:, :, 0] * W + 2.0 * rng.standard_normal((500, 20))
    >>> found = random_coefficients(SufficientStatistics.from_dataset(TaskDataset.from_arrays(X, y)))
    >>> bool(abs(found.mean[0] - 3.0) < 0.1), bool(abs(found.root[0, 0] - 0.5) < 0.1)
    (True, True)
    >>> bool(abs(found.noise - 4.0) < 0.2)
    True
    """
    statistics = statistics_of(statistics)
    rows = statistics.n_samples if n_rows is None else n_rows
    telling = np.flatnonzero(np.asarray(statistics.gram).any(axis=(1, 2)))
    now, size = _first(statistics, rows, max(len(telling), 1))
    if statistics.n_features >= WIDE and len(telling) > MOST_DRAWN:
        drawn = np.sort(np.random.default_rng(0).choice(telling, MOST_DRAWN, replace=False))
        posterior = _Posterior(statistics, rows, drawn)
    else:
        posterior = _Posterior(statistics, rows)
    if not posterior.n_telling:
        return now
    moments, extrapolation = posterior.at(now), _Extrapolation(now)
    history, least = [moments.log_likelihood], LEAST_NOISE * now.noise
    patience = (PATIENCE if statistics.n_features < WIDE else WIDE_PATIENCE) * posterior.n_telling
    for _ in range(MAX_STEPS):
        plain = _maximised(now, moments)
        then = extrapolation.of(now, plain)
        after = posterior.at(then)
        if then is not plain and not after.log_likelihood > moments.log_likelihood:  # too far
            extrapolation.forget()
            then = plain
            after = posterior.at(then)
        gain = after.log_likelihood - moments.log_likelihood
        if not gain > 0.0:
            break
        now, moments = then, after
        history.append(moments.log_likelihood)
        if now.noise < least:
            break
        if gain < patience:
            if then is plain:
                break
            extrapolation.forget()  # it may have led astray: a plain step tells
    return RandomCoefficients(now.mean, _floored(now.root, size, now.noise), now.noise, tuple(history))


@dataclass(frozen=True, eq=False)
class _Moments:
    """Moments of the posterior of the z_t, given the parameters.

    Parameters
    ----------
    scores : (T, P) float64
        E z_t.
    total : (P,) float64
        Σ E z_t, over tasks with rows as all sums.
    square : (P, P) float64
        Σ E z_t z_tᵀ.
    error : float
        Σ E ‖y_t − X_t w_t‖².
    log_likelihood : float
        Of the parameters.
    n_tasks, n_rows : int
        How many are summed over.
    """

    scores: FloatArray
    total: FloatArray
    square: FloatArray
    error: float
    log_likelihood: float
    n_tasks: int
    n_rows: int


class _Posterior:
    """Statistics that are looked at again and again; a part of the tasks on each thread."""

    def __init__(self, statistics: Statistics, n_rows: IntArray, drawn: IntArray | None = None) -> None:
        alone = statistics.least_squares
        arrays = statistics.gram, statistics.xty, alone.weights, alone.residual
        some = slice(None) if drawn is None else drawn
        self._arrays = tuple(read_only(array[some]) for array in arrays)
        self.n_telling = int(self._arrays[0].any(axis=(1, 2)).sum())
        self._n_rows = int(n_rows[some].sum())
        T, P = self._arrays[1].shape
        self._parts = slices(T, 2 if T * P**3 >= WORTH_SHARING else 1)

    def at(self, parameters: RandomCoefficients) -> _Moments:
        """The expectation step."""
        m, L, noise = read_only(parameters.mean), read_only(parameters.root), parameters.noise
        T, P = self._arrays[1].shape
        scores, expectation = np.zeros((T, P)), expect if P < WIDE else expect_wide

        def expect_some(tasks: slice) -> FloatArray:
            square, sums = np.zeros((P, P)), np.zeros(3)
            gram, xty, alone, residual = (array[tasks] for array in self._arrays)
            expectation(gram, xty, alone, residual, m, L, noise, scores[tasks], square, sums)
            return np.concatenate([square.ravel(), sums])

        with sharing(len(self._parts)) as share:
            both = np.sum(share(expect_some, self._parts), axis=0)
        error, misfit, log_determinant = both[-3:]
        likelihood = -0.5 * (self._n_rows * np.log(noise) + log_determinant + misfit)
        square = both[:-3].reshape(P, P)
        return _Moments(
            scores, scores.sum(axis=0), square, error, float(likelihood), self.n_telling, self._n_rows
        )


def _maximised(now: RandomCoefficients, moments: _Moments) -> RandomCoefficients:
    """The maximisation step."""
    shift = moments.total / moments.n_tasks
    values, vectors = np.linalg.eigh(moments.square / moments.n_tasks - np.outer(shift, shift))
    root = now.root @ _upper_root(vectors * np.sqrt(np.maximum(values, LEAST_RATIO)))
    ratio = max(moments.error / max(moments.n_rows, 1) / now.noise, LEAST_RATIO)
    return RandomCoefficients(now.mean + now.root @ shift, root, now.noise * ratio, ())


class _Extrapolation:
    """Extrapolates from the last steps: expectation-maximisation alone takes hundreds, ever shorter ones.

    Anderson's method (J. ACM 12, 1965; Walker and Ni, SIAM J. Numer. Anal. 49, 2011): of the affine
    combinations of the last steps' ends, the one whose own step would be the shortest. Parameters are the
    mean, the logarithm of the noise and that of the covariance, in the metric of the first covariance, so
    that they go along with any change of the features' basis.
    """

    def __init__(self, first: RandomCoefficients) -> None:
        self._first = first
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self._ends: list[FloatArray] = []
        self._steps: list[FloatArray] = []

    def of(self, now: RandomCoefficients, plain: RandomCoefficients) -> RandomCoefficients:
        """Return the next parameters, given those now and after a plain step; at first the latter."""
        end = self._numbers(plain)
        step = end - self._numbers(now)
        self._ends, self._steps = [*self._ends[-MEMORY:], end], [*self._steps[-MEMORY:], step]
        if len(self._steps) == 1:
            return plain
        shares = np.linalg.lstsq(np.diff(self._steps, axis=0).T, step, rcond=1e-8)[0]
        further = shares @ np.diff(self._ends, axis=0)
        if np.abs(further).max() > -np.log(LEAST_RATIO):  # than a plain step can lead
            return plain
        return self._parameters(end - further)

    def _numbers(self, at: RandomCoefficients) -> FloatArray:
        first = self._first
        root = np.linalg.solve(first.root, at.root)
        vectors, values, _ = np.linalg.svd(root)
        logarithm = (vectors * (2.0 * np.log(np.maximum(values, TINY)))) @ vectors.T
        shift = np.linalg.solve(first.root, at.mean - first.mean)
        return np.concatenate([shift, [np.log(at.noise / first.noise)], logarithm.ravel()])

    def _parameters(self, numbers: FloatArray) -> RandomCoefficients:
        first, P = self._first, len(self._first.mean)
        values, vectors = np.linalg.eigh(numbers[P + 1 :].reshape(P, P))
        root = first.root @ _upper_root(vectors * np.exp(0.5 * values))
        noise = first.noise * float(np.exp(numbers[P]))
        return RandomCoefficients(first.mean + first.root @ numbers[:P], root, noise, ())


def _first(statistics: Statistics, n_rows: IntArray, n_telling: int) -> tuple[RandomCoefficients, FloatArray]:
    """Return the parameters to begin with, and the unit of S.

    They are pooled weights, and a prior that weighs as much as the rows of a task. A change of the features'
    basis changes them, and all that follows, accordingly.
    """
    m = pooled_weights(statistics)
    gram = np.asarray(statistics.gram).sum(axis=0) / n_telling
    length = np.sqrt(np.diagonal(gram))
    length = np.where(length > 0, length, 1.0)
    values, vectors = np.linalg.eigh(gram / np.outer(length, length))
    values = np.where(values > SILENT * values[-1], values, max(float(values[-1]), 1.0))
    size = _upper_root(vectors / np.sqrt(values) / length[:, None])
    error = max(float(statistics.squared_error(m).sum()), LEAST_NOISE * statistics.total_yty)
    noise = error / max(int(n_rows.sum()), 1) or 1.0
    return RandomCoefficients(m, np.sqrt(noise) * size, noise, ()), size


def _floored(root: FloatArray, size: FloatArray, noise: float) -> FloatArray:
    """L without directions of hardly any variance, in the unit ``size``; the mean one is at least the noise.

    Where tasks agree, variances fall towards zero for as long as steps are taken. Strengths would then have
    another unit in each fold of the rows.
    """
    relative = np.linalg.solve(size, root)
    values, vectors = np.linalg.eigh(relative @ relative.T)
    values = np.maximum(values, LEAST_VARIANCE * values.mean())
    values *= max(1.0, noise / values.mean())
    return size @ _upper_root(vectors * np.sqrt(values))


def _upper_root(M: FloatArray) -> FloatArray:
    """The upper triangular L of positive diagonal with L Lᵀ = M Mᵀ, for M of full rank."""
    L = np.asarray(rq(M, mode="r"), dtype=np.float64)
    return np.ascontiguousarray(L * np.where(np.diagonal(L) < 0, -1.0, 1.0))
