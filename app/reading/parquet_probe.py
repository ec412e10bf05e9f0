"""Decode a file of columns in a process of its own first, with limits, before the caller does.

Changed bytes can make the decoder abort its process, out of reach of any handler, and a small file can be
made to take any amount of memory or time. Here that ends the probe and nothing else.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from enum import Enum, auto
from pathlib import Path

from app.reading.parquet_child import OUT_OF_MEMORY

MAGIC = b"PAR1"
"""How a Parquet file begins."""
_KILLED = -9


class Decoding(Enum):
    """How the decoding of a file ended."""

    DONE = auto()
    """The process lives; an error that the reader reports as such counts, as reading will meet it again."""
    ABORTED = auto()
    TOO_LARGE = auto()
    TOO_SLOW = auto()


def decoded_apart(
    path: Path,
    columns: Iterable[str],
    max_bytes: int,
    *,
    max_seconds: float | None = None,
    in_pieces: bool = False,
) -> Decoding:
    """Decode the columns of the file, all of them where none is named, in a process of its own.

    Parameters
    ----------
    path : Path
        A Parquet or Arrow file, or an Arrow stream.
    columns : iterable of str
        Their names.
    max_bytes : int
        Memory that the process may take.
    max_seconds : float, optional
        Time that it may take.
    in_pieces : bool
        Whether rows are let go once they are decoded, so that the file may be larger than memory.

    Returns
    -------
    Decoding
    """
    how = "pieces" if in_pieces else "whole"
    command = [sys.executable, "-m", "app.reading.parquet_child", how, str(max_bytes), str(path), *columns]
    try:
        probe = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
            timeout=max_seconds,
        )
    except subprocess.TimeoutExpired:
        return Decoding.TOO_SLOW
    if probe.returncode in (OUT_OF_MEMORY, _KILLED):
        return Decoding.TOO_LARGE
    return Decoding.DONE if probe.returncode >= 0 else Decoding.ABORTED
