"""Decode a Parquet file in a process of its own first, with limits, before the service does.

Changed bytes can make the decoder abort its process, out of reach of any handler, and a small file can be
made to take any amount of memory or time. Here that ends the probe and nothing else.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from app.datasets.reading.parquet_child import OUT_OF_MEMORY
from app.http.errors import PayloadTooLarge
from ccmtl_core.tables.faults import FaultList

MAX_SECONDS = 120.0
SPARE_BYTES = 512 * 1024**2
"""Memory of the process itself, and of what is decompressed at one time."""

_KILLED = -9


def survives_decoding(path: Path, columns: Iterable[str], max_bytes: int) -> bool:
    """Whether decoding the columns of the file at ``path`` leaves the process alive.

    An error that the reader reports as such counts as survived: reading in earnest will meet it again. Raise
    PayloadTooLarge if decoding takes more memory than twice ``max_bytes``, the limit of an upload, and
    ``SPARE_BYTES``; TableError if it takes longer than ``MAX_SECONDS``.
    """
    limit = 2 * max_bytes + SPARE_BYTES
    command = [sys.executable, "-m", "app.datasets.reading.parquet_child", str(limit), str(path), *columns]
    try:
        probe = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
            timeout=MAX_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise FaultList().refusal_for(
            "parquet_takes_too_long",
            f"decoding the Parquet file takes over {MAX_SECONDS:g} seconds; send it in parts, or as CSV",
        ) from None
    if probe.returncode in (OUT_OF_MEMORY, _KILLED):
        raise PayloadTooLarge(
            "upload_too_large",
            f"Decoding the Parquet file takes more than {limit} bytes of memory, the limit for an upload of "
            f"{max_bytes} bytes. Send it in parts (`mode=append`), or as CSV.",
        )
    return probe.returncode >= 0
