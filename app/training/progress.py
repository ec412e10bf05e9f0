"""Keep the clock of a run, and report its phases and rounds now and then.

The receiver writes to the database, so at most one record each half second is sent. It ends the run by
raising: the exception passes through the solver.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ccmtl_core import Progress, SelectionProgress

MIN_SECONDS_BETWEEN = 0.5

Send = Callable[[dict[str, Any]], None]


class ProgressLog:
    """The clock of one run."""

    def __init__(self, send: Send, clock: Callable[[], float] = time.monotonic) -> None:
        self._send, self._clock = send, clock
        self._started = self._phase_began = clock()
        self._sent_at = -math.inf
        self._seconds: dict[str, float] = {}
        self._phase = self._interrupted = "claimed"
        self._solver = Progress("claimed", 0, None, None, 0.0)
        self._selection: SelectionProgress | None = None

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count the seconds of the block as those of phase ``name``; tell the receiver that it began."""
        self.enter(name)
        try:
            yield
        finally:
            self._add_elapsed()

    def enter(self, name: str) -> None:
        """Count what follows as phase ``name``, and tell the receiver that it began."""
        self._add_elapsed()
        self._phase = name
        self._seconds.setdefault(name, 0.0)
        self._tell()

    def solver_phases(self, prefix: str) -> Callable[[Progress], None]:
        """Return an ``on_progress`` for a fit; its phases count as ``prefix`` + their names."""

        def on_progress(step: Progress) -> None:
            self._solver = step
            name = prefix + step.phase
            if name == self._phase:
                self._tell()
            elif step.phase != "statistics":  # they are given to the fit ready made
                self.enter(name)

        return on_progress

    def compiling(self, begins: bool) -> None:
        """Count what the compiler takes, once per machine, as a phase of its own within any other."""
        if begins:
            self._interrupted, self._sent_at = (
                self._phase,
                -math.inf,
            )  # told at once: nothing is told meanwhile
        self.enter("compiling" if begins else self._interrupted)

    def selection(self, step: SelectionProgress) -> None:
        """Take note of how far the choice of the strength has come."""
        self._selection = step
        self._tell()

    def record(self) -> dict[str, Any]:
        """Return the present state, as it is stored and sent to users."""
        seconds = dict(self._seconds)
        now = self._clock()
        seconds[self._phase] = seconds.get(self._phase, 0.0) + now - self._phase_began
        selection = None
        if self._selection is not None:
            selection = {
                "fits_done": self._selection.done,
                "fits": self._selection.total,
                "fusion_strengths": list(map(float, self._selection.fusion_strengths)),
                "errors": list(map(float, self._selection.errors)),
            }
        return {
            "phase": self._phase,
            "round": self._solver.round,
            "objective": _finite(self._solver.objective),
            "gap": _finite(self._solver.gap),
            "selection": selection,
            "elapsed_seconds": round(now - self._started, 3),
            "phases": {name: round(value, 3) for name, value in seconds.items()},
        }

    def _add_elapsed(self) -> None:
        now = self._clock()
        if self._phase in self._seconds:
            self._seconds[self._phase] += now - self._phase_began
        self._phase_began = now

    def _tell(self) -> None:
        now = self._clock()
        if now - self._sent_at >= MIN_SECONDS_BETWEEN:
            self._sent_at = now
            self._send(self.record())


def _finite(value: float | None) -> float | None:
    """Return None for NaN and infinities, which JSON does not have."""
    return None if value is None or not math.isfinite(value) else float(value)
