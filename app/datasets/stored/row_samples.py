"""Keep a sample of the rows of each upload, to notice when they are sent again.

The rows with the smallest hashes are kept. A later upload hashes its rows alike, so it can be compared with
the sample alone.
"""

from __future__ import annotations

import hashlib

import numpy as np
import polars as pl
from numpy.typing import NDArray

MAX_SAMPLED = 4096
"""Different rows kept of an upload; all are kept if there are no more."""

_HASHES = 2.0**64
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FACTORS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def row_hashes(rows: pl.DataFrame) -> NDArray[np.uint64]:
    """Return a hash of each row's ``unique_id`` and numbers, the same in every process; -0 hashes as 0."""
    ids = rows["unique_id"].unique(maintain_order=True)
    of_id = np.array([_text_hash(text) for text in ids], dtype=np.uint64)
    hashes: NDArray[np.uint64] = of_id[rows["unique_id"].cast(pl.Enum(ids)).to_physical().to_numpy()]
    for name in rows.columns:
        if name != "unique_id":
            hashes = _mixed(hashes + _STEP ^ (rows[name].to_numpy() + 0.0).view(np.uint64))
    return hashes


def sampled(rows: pl.DataFrame, segment: int) -> pl.DataFrame:
    """Return the sample of one upload's rows: ``segment``, ``hash``, ``times`` and ``rate``.

    ``times`` is how often the upload has the row; ``rate`` is the share of all hashes below the largest one
    kept, or 1 if every row was kept.
    """
    hashes, times = np.unique(row_hashes(rows), return_counts=True)
    rate = 1.0 if len(hashes) <= MAX_SAMPLED else float(hashes[MAX_SAMPLED - 1]) / _HASHES
    kept = {"hash": hashes[:MAX_SAMPLED], "times": times[:MAX_SAMPLED]}
    return pl.DataFrame(kept).with_columns(
        pl.lit(segment, pl.Int64).alias("segment"), pl.lit(rate).alias("rate")
    )


def _text_hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def _mixed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spread each number's bits over all 64 of it (the last steps of SplitMix64)."""
    x = (x ^ (x >> np.uint64(30))) * _FACTORS[0]
    x = (x ^ (x >> np.uint64(27))) * _FACTORS[1]
    return x ^ (x >> np.uint64(31))
