"""Find a series that adds up all others, whatever it is called."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ccmtl_core.base.types import BoolArray, FloatArray, IntArray
from ccmtl_core.inspection.repairs import Values

_MOST_PERIODS = 20_000
"""From the first to the last; of more, nothing is found."""
_FEWEST_OTHERS, _FEWEST_PERIODS = 3, 4
_NEARLY = 0.9
"""Share of the periods in which the series must be the sum of all others."""
_TOLERANCE = 1e-6
_RIVAL = 0.95
"""Share of the largest series from which another one is as likely the sum, and neither is told."""


@dataclass(frozen=True, eq=False)
class Totals:
    """The values of all series added up by period, and the largest series, which alone may be their sum."""

    first: int
    """The first period."""
    sums: FloatArray
    """Of each period from there on."""
    n_sold: int
    """Series that have a value other than 0."""
    largest: tuple[float, float]
    """The sums of the largest series and of the next one."""
    unique_id: str
    """Of the largest series."""
    period: IntArray
    value: FloatArray
    """Its values."""

    @classmethod
    def of(cls, values: Values) -> Totals | None:
        """Return those of some series; None of no values, and of very many periods."""
        if not len(values.value):
            return None
        first = int(values.period.min())
        if int(values.period.max()) - first >= _MOST_PERIODS:
            return None
        by_series = np.add.reduceat(values.value, values.offsets[:-1])
        at = int(by_series.argmax())
        place = slice(int(values.offsets[at]), int(values.offsets[at + 1]))
        ranked = np.sort(by_series)[-2:]
        return cls(
            first,
            np.bincount(values.period - first, weights=values.value).astype(np.float64),
            int(np.count_nonzero(by_series)),
            (float(ranked[-1]), float(ranked[0]) if len(ranked) > 1 else 0.0),
            values.unique_ids[at],
            values.period[place].copy(),  # of all values, which need not be kept
            values.value[place].copy(),
        )

    def joined(self, other: Totals) -> Totals | None:
        """Return those of the series of both; None of very many periods."""
        first = min(self.first, other.first)
        end = max(one.first + len(one.sums) for one in (self, other))
        if end - first > _MOST_PERIODS:
            return None
        sums = np.zeros(end - first)
        for one in (self, other):
            sums[one.first - first : one.first - first + len(one.sums)] += one.sums
        large = self if self.largest[0] >= other.largest[0] else other
        ranked = sorted((*self.largest, *other.largest))
        n_sold = self.n_sold + other.n_sold
        return Totals(
            first, sums, n_sold, (ranked[-1], ranked[-2]), large.unique_id, large.period, large.value
        )

    def series(self) -> str | None:
        """Return the id of a series that is the sum of all others in nearly every period, if there is one."""
        is_sold: BoolArray = self.sums != 0
        n_sold = int(is_sold.sum())
        if self.n_sold <= _FEWEST_OTHERS or n_sold < _FEWEST_PERIODS:
            return None
        sums = self.sums[self.period - self.first]
        is_half = (np.abs(2 * self.value - sums) <= _TOLERANCE * np.abs(sums)) & (sums != 0)
        is_only = self.largest[1] < _RIVAL * self.largest[0]
        return self.unique_id if is_only and is_half.sum() >= _NEARLY * n_sold else None
