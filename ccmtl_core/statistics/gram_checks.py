"""Refuse products and sums that no rows can have, task by task."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ccmtl_core.base.arrays import all_finite, refuse_each
from ccmtl_core.base.types import BoolArray, FloatArray, IntArray
from ccmtl_core.kernels.statistics.gram_kernel import SLACK

MAX_SQUARES = 1e90
_EXACT_FROM = float(np.finfo(np.float64).tiny)  # smaller sums of squares have lost digits, or all of them
_SKEW = 1e-9  # the share of its largest entry by which a Gram block may differ from its transpose
_MISFIT = "sums do not fit the number of rows and the sums of squares"
_SMALL = "Where all values of a column are below 1e-154, measure it in smaller units, or let it be 0"


def refuse_impossible(
    task_ids: Sequence[str], gram: FloatArray, xty: FloatArray, yty: FloatArray, n_samples: IntArray
) -> None:
    """Refuse products that are not finite, negative squares or counts, and blocks that are not symmetric."""
    if not (all_finite(gram) and all_finite(xty) and all_finite(yty)):
        finite = np.isfinite(yty) & np.isfinite(xty).all(axis=1)
        finite &= np.isfinite(gram).all(axis=(1, 2))
        _refuse(~finite, task_ids, "statistics are not finite; do squares overflow?")
    diagonal = np.diagonal(gram, axis1=1, axis2=2)
    negative = (yty < 0) | (diagonal < 0).any(axis=1) | (n_samples < 0)
    _refuse(negative, task_ids, "a sum of squares or a number of samples is negative")
    transposed = np.swapaxes(gram, 1, 2)
    if not np.array_equal(gram, transposed):
        size = diagonal.max(axis=1, initial=0.0)[:, None, None]
        skew = np.abs(gram - transposed) > _SKEW * size
        _refuse(skew.any(axis=(1, 2)), task_ids, "gram is not symmetric")


def refuse_impossible_sums(
    task_ids: Sequence[str],
    gram: FloatArray,
    yty: FloatArray,
    weight: FloatArray,
    x_sum: FloatArray,
    y_sum: FloatArray,
) -> None:
    """Refuse sums beyond what weights and squares allow by the inequality of Cauchy and Schwarz."""
    squares = np.column_stack([np.diagonal(gram, axis1=1, axis2=2), yty])
    sums = np.column_stack([x_sum, y_sum])
    with np.errstate(invalid="ignore"):  # a negative weight gives NaN, which no sum is below
        most = np.sqrt(weight) * (1.0 + SLACK)
        bad = ~((np.abs(sums) <= most[:, None] * np.sqrt(squares)).all(axis=1) & (most < np.inf))
    if bad.any():
        lost = (squares < _EXACT_FROM) & (sums != 0.0)
        _refuse(bad & lost.any(axis=1), task_ids, f"{_MISFIT}; do squares underflow? {_SMALL}")
    _refuse(bad, task_ids, _MISFIT)


def refuse_huge(
    task_ids: Sequence[str], feature_names: Sequence[str], gram: FloatArray, yty: FloatArray
) -> None:
    """Refuse sums of squares that a fit, which squares them again, could not compute with."""
    squares = np.column_stack([np.diagonal(gram, axis1=1, axis2=2), yty])
    names = *feature_names, "y"

    def described(t: int) -> str:
        column = int(squares[t].argmax())
        return (
            f"task {task_ids[t]!r}, {names[column]}: the sum of squares is {squares[t, column]:.0e}, and a "
            f"fit computes with up to {MAX_SQUARES:.0e}; measure it in larger units"
        )

    refuse_each(np.flatnonzero((squares > MAX_SQUARES).any(axis=1)), described)


def _refuse(bad: BoolArray, task_ids: Sequence[str], fault: str) -> None:
    refuse_each(np.flatnonzero(bad), lambda t: f"task {task_ids[t]!r}: {fault}")
