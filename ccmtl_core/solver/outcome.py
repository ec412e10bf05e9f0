"""Keeps the best weights and the best lower bound of a solve, and says when it has ended."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ccmtl_core.base.types import FloatArray
from ccmtl_core.solver.certificate import Certificate, relative
from ccmtl_core.solver.objective import FusionProblem
from ccmtl_core.solver.report import Round, SolveStatus

RoundCallback = Callable[[Round, int], None]

TIGHT = 1e-6
"""Tolerance below which Newton steps are the fastest way to the digits that are left."""
_PATIENCE = 30  # certificates without a better gap before rounding is taken for the cause


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a solver found: weights (T, P), their objective and relative gap, and how it went.

    ``hidden`` is the part of J of tasks whose y depends on directions lost to rounding.
    """

    weights: FloatArray
    objective: float
    relative_gap: float
    status: SolveStatus
    cg_iterations: int
    history: tuple[Round, ...]
    solver: str = ""
    hidden: float = 0.0

    def hiding(self, part: float, tolerance: float) -> Outcome:
        """The same, when so much of J belongs to such tasks: the gap grows by it."""
        hidden = min(part, self.objective)
        if hidden <= 0.0:
            return self
        gap = min(self.relative_gap + hidden / self.objective, max(self.relative_gap, 1.0))
        if gap <= tolerance:
            return replace(self, relative_gap=gap)
        status = SolveStatus.PRECISION_LIMIT if self.status is SolveStatus.CONVERGED else self.status
        return replace(self, relative_gap=gap, hidden=hidden, status=status)


class Recorder:
    """Keeps the best weights, the best lower bound and the history of one solve."""

    def __init__(self, tolerance: float, max_rounds: int, on_round: RoundCallback | None = None) -> None:
        self.tolerance, self.max_rounds = tolerance, max_rounds
        self._on_round = on_round or (lambda this, number: None)
        self._began = time.perf_counter()
        self._weights: FloatArray = np.empty((0, 0))
        self._objective, self._bound = np.inf, 0.0  # J is never negative
        self._rounding = 0.0
        self._history: list[Round] = []
        self._cg_iterations = 0
        self._since_better = 0
        self._is_certified = False

    def consider(self, W: FloatArray, objective: float, certificate: Certificate | None = None) -> None:
        """Keep weights if they are the best so far, and a certificate's bound if it is."""
        before = self.gap
        if objective < self._objective:
            self._weights, self._objective = W, objective
            self._rounding = 0.0  # until these weights have a certificate
        if certificate is not None:
            self._bound = max(self._bound, certificate.lower_bound)
            if W is self._weights:
                self._rounding = certificate.rounding
            self._is_certified = True
            self._since_better = 0 if self.gap < 0.9 * before else self._since_better + 1

    @property
    def good_enough(self) -> float:
        """The best objective, raised by a thousandth of the tolerance."""
        return self._objective * (1.0 + 1e-3 * self.tolerance)

    def prefer(self, W: FloatArray, objective: float) -> bool:
        """Take weights that are as good but for a thousandth of the tolerance; whether they were taken."""
        if objective > self.good_enough or self._relative(objective) > self.tolerance:
            return False
        self._weights, self._objective = W, objective
        return True

    def end_round(self, objective: float, smoothing: float, cg_iterations: int) -> None:
        """Take note of a round and tell the caller's progress."""
        self._cg_iterations += cg_iterations
        seconds = time.perf_counter() - self._began
        gap = self.relative_gap if self._is_certified else None
        self._history.append(Round(smoothing, objective, gap, cg_iterations, seconds))
        self._on_round(self._history[-1], len(self._history))

    @property
    def last_round(self) -> bool:
        """Whether the round under way is the last that is allowed."""
        return len(self._history) >= self.max_rounds - 1

    @property
    def gap(self) -> float:
        """Best objective minus best bound."""
        return max(self._objective - self._bound, 0.0)

    @property
    def relative_gap(self) -> float:
        """Gap over objective."""
        return self._relative(self._objective) if np.isfinite(self._objective) else np.inf

    def _relative(self, objective: float) -> float:
        return relative(max(objective - self._bound, self._rounding), objective, self._rounding)

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to do."""
        return self.status is not None

    @property
    def status(self) -> SolveStatus | None:
        """How the solve ended, once it has."""
        if self.relative_gap <= self.tolerance:
            return SolveStatus.CONVERGED
        if self._since_better >= _PATIENCE:
            return SolveStatus.PRECISION_LIMIT
        if len(self._history) >= self.max_rounds:
            return SolveStatus.ROUND_LIMIT
        return None

    def outcome(self) -> Outcome:
        """Return the result of a finished solve; an objective that cannot be told from zero is zero."""
        status = self.status or SolveStatus.ROUND_LIMIT
        objective = self._objective if self._objective > self._rounding else 0.0
        return Outcome(
            self._weights, objective, self.relative_gap, status, self._cg_iterations, tuple(self._history)
        )


def typical_length(problem: FusionProblem) -> float:
    """Median length of the edges of positive length between least squares: the scale of smoothing.

    It does not depend on where a solve starts: edges of a good start are much shorter or longer than those
    that a solve has to shorten.
    """
    lengths = problem.lengths(problem.quadratic.least_squares.weights)
    positive = lengths[lengths > 0]
    return float(np.median(positive)) if len(positive) else 1.0
