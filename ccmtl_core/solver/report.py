"""How a solve went: status, certified gap, effort, history, and what to try next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from ccmtl_core.base.display import counted, shown


class SolveStatus(StrEnum):
    """How a solve ended."""

    CONVERGED = "converged"
    PRECISION_LIMIT = "precision_limit"
    ROUND_LIMIT = "round_limit"

    @property
    def advice(self) -> str:
        """A sentence on what the status means and what to try."""
        return _ADVICE[self]


_ADVICE = {
    SolveStatus.CONVERGED: "The solver reached the tolerance; the solve itself needs nothing more.",
    SolveStatus.PRECISION_LIMIT: (
        "Rounding stops the certified gap short of the tolerance; bring the features to similar scale, or "
        "ask for a looser tolerance. In Python, TriangularStatistics keep more digits."
    ),
    SolveStatus.ROUND_LIMIT: (
        "The rounds were used up before the tolerance was reached; the weights are the best found and the "
        "gap tells how far from the optimum they can be. Loosen the tolerance or change the solver."
    ),
}


@dataclass(frozen=True)
class Round:
    """One round of a solver.

    Parameters
    ----------
    smoothing : float
        ε, in units of the weights.
    objective : float
        J after the round.
    gap : float or None
        Certified relative gap, where one was computed.
    cg_iterations : int
        Spent in the round.
    seconds : float
        Since the solve began.
    """

    smoothing: float
    objective: float
    gap: float | None
    cg_iterations: int
    seconds: float


@dataclass(frozen=True)
class SolveReport:
    """How a solve went.

    Parameters
    ----------
    status : SolveStatus
        How it ended; ``advice`` says what to try.
    solver : str
        What ran: "direct" (the start was the optimum), "dual", "alternating", "newton", "following" (Newton
        steps from the strength before, on a path), or several in turn, as in "alternating+newton".
    objective : float
        J of the returned weights; zero where rounding leaves nothing of it.
    gap : float
        (J − lower bound) / J, certified; absolute where J = 0.
    tolerance : float
        The gap that was asked for.
    rounds, cg_iterations : int
        Effort.
    seconds : dict of str to float
        Wall time by phase.
    history : tuple of Round
        Each round.
    notes : tuple of str
        What limits the answer, in words; usually empty.
    """

    status: SolveStatus
    solver: str
    objective: float
    gap: float
    tolerance: float
    rounds: int
    cg_iterations: int
    seconds: dict[str, float]
    history: tuple[Round, ...]
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        gap = f"gap {self.gap:.2g} of {self.tolerance:.2g}"
        effort = f"{self.solver} in {counted(self.rounds, 'round')}"
        notes = counted(len(self.notes), "note") if self.notes else ""
        return shown(self, str(self.status), gap, f"objective {self.objective:.6g}", effort, notes)

    @property
    def advice(self) -> str:
        """What the status means and what to try."""
        return self.status.advice


@dataclass(frozen=True)
class Progress:
    """What a running fit tells its caller.

    Parameters
    ----------
    phase : str
        "statistics", "start", "graph" or "solve".
    round : int
        Rounds done in the solve.
    objective, gap : float or None
        Of the present weights, once known.
    elapsed : float
        Seconds since the fit began.
    """

    phase: str
    round: int
    objective: float | None
    gap: float | None
    elapsed: float


ProgressCallback = Callable[[Progress], None]
