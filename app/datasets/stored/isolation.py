"""The periods of a whole version in, warnings about dates far away from all others out.

A gap counts when no series has a value in it, when it is longer than all periods that have one taken
together, and when it is more than ten times the usual step from one of these to the next: a mistyped year
makes such a gap, rows of the first of each month make none.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from app.datasets.schemas import Warned
from app.datasets.stored.period_values import PeriodValues, period_text

FEWEST = 30
"""Shorter gaps are nothing to wonder at."""
USUAL_STEPS = 10


def isolated_periods(whole: PeriodValues, upload: PeriodValues, n_filled: int) -> Iterator[Warned]:
    """Warn of the first and of the last such gap.

    Parameters
    ----------
    whole : PeriodValues
        The version.
    upload : PeriodValues
        The part of it that was sent now, whose rows can be named.
    n_filled : int
        Values that the fill policy adds to the version.
    """
    occupied = np.unique(whole.period)
    steps = np.diff(occupied)
    if not len(steps):
        return
    usual = np.sort(steps)[(len(steps) - 1) // 2]
    is_gap = steps - 1 > max(FEWEST, len(occupied))
    gaps = np.flatnonzero(is_gap & (steps > USUAL_STEPS * usual))
    for i in sorted({*gaps[:1].tolist(), *gaps[-1:].tolist()}):
        yield _warning(int(occupied[i]), int(occupied[i + 1]), whole, upload, n_filled)


def _warning(before: int, after: int, whole: PeriodValues, upload: PeriodValues, n_filled: int) -> Warned:
    n_after = int((whole.period >= after).sum())
    n_before = len(whole.period) - n_after
    is_late = n_after <= n_before
    rows = upload.row[upload.period >= after if is_late else upload.period <= before]
    first, last = (period_text(whole.frequency, period) for period in (before, after))
    count, place = (n_after, f"from {last} on") if is_late else (n_before, f"up to {first}")
    known = f" (the first in row {rows.min()})" if len(rows) else ""
    filled = f" Filling in adds {n_filled} values." if n_filled else ""
    return Warned(
        code="isolated_period",
        message=f"No series has a value in the {after - before - 1} periods between {first} and {last}; "
        f"values {place}: {count} of {len(whole.period)}{known}; is a date mistyped?{filled}",
        count=count,
    )
