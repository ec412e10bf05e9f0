"""Sum up the squared errors of held-out rows in one number, and choose a strength by such numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

import numpy as np

from ccmtl_core.base.arrays import is_real
from ccmtl_core.base.exceptions import DataError, ParameterError
from ccmtl_core.base.types import FloatArray, IntArray

Score = Callable[[FloatArray, IntArray], float]
"""From ‖X_t w_t − y_t‖² (T,) and the numbers of rows (T,) of the held-out part; the smaller, the better."""

Rule = Literal["best", "one_standard_error"]
RULES: tuple[str, ...] = get_args(Rule)


def mean_of_task_rmse(squared_error: FloatArray, n_samples: IntArray) -> float:
    """Return the mean over tasks of their root mean squared errors, as He et al. do for Sales and Ta-Feng.

    Tasks without held-out rows do not count; if none has any, that is a DataError.

    Examples
    --------
    >>> mean_of_task_rmse(np.array([4.0, 0.0, 9.0]), np.array([1, 0, 1]))
    2.5
    """
    _require_rows(n_samples)
    scored = n_samples > 0
    return float(np.sqrt(squared_error[scored] / n_samples[scored]).mean())


def rmse_over_rows(squared_error: FloatArray, n_samples: IntArray) -> float:
    """Return the root mean squared error over all held-out rows, as He et al. do for School.

    Examples
    --------
    >>> rmse_over_rows(np.array([4.0, 0.0, 14.0]), np.array([1, 0, 1]))
    3.0
    """
    _require_rows(n_samples)
    return float(np.sqrt(squared_error.sum() / n_samples.sum()))


def finite_score(score: Score, squared_error: FloatArray, n_samples: IntArray) -> float:
    """Return the score, and refuse one that is not a finite number, since it cannot be compared."""
    value = score(squared_error, n_samples)
    if not is_real(value) or not np.isfinite(value):
        raise ParameterError(f"score must return a finite number, not {value!r}")
    return float(value)


def standard_error(errors: FloatArray) -> FloatArray:
    """Return the standard error of the mean over folds, (L,), of errors (K, L); NaN of a single fold."""
    if len(errors) < 2:
        return np.full(errors.shape[1], np.nan)
    error: FloatArray = errors.std(axis=0, ddof=1) / np.sqrt(len(errors))
    return error


def check_rule(rule: str, n_held_out: int = 2) -> None:
    """Refuse a rule that does not exist, or that needs more held-out parts than there are."""
    if rule not in RULES:
        raise ParameterError(f"rule must be one of {', '.join(RULES)}; not {rule!r}")
    if rule == "one_standard_error" and n_held_out < 2:
        raise ParameterError(
            f"one_standard_error needs two or more held-out parts, and there is {n_held_out}, without a "
            "standard error; take a larger n_folds, or the rule best"
        )


def choose(strengths: FloatArray, errors: FloatArray, rule: str) -> int:
    """Return the place of the one of strengths (L,) that a rule chooses by the errors (K, L) of K folds.

    The rule "best" takes the strength with the least mean error, and the largest of several that share it.
    "one_standard_error" takes the largest strength, hence the fewest groups, whose mean error is within one
    standard error of the least (Breiman, Friedman, Olshen & Stone, Classification and Regression Trees, 1984,
    section 3.4.3).

    Examples
    --------
    >>> errors = np.array([[1.0, 0.5, 0.6], [1.0, 0.7, 0.7]])
    >>> [choose(np.array([0.0, 1.0, 2.0]), errors, rule) for rule in RULES]
    [1, 2]
    """
    check_rule(rule, len(errors))
    mean = errors.mean(axis=0)
    allowed = mean.min()
    if rule == "one_standard_error":
        allowed += standard_error(errors)[int(np.argmin(mean))]
    return int(max(np.flatnonzero(mean <= allowed), key=lambda place: strengths[place]))


def _require_rows(n_samples: IntArray) -> None:
    if not n_samples.any():
        raise DataError("a fold has no rows: there is nothing to score")
