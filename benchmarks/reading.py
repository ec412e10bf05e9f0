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
DELIMITERS = {"commas": ",", "semicolons": ";"}


def write_sales(path: Path, n_rows: int, delimiter: str) -> None:
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
            frame.write_csv(out, separator=delimiter, include_header=start == 0)


def bare(path: Path, delimiter: str) -> None:
    """Read the file as polars does by itself."""
    pl.read_csv(path, separator=delimiter, schema_overrides={"store": pl.String})


def checked(path: Path, delimiter: str) -> None:
    """Read the file into statistics."""
    statistics_from_files(path, task="store", target="sold", features=["price", "promotion"])


def measured(
    work: Callable[[Path, str], None], path: Path, delimiter: str, repeats: int
) -> tuple[Seconds, float]:
    """Return the fastest of some runs, and the most memory, of this process alone."""
    work(path, delimiter)  # compiled, and the file in the system's memory
    _, seconds = best_of(repeats, lambda: work(path, delimiter))
    unit = 1 if sys.platform == "darwin" else 1024
    return seconds, float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)


def rates(chosen: argparse.Namespace) -> Section:
    """Read files of each delimiter both ways."""
    rows, bars = [], []
    with tempfile.TemporaryDirectory() as folder:
        for word, delimiter in DELIMITERS.items():
            path = Path(folder) / "sales.csv"
            step(f"writing {chosen.rows:,} rows parted by {word}")
            write_sales(path, chosen.rows, delimiter)
            found = {}
            for name, work in (("polars", bare), ("statistics", checked)):
                with ProcessPoolExecutor(1, get_context("spawn")) as alone:
                    found[name] = alone.submit(measured, work, path, delimiter, chosen.repeats).result()
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
