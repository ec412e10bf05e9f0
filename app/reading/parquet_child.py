"""The process that decodes a file of columns first. It imports polars alone, for each file waits for it."""

from __future__ import annotations

import os
import resource
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import polars as pl
from polars.selectors import by_name

OUT_OF_MEMORY = 3
"""The exit code of a process that ends itself above its limit of memory."""

_SECONDS_BETWEEN_LOOKS = 0.01


def main() -> None:
    """Decode the columns named on the command line, within the memory named before them."""
    how, limit, path, *columns = sys.argv[1:]
    with suppress(OSError):  # when the machine's memory runs out, the kernel should end this process first
        Path("/proc/self/oom_score_adj").write_text("1000")
    threading.Thread(target=_end_above, args=(int(limit),), daemon=True).start()
    rows = _scanned(path)
    rows = rows.select(by_name(columns)) if columns else rows
    if how == "whole":
        rows.collect()
        return
    for _ in rows.collect_batches(lazy=True, engine="streaming"):
        pass


def _scanned(path: str) -> pl.LazyFrame:
    """The rows of a Parquet file, an Arrow file or an Arrow stream."""
    with open(path, "rb") as file:
        head = file.read(6)
    if head.startswith(b"PAR1"):
        return pl.scan_parquet(path, glob=False, hive_partitioning=False)
    return pl.scan_ipc(path) if head == b"ARROW1" else pl.read_ipc_stream(path).lazy()


def _end_above(limit: int) -> None:
    # Not by the kernel's limits: where an allocation fails, the decoder may wait for ever instead of ending.
    while _resident_bytes() <= limit:
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    os._exit(OUT_OF_MEMORY)


def _resident_bytes() -> int:
    try:
        pages = Path("/proc/self/statm").read_text().split()[1]
    except OSError:  # macOS, which tells the most there ever was, in bytes
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(pages) * resource.getpagesize()


if __name__ == "__main__":
    main()
