"""Warn of dates far away from all others, as a mistyped year makes them.

A gap counts when no series has a value in it, when it is longer than all periods that have one taken
together, and when it is more than ten times the usual step from one of these to the next: a mistyped year
makes such a gap, rows of the first of each month make none.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from app.datasets.schemas import Warned
from app.datasets.stored.period_values import PeriodValues, period_text
from app.datasets.stored.runs import blocks

FEWEST = 30
"""Shorter gaps are nothing to wonder at."""
USUAL_STEPS = 10


def isolated_periods(runs: pl.DataFrame, upload: PeriodValues, n_filled: int) -> Iterator[Warned]:
    """Warn of the first and of the last such gap.

    Parameters
    ----------
    runs : DataFrame
        Of the whole version (see :mod:`app.datasets.stored.runs`).
    upload : PeriodValues
        The part of it that was sent now, whose rows can be named.
    n_filled : int
        Values that the fill policy adds to the version.

    Returns
    -------
    iterator of Warned
        Two at most.
    """
    starts, ends = blocks(runs["first"].to_numpy(), runs["length"].to_numpy())
    if len(starts) < 2:
        return
    n_occupied = int((ends - starts).sum())
    steps = starts[1:] - ends[:-1] + 1  # from one block to the next; inside a block each step is one
    n_single, middle = n_occupied - len(starts), (n_occupied - 2) // 2
    usual = 1 if middle < n_single else np.sort(steps)[middle - n_single]
    gaps = np.flatnonzero((steps - 1 > max(FEWEST, n_occupied)) & (steps > USUAL_STEPS * usual))
    for i in sorted({*gaps[:1].tolist(), *gaps[-1:].tolist()}):
        yield _warning(int(ends[i]) - 1, int(starts[i + 1]), runs, upload, n_filled)


def _warning(before: int, after: int, runs: pl.DataFrame, upload: PeriodValues, n_filled: int) -> Warned:
    n_values = int(runs["length"].sum())
    n_after = int(runs.filter(pl.col("first") >= after)["length"].sum())
    n_before = n_values - n_after
    is_late = n_after <= n_before
    rows = upload.row[upload.period >= after if is_late else upload.period <= before]
    first, last = (period_text(upload.frequency, period) for period in (before, after))
    count, place = (n_after, f"from {last} on") if is_late else (n_before, f"up to {first}")
    known = f" (the first in row {rows.min()})" if len(rows) else ""
    filled = f" Filling in adds {n_filled} values." if n_filled else ""
    return Warned(
        code="isolated_period",
        message=f"No series has a value in the {after - before - 1} periods between {first} and {last}; "
        f"values {place}: {count} of {n_values}{known}; is a date mistyped?{filled}",
        count=count,
    )
