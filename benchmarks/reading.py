"""Measure how fast a long CSV file reaches statistics, beside the bare read of the same file by polars.

``python -m benchmarks.reading`` writes a file of 10 million rows, reads it in processes of their own, which
tell what memory they took, and holds the rate to a half of that of polars, which checks nothing.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.report import Bar, Section, step
from benchmarks.runner import command_line, run
from benchmarks.stopwatch import Seconds, best_of
from ccmtl_core import statistics_from_files

LEAST_RATE = 0.5
"""Of the rate of polars."""
MOST_BYTES = 1.5e9
"""Of memory, beside the pages of the file itself."""
NOTATIONS: dict[str, dict[str, Any]] = {
    "commas": {"separator": ","},
    "semicolons": {"separator": ";"},
    "semicolons, decimal commas": {"separator": ";", "decimal_comma": True},
}
"""How files are written, in the words of polars."""


def write_sales(path: Path, n_rows: int, notation: dict[str, Any]) -> None:
    """Write rows of 20,000 stores: id, price with two digits, promotion, units sold."""
    random = np.random.default_rng(0)
    with path.open("wb") as out:
        for start in range(0, n_rows, 1 << 20):
            n = min(1 << 20, n_rows - start)
            frame = pl.DataFrame(
                {
                    "store": pl.Series(random.integers(20_000, size=n)).cast(pl.String).str.zfill(6),
                    "price": (random.integers(99, 9999, size=n) / 100).round(2),
                    "promotion": random.integers(2, size=n),
                    "sold": random.poisson(3, size=n),
                }
            )
            frame.write_csv(out, include_header=start == 0, **notation)


def bare(path: Path, notation: dict[str, Any]) -> None:
    """Read the file as polars does by itself."""
    pl.read_csv(path, schema_overrides={"store": pl.String}, **notation)


def checked(path: Path, notation: dict[str, Any]) -> None:
    """Read the file into statistics."""
    statistics_from_files(path, task="store", target="sold", features=["price", "promotion"])


def measured(
    work: Callable[[Path, dict[str, Any]], None], path: Path, notation: dict[str, Any], repeats: int
) -> tuple[Seconds, float]:
    """Return the fastest of some runs, and the most memory, of this process alone."""
    work(path, notation)  # compiled, and the file in the system's memory
    _, seconds = best_of(repeats, lambda: work(path, notation))
    unit = 1 if sys.platform == "darwin" else 1024
    return seconds, float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)


def rates(chosen: argparse.Namespace) -> Section:
    """Read files of each notation both ways."""
    rows, bars = [], []
    with tempfile.TemporaryDirectory() as folder:
        for word, notation in NOTATIONS.items():
            path = Path(folder) / "sales.csv"
            step(f"writing {chosen.rows:,} rows parted by {word}")
            write_sales(path, chosen.rows, notation)
            found = {}
            for name, work in (("polars", bare), ("statistics", checked)):
                with ProcessPoolExecutor(1, get_context("spawn")) as alone:
                    found[name] = alone.submit(measured, work, path, notation, chosen.repeats).result()
            (polars, _), (ours, peak) = found["polars"], found["statistics"]
            ratio = polars.cpu / ours.cpu
            size = path.stat().st_size
            rows.append(
                {
                    "parted by": word,
                    "MB": size / 1e6,
                    "polars, cpu s": polars.cpu,
                    "statistics, cpu s": ours.cpu,
                    "rate": ratio,
                    "rate by the clock": polars.wall / ours.wall,
                    "peak MB": peak / 1e6,
                }
            )
            bars.append(Bar(f"rate beside polars, {word}", ratio, LEAST_RATE, at_least=True))
            bars.append(Bar(f"memory beside the file, {word}", peak - size, MOST_BYTES))
    return Section({f"{chosen.rows:,} rows of four columns into statistics": rows}, bars)


SECTIONS = {"rates": rates}

if __name__ == "__main__":
    parser = command_line("reading", __doc__, SECTIONS)
    parser.add_argument("--rows", type=int, default=10_000_000, help="of the file")
    parser.add_argument("--repeats", type=int, default=3, help="runs, of which the fastest counts")
    sys.exit(run(SECTIONS, parser.parse_args()))
