"""Values far from the median of their series are those that numpy finds."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ccmtl_core.kernels.series.outliers import _mark, far_from_median

FEWEST, SPREADS = 4, 3.0
SERIES = st.lists(st.integers(-3, 3).map(float) | st.floats(-1e3, 1e3) | st.sampled_from([1e308, -1e308]))


def expected(values: list[float]) -> list[bool]:
    value = np.array(values)
    some = value[value != 0]
    if len(some) < FEWEST:
        return [False] * len(values)
    with np.errstate(over="ignore"):
        middle = np.median(some)
        spread = 1.4826 * np.median(np.abs(some - middle))
        away = np.abs(value - middle)
        is_far = (value != 0) & (spread > 0) & (away > SPREADS * spread) & (away > abs(middle))
    return is_far.tolist()


@given(series=st.lists(SERIES))
def test_far_values_are_those_that_numpy_finds(series: list[list[float]]) -> None:
    value = np.array([one for values in series for one in values])
    offsets = np.cumsum([0, *map(len, series)])
    before = value.copy()
    found = far_from_median(value, offsets, FEWEST, SPREADS).tolist()
    assert found == [one for values in series for one in expected(values)]
    np.testing.assert_array_equal(value, before)


def test_values_that_may_be_written_and_those_that_may_not_are_compiled_once() -> None:
    value, offsets = np.array([1.0, 2.0, 3.0, 4.0, 900.0]), np.array([0, 5])
    expected = [False, False, False, False, True]
    assert far_from_median(value, offsets, FEWEST, SPREADS).tolist() == expected
    value.flags.writeable = offsets.flags.writeable = False
    assert far_from_median(value, offsets, FEWEST, SPREADS).tolist() == expected
    assert len(_mark.signatures) == 1
