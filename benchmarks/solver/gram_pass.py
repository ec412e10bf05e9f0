"""Sixteen million rows in, seconds of their statistics over those of one plain pass out."""

from __future__ import annotations

from benchmarks import gram
from benchmarks.report import Bar, Section

SHAPE = (160_000, 100, 10)
MOST_PASSES = 2.5


def measure(n_tasks: int, n_samples: int, n_features: int) -> Section:
    """Measure one shape as ``benchmarks.gram`` does."""
    seconds = gram.measure(n_tasks, n_samples, n_features)
    plain = seconds["plain_sum"]
    rows = [{"": name, "seconds": value, "plain sums": value / plain} for name, value in seconds.items()]
    title = f"{n_tasks * n_samples:,} rows of {n_features} features in {n_tasks:,} tasks"
    return Section({title: rows}, [Bar("statistics over a plain sum", seconds["gram"] / plain, MOST_PASSES)])
