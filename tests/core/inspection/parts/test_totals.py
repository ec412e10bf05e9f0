"""A series that adds up all others is told, whatever it is called; series that only look so are not."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest

from ccmtl_core.base.types import FloatArray
from ccmtl_core.inspection.parts.totals import Totals
from ccmtl_core.inspection.repairs import Values
from ccmtl_core.series.calendar import Frequency

SOLD = np.random.default_rng(3).integers(0, 50, (4, 12)).astype(float)
SUM = SOLD.sum(axis=0)
PAIR = np.full(12, 9.0)
FEW = np.zeros(12)
FEW[0] = 1


def values_of(y: FloatArray, first: int = 100, of: int = 0) -> Values:
    n_series, n = y.shape
    period = np.tile(np.arange(first, first + n), n_series)
    ids = tuple(f"s{of + i}" for i in range(n_series))
    return Values(ids, np.arange(n_series), np.arange(0, y.size + 1, n), period, y.ravel(), Frequency.DAY)


@pytest.mark.parametrize(
    ("y", "found"),
    [
        ([*SOLD, SUM], "s4"),
        ([SUM * (np.arange(12) > 0), *SOLD], "s0"),
        ([*SOLD, SUM * (np.arange(12) > 5)], None),
        ([*SOLD[:2], SOLD[:2].sum(axis=0)], None),
        ([*SOLD, SUM + 1], None),
        ([*SOLD, SUM, SUM], None),
        ([PAIR, PAIR, FEW, FEW, FEW], None),
        ([PAIR * 0] * 5, None),
    ],
    ids=["last", "most", "half", "two-others", "another", "twice", "twins", "zeros"],
)
def test_the_sum_of_at_least_three_others_in_nearly_every_period(y: list[FloatArray], found: str) -> None:
    whole = Totals.of(values_of(np.array(y)))
    assert whole is not None
    assert whole.series() == found
    parts = [Totals.of(values_of(np.array([one]), of=i)) for i, one in enumerate(y)]
    together = reduce(lambda some, others: some and others and some.joined(others), parts)
    assert together is not None
    assert together.series() == found


def test_series_of_other_periods_are_joined() -> None:
    early, late = values_of(SOLD, 100), values_of(SUM[None], 100, of=4)
    begun = values_of(np.ones((1, 3)), 98, of=5)
    first = Totals.of(begun)
    for one in map(Totals.of, (late, early)):
        assert first is not None
        assert one is not None
        first = first.joined(one)
    assert first is not None
    assert (first.first, len(first.sums), first.unique_id) == (98, 14, "s4")
    assert first.sums.sum() == 3 + 2 * SUM.sum()


def test_nothing_is_found_in_very_many_periods() -> None:
    near, far = Totals.of(values_of(SOLD)), Totals.of(values_of(SOLD, 10**6))
    assert near is not None
    assert far is not None
    assert near.joined(far) is None
    spread = Values(("a",), np.arange(1), np.array([0, 2]), np.array([0, 10**6]), np.ones(2), Frequency.DAY)
    assert Totals.of(spread) is None
