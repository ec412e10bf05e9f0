"""Read files of changed and random bytes for a time; stop at the first that crashes, hangs or loses a row.

``python -m benchmarks.fuzz_files --minutes 60``; ``--seed`` repeats a run.
"""

from __future__ import annotations

import argparse
import signal
import tempfile
import time
from pathlib import Path

import hypothesis
from hypothesis import HealthCheck, Phase, given, settings

from ccmtl_core.tables import ReadOptions
from tests.support.file_fuzz import FILES, OPTIONS, check

MOST_SECONDS, LONGEST_WAIT = 60, 600
"""Processor seconds, and seconds on the clock, of one file; after that it hangs."""
EXAMPLES = 100
"""Of each round."""


def _hangs(signum: int, frame: object) -> None:
    raise TimeoutError(f"a file takes more than {MOST_SECONDS} processor seconds, or {LONGEST_WAIT} in all")


def _limit(processor_seconds: float, seconds: int) -> None:
    """Let the process be interrupted after so much time; 0 for never."""
    signal.setitimer(signal.ITIMER_PROF, processor_seconds)
    signal.alarm(seconds)


def main() -> None:
    """Run rounds until the time is over; a failure is raised with the smallest bytes that show it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz_files", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0, help="of the first round")
    chosen = parser.parse_args()
    signal.signal(signal.SIGALRM, _hangs)
    signal.signal(signal.SIGPROF, _hangs)
    end, seed, counts = time.monotonic() + 60 * chosen.minutes, chosen.seed, [0]
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < end:
            _round(Path(folder) / "file", seed, counts)
            seed += 1
    print(f"{counts[0]:,} files, seeds {chosen.seed} to {seed - 1}: none crashed, hung or lost a row")


def _round(path: Path, seed: int, counts: list[int]) -> None:
    @hypothesis.seed(seed)
    @settings(
        max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )  # fmt: skip
    @given(content=FILES, options=OPTIONS)
    def look(content: bytes, options: ReadOptions) -> None:
        _limit(MOST_SECONDS, LONGEST_WAIT)
        check(path, content, options)
        _limit(0, 0)
        counts[0] += 1

    look()


if __name__ == "__main__":
    main()
