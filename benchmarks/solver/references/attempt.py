"""What a rival reached, and the search for its cheapest setting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.stopwatch import Seconds
from ccmtl_core.base.types import FloatArray

Reaches = Callable[[FloatArray], bool]


@dataclass(frozen=True, eq=False)
class Attempt:
    """One solve: weights (T, P), time, iterations, and whether it is good enough; the setting in words."""

    weights: FloatArray
    seconds: Seconds
    iterations: int
    setting: str
    reached: bool


class Ladder:
    """Tolerances from loose to tight, of which the loosest is sought that is tight enough.

    The search for one kind of problem starts at the rung that the last of that kind needed.
    """

    def __init__(self, tolerances: Sequence[float]) -> None:
        self._tolerances = tolerances
        self._start: dict[str, int] = {}

    def climb(self, kind: str, solve: Callable[[float], Attempt], cap: float) -> Attempt:
        """Return the attempt at the loosest tolerance that reached, or the last that was made.

        Tighter ones are tried as long as an attempt took less than ``cap`` seconds.
        """
        rung = self._start.get(kind, 0)
        attempt = solve(self._tolerances[rung])
        if attempt.reached:
            while rung > 0 and (looser := solve(self._tolerances[rung - 1])).reached:
                attempt, rung = looser, rung - 1
        else:
            while not attempt.reached and rung + 1 < len(self._tolerances) and attempt.seconds.cpu < cap:
                rung += 1
                attempt = solve(self._tolerances[rung])
        if attempt.reached:
            self._start[kind] = rung
        return attempt
