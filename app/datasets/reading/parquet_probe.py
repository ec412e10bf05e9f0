"""A Parquet file in, whether its columns can be decoded out: tried first in a process of its own.

Changed bytes can make the decoder abort the process, out of reach of any handler. Here that ends the probe.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import polars as pl


def survives_decoding(path: Path, columns: Iterable[str]) -> bool:
    """Whether decoding the columns of the file at ``path`` leaves the process alive.

    An error that the reader reports as such counts as survived: reading in earnest will meet it again.
    """
    command = [sys.executable, "-m", "app.datasets.reading.parquet_probe", str(path), *columns]
    probe = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
    )
    return probe.returncode >= 0


def main() -> None:
    """Decode the columns named on the command line, a piece at a time."""
    path, *columns = sys.argv[1:]
    rows = pl.scan_parquet(path, glob=False, hive_partitioning=False)
    rows.select(pl.col(columns).is_null().sum()).collect()


if __name__ == "__main__":
    main()
