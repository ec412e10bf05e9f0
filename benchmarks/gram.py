"""How long the one pass over the rows takes, beside a plain sum over them; `--json` for programs.

Times are the best of five, in seconds of one thread's work, so that neighbours on the machine count
little. The first row is the size of the largest synthetic set, the second that of Ta-Feng.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.table import Table

from ccmtl_core import SufficientStatistics, TaskDataset, TriangularStatistics

SHAPES = ((160_000, 100, 10), (23_812, 115, 5), (139, 110, 28))
REPEATS = 5


def best(work: Callable[[], object]) -> float:
    """Seconds of CPU of the fastest of several runs."""
    seconds = []
    for _ in range(REPEATS):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return min(seconds)


def measure(n_tasks: int, n_samples: int, n_features: int) -> dict[str, float]:
    """Seconds of a plain sum, of both forms of the statistics, and of five random folds."""
    rng = np.random.default_rng(0)
    n = n_tasks * n_samples
    names = tuple(map(str, range(n_tasks))), tuple(map(str, range(n_features)))
    offsets = np.arange(n_tasks + 1) * n_samples
    data = TaskDataset(rng.standard_normal((n, n_features)), rng.standard_normal(n), offsets, *names)
    fold = rng.integers(0, 5, n)
    return {
        "plain_sum": best(data.X.sum),
        "gram": best(lambda: SufficientStatistics.from_dataset(data)),
        "gram_5_folds": best(lambda: SufficientStatistics.by_fold(data, fold, 5)),
        "triangular": best(lambda: TriangularStatistics.from_dataset(data)),
    }


def main() -> None:
    """Print a table, or one JSON object."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gram", description=__doc__)
    parser.add_argument("--json", action="store_true")
    as_json = parser.parse_args().json
    results = {"x".join(map(str, shape)): measure(*shape) for shape in SHAPES}
    if as_json:
        print(json.dumps(results))
        return
    table = Table("tasks x rows x features", "", "seconds", "plain sums", title="One pass over the rows")
    for shape, seconds in results.items():
        for what, value in seconds.items():
            table.add_row(shape, what, f"{value:.4f}", f"{value / seconds['plain_sum']:.1f}")
    Console().print(table)


if __name__ == "__main__":
    main()
