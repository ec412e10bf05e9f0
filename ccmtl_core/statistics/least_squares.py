"""Minimum-norm least squares of each task, and how many digits its residual has left.

Both forms of the statistics decide rank after scaling every column to length one: rounding in
their entries is relative to the columns, so that features of wildly different scale stay apart
from features that are collinear. Well-conditioned tasks take a triangular solve; the rest an
eigen- or singular value decomposition (Golub and Van Loan, Matrix Computations, 4th ed., 5.5).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ccmtl_core.base.arrays import read_only
from ccmtl_core.base.types import EPS, BoolArray, FloatArray, IntArray
from ccmtl_core.kernels.block_products import absolute_quadratic
from ccmtl_core.kernels.cholesky import SAFE_PIVOT
from ccmtl_core.kernels.statistics.least_squares_kernels import solve_cholesky, solve_triangular

MAX_DIGITS = -float(np.log10(EPS))
FEW_DIGITS = 6
SURE = 1e3
"""Times what rounding does to a product: what exceeds it is in the data."""

BATCH_ENTRIES = 2**22


@dataclass(frozen=True, eq=False)
class LeastSquares:
    """Least squares of each task alone.

    Parameters
    ----------
    weights : (T, P) float64
        ŵ_t, the minimiser of smallest norm; zero for a task without data.
    residual : (T,) float64
        RSS_t = ‖X_t ŵ_t − y_t‖².
    residual_error : (T,) float64
        Bounds on the rounding errors of ``residual``, given the rank as stated.
    rank : (T,) int64
        Numerical rank of X_t.
    hides : (T,) bool
        Whether y depends, by more than rounding, on a direction of X_t that was taken for rounding: ŵ_t then
        need not be near a minimiser, nor RSS_t near the minimum.
    """

    weights: FloatArray
    residual: FloatArray
    residual_error: FloatArray
    rank: IntArray
    hides: BoolArray

    def reordered(self, order: IntArray) -> LeastSquares:
        """The same tasks, renumbered: the new task t is the old ``order[t]``."""
        return LeastSquares(
            self.weights[order],
            self.residual[order],
            self.residual_error[order],
            self.rank[order],
            self.hides[order],
        )

    @cached_property
    def digits(self) -> FloatArray:
        """Decimal digits left in each task's residual, (T,), from 0 to 15.65."""
        return _digits(self.residual, self.residual_error)

    @cached_property
    def total_digits(self) -> float:
        """Decimal digits left in Σ_t RSS_t."""
        total = np.array([self.residual.sum()]), np.array([self.residual_error.sum()])
        return float(_digits(*total)[0])

    def precision_note(self, task_ids: Sequence[str]) -> str | None:
        """Return a warning where residual sums of squares have fewer than six digits left.

        Parameters
        ----------
        task_ids : T str
            The ids of the tasks.

        Returns
        -------
        str or None
            The note, None where enough digits are left.

        Examples
        --------
        >>> import numpy as np
        >>> start = least_squares_from_gram(
        ...     np.array([[[1.0]]]), np.array([[1e9]]), np.array([1e18]), np.array([2]))
        >>> start.precision_note(["a"])  # doctest: +ELLIPSIS
        "Fewer than six digits are left in the residual sum of squares: 0.0 in the sum over all ..."
        """
        few = np.flatnonzero(self.digits < FEW_DIGITS)
        if not len(few) and self.total_digits >= FEW_DIGITS:
            return None
        worst = int(np.argmin(self.digits))
        return (
            "Fewer than six digits are left in the residual sum of squares: "
            f"{self.total_digits:.1f} in the sum over all tasks; {len(few)} of {len(self.digits)} tasks, "
            f"least {self.digits[worst]:.1f} in task {task_ids[worst]!r}. Exact fits look the same. "
            "In Python, TriangularStatistics keep more."
        )


def least_squares_from_gram(
    gram: FloatArray,
    xty: FloatArray,
    yty: FloatArray,
    n_samples: IntArray,
    before: tuple[FloatArray, FloatArray] | None = None,
) -> LeastSquares:
    """From the Gram form: half of the digits of X decide the rank, and RSS is a difference.

    Parameters
    ----------
    gram : (T, P, P) float64
        X_tᵀ X_t.
    xty : (T, P) float64
        X_tᵀ y_t.
    yty : (T,) float64
        y_tᵀ y_t.
    n_samples : (T,) int64
        Rows of each task.
    before : ((T, P), (T,)) float64, optional
        Squared lengths of the columns of X and of y before means were taken out of them: rounding in
        what is left is relative to these.

    Returns
    -------
    LeastSquares

    Examples
    --------
    >>> import numpy as np
    >>> start = least_squares_from_gram(
    ...     np.array([[[2.0, 2.0], [2.0, 2.0]]]), np.array([[2.0, 2.0]]), np.array([3.0]), np.array([2]))
    >>> start.weights, start.residual, start.rank
    (array([[0.5, 0.5]]), array([1.]), array([1]))
    """
    square = np.diagonal(gram, axis1=1, axis2=2)
    scale = lengths_or_one(np.sqrt(np.maximum(square, 0.0)))
    lost = np.ones_like(yty) if before is None else _largest_ratio(before[0], square)
    weights, explained = np.zeros_like(xty), np.zeros_like(yty)
    definite = solve_cholesky(read_only(gram), read_only(xty), scale, weights, explained)
    definite &= lost * EPS < 1e-3 * SAFE_PIVOT
    rank, hides = np.where(definite, gram.shape[1], 0), np.zeros(len(gram), dtype=np.bool_)
    size_of_y = np.sqrt(yty if before is None else before[1])
    for some in batches(~definite, gram.shape[1]):
        D = scale[some]
        values, V = np.linalg.eigh(gram[some] / (D[:, :, None] * D[:, None, :]))
        kept = values > values[:, -1:] * _noise(n_samples[some], gram.shape[1]) * lost[some, None]
        kept &= values > 0.0
        along = np.einsum("tpr,tp->tr", V, xty[some] / D)
        inverse = np.divide(1.0, values, out=np.zeros_like(values), where=kept)
        rank[some] = kept.sum(axis=1)
        explained[some] = (along**2 * inverse).sum(axis=1)
        hides[some] = _beyond_rounding(along, ~kept, size_of_y[some] * np.sqrt(lost[some]), n_samples[some])
        weights[some] = minimum_norm(V, along * inverse, D, rank[some])
    if before is None:
        size = yty + 2 * _dot(np.abs(weights), np.abs(xty)) + absolute_quadratic(gram, weights)
    else:
        size = (np.sqrt(before[1]) + _dot(np.abs(weights), np.sqrt(before[0]))) ** 2
    exact = rank >= n_samples  # as many independent columns as rows: the fit passes through them
    residual = np.where(exact, 0.0, np.maximum(yty - explained, 0.0))
    steps = 3 if before is None else 32  # differences also bend the weights: a margin for the second order
    error = np.where(exact, 0.0, EPS * (steps + np.sqrt(n_samples / 64)) * size)
    return LeastSquares(weights, residual, error, rank, hides & ~exact)


def least_squares_from_factor(
    factor: FloatArray, n_samples: IntArray, before: FloatArray | None = None
) -> LeastSquares:
    """From the triangular form, with all the digits of X.

    Parameters
    ----------
    factor : (T, P + 1, P + 1) float64
        Upper triangular R with Rᵀ R = [X_t y_t]ᵀ [X_t y_t].
    n_samples : (T,) int64
        Rows of each task.
    before : (T, P + 1) float64, optional
        Lengths of the columns of [X y] before means were taken out of them: rounding is relative to these.

    Returns
    -------
    LeastSquares

    Examples
    --------
    >>> import numpy as np
    >>> start = least_squares_from_factor(np.array([[[2.0, 4.0], [0.0, 1e-9]]]), np.array([3]))
    >>> start.weights, start.residual
    (array([[2.]]), array([1.e-18]))
    """
    P = factor.shape[1] - 1
    R, target = factor[:, :, :P], factor[:, :, P]
    lengths = column_lengths(factor)
    before = lengths if before is None else before
    lost = _largest_ratio(before[:, :P], lengths[:, :P])
    scale = lengths_or_one(lengths[:, :P])
    weights = np.zeros((len(factor), P))
    definite = solve_triangular(read_only(factor), scale, weights)
    definite &= lost * EPS < 1e-3 * np.sqrt(SAFE_PIVOT)
    rank, hides = np.where(definite, P, 0), np.zeros(len(factor), dtype=np.bool_)
    condition = np.ones(len(factor))  # of a safe task: of no weight below
    for some in batches(~definite, P):
        D = scale[some]
        U, values, Vt = np.linalg.svd(R[some] / D[:, None, :], full_matrices=False)
        kept = values > values[:, :1] * _noise(n_samples[some], P) * lost[some, None]
        kept &= np.arange(P) < n_samples[some, None]
        along = np.einsum("tpr,tp->tr", U, target[some])
        inverse = np.divide(1.0, values, out=np.zeros_like(values), where=kept)
        rank[some] = kept.sum(axis=1)
        size_of_y = before[some, P] * lost[some]
        hides[some] = _beyond_rounding(along * values, ~kept, size_of_y, n_samples[some])
        condition[some] = values[:, 0] * inverse.max(axis=1)
        V = np.swapaxes(Vt, 1, 2)[:, :, ::-1]  # in rising order, as from eigh
        weights[some] = minimum_norm(V, (along * inverse)[:, ::-1], D, rank[some])
    rest = target - np.matmul(R, weights[:, :, None])[:, :, 0]
    exact = rank >= n_samples
    residual = np.where(exact, 0.0, (rest**2).sum(axis=1))
    # X and y are off by their rounding: to first order along the residual, to second across it
    rounding = EPS * (4 + np.sqrt(n_samples / 64))
    shift = rounding * (before[:, P] + _dot(np.abs(weights), before[:, :P]))
    error = shift * (2 * np.sqrt(residual) + shift) + (rounding * lost * condition) ** 2 * residual
    return LeastSquares(weights, residual, np.where(exact, 0.0, error), rank, hides & ~exact)


def _digits(value: FloatArray, error: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        digits = np.log10(value / error)
    digits = np.where(error > 0, digits, MAX_DIGITS)
    clipped: FloatArray = np.clip(digits, 0.0, MAX_DIGITS)
    return clipped


def column_lengths(factor: FloatArray) -> FloatArray:
    """Euclidean length of each column of [X y], (T, P + 1), from its triangular factor."""
    lengths: FloatArray = np.sqrt((factor**2).sum(axis=1))
    return lengths


def lengths_or_one(lengths: FloatArray) -> FloatArray:
    """Lengths of the columns, with 1 for columns of zeros."""
    return np.where(lengths > 0, lengths, 1.0)


def _largest_ratio(before: FloatArray, after: FloatArray) -> FloatArray:
    """How many times smaller the columns have become, the most of each task, (T,)."""
    ratio: FloatArray = np.divide(before, after, out=np.ones_like(before), where=after > 0).max(axis=1)
    return ratio


def _noise(n_samples: IntArray, n_features: int) -> FloatArray:
    """Relative size of what rounding leaves in directions that carry nothing, (T, 1)."""
    noise: FloatArray = EPS * (8 * n_features + np.sqrt(n_samples))[:, None]
    return noise


def _beyond_rounding(
    products: FloatArray, cut: BoolArray, size: FloatArray, n_samples: IntArray
) -> BoolArray:
    """Whether any of the products (T, P) marked in ``cut`` is more than rounding, for y of a size (T,)."""
    noise = SURE * EPS * (1.0 + np.sqrt(n_samples / 64)) * size
    return np.asarray((cut & (np.abs(products) > noise[:, None])).any(axis=1))


def _dot(a: FloatArray, b: FloatArray) -> FloatArray:
    products: FloatArray = np.einsum("tp,tp->t", a, b)
    return products


def batches(chosen: BoolArray, n_features: int) -> Iterator[IntArray]:
    """Positions of the chosen tasks, so many at a time that temporaries stay small."""
    positions = np.flatnonzero(chosen)
    for some in task_blocks(len(positions), n_features):
        yield positions[some]


def task_blocks(n_tasks: int, n_features: int) -> Iterator[slice]:
    """Slices of the tasks, so many at a time that temporaries stay small."""
    step = max(1, BATCH_ENTRIES // n_features**2)
    for first in range(0, n_tasks, step):
        yield slice(first, first + step)


def minimum_norm(V: FloatArray, b: FloatArray, scale: FloatArray, rank: IntArray) -> FloatArray:
    """The w of smallest norm with V_rᵀ diag(scale) w = b_r, V_r the last ``rank`` columns of V.

    From the solution diag(scale)⁻¹ V_r b_r its part in the null space, spanned by the columns of
    N = diag(scale)⁻¹ V_0, is taken away as N z: an error in z then does not touch the fit.
    """
    P = V.shape[1]
    weights: FloatArray = np.einsum("tpr,tr->tp", V, b) / scale  # b is zero beyond the rank
    for r in np.unique(rank[(rank > 0) & (rank < P)]):
        some = np.flatnonzero(rank == r)
        N = V[some, :, : P - r] / scale[some, :, None]
        Q, S = np.linalg.qr(N)
        z = np.linalg.solve(S, np.matmul(np.swapaxes(Q, 1, 2), weights[some, :, None]))
        weights[some] -= np.matmul(N, z)[:, :, 0]
    return weights
