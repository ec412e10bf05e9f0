"""Time work.

``cpu`` counts the processor time of all threads of this process: what the work would take on a core of its
own, whoever else is on the machine; bars and ratios are about it. ``wall`` is what the clock says.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

Result = TypeVar("Result")


class Seconds(NamedTuple):
    """Time spent."""

    cpu: float
    wall: float


class Stopwatch:
    """Adds up the time of the blocks that it is told to time."""

    def __init__(self) -> None:
        self.seconds = Seconds(0.0, 0.0)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Time a block."""
        cpu, wall = time.process_time(), time.perf_counter()
        yield
        self.seconds = Seconds(
            self.seconds.cpu + time.process_time() - cpu, self.seconds.wall + time.perf_counter() - wall
        )


def best(repeats: int, prepare: Callable[[], Callable[[], Result]]) -> tuple[Result, Seconds]:
    """Prepare, off the clock, and run several times; return the last result and the fastest run."""
    runs = []
    for _ in range(repeats):
        work, watch = prepare(), Stopwatch()
        with watch.running():
            result = work()
        runs.append(watch.seconds)
    return result, min(runs)


def best_of(repeats: int, work: Callable[[], Result]) -> tuple[Result, Seconds]:
    """Run several times what needs no preparation; return the last result and the fastest run."""
    return best(repeats, lambda: work)
