"""Vectors in compiled loops: rows of any length, in parts that may share numbers, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from numba.core.errors import TypingError

from ccmtl_core.base.types import FloatArray
from ccmtl_core.kernels.compiled import kernel
from ccmtl_core.kernels.vectors import (
    LARGE,
    MOST_LANES,
    Lanes,
    absolute,
    lanes_for,
    later,
    load,
    number,
    pointer,
    replaced,
    store,
    total,
    width,
    zeros,
)

widths = pytest.mark.parametrize("P", [1, 2, 3, 5, 6, 7, 8, 9, 15, 16, 17, 40])
amounts = pytest.mark.parametrize("n_rows", [1, LARGE])


@kernel
def combine(x: FloatArray, y: FloatArray, out: FloatArray, lanes: Lanes) -> tuple[float, float]:
    """Fill in 2 x y − 3 x + y, add |x| to it in place, and return Σ x y and Σ |x|."""
    P, L = x.size, len(lanes)
    product, size = 0.0, 0.0
    for c in range(0, P, L):
        at = min(c, P - L)
        u, v, s = load(pointer(x), at, lanes), load(pointer(y), at, lanes), zeros(lanes)
        s += 2.0 * u * v
        s -= 3.0 * u
        store(s + v, pointer(out), at)
        product += total(later(u * v, c - at))
        size += total(later(absolute(u), c - at))
    for c in range(0, P, L):
        at = min(c, P - L)
        more = later(absolute(load(pointer(x), at, lanes)), c - at)
        store(load(pointer(out), at, lanes) + more, pointer(out), at)
    return product, size


@kernel
def halve(x: FloatArray, lanes: Lanes) -> None:
    """Halve each number in place."""
    P, L = x.size, len(lanes)
    for c in range(0, P, L):
        at = min(c, P - L)
        old = load(pointer(x), at, lanes)
        store(replaced(old, 0.5 * old, c - at), pointer(x), at)


@kernel
def sum_of_multiple(factor: float, x: FloatArray, lanes: Lanes) -> float:
    """Σ factor x, of a row of one vector."""
    return float(total(factor * load(pointer(x), 0, lanes)))


@kernel
def last_of(x: FloatArray, lanes: Lanes) -> float:
    """The last number of a row as long as ``width`` says."""
    return float(number(pointer(x), width(lanes, x.size) - 1))


@amounts
@widths
def test_a_row_is_taken_whole_and_no_number_counts_twice(P: int, n_rows: int) -> None:
    rng = np.random.default_rng(P)
    x, y = rng.standard_normal((2, P))
    out = np.full(P + 2, np.nan)
    product, size = combine(x, y, out[1:-1], lanes_for(n_rows, P))
    assert out[1:-1] == pytest.approx(2 * x * y - 3 * x + y + np.abs(x), rel=1e-14, abs=1e-15)
    assert np.isnan(out[[0, -1]]).all(), "nothing beside the row is written"
    assert (product, size) == pytest.approx((x @ y, np.abs(x).sum()), rel=1e-13)


@amounts
@widths
def test_what_parts_share_is_replaced_once(P: int, n_rows: int) -> None:
    x = np.arange(1.0, P + 1)
    halve(x, lanes_for(n_rows, P))
    assert x.tolist() == (0.5 * np.arange(1.0, P + 1)).tolist()


@amounts
@widths
def test_a_row_is_as_wide_as_it_is(P: int, n_rows: int) -> None:
    assert width(lanes_for(n_rows, P), P) == P
    assert last_of(np.arange(float(P)), lanes_for(n_rows, P)) == P - 1


def test_lanes_of_their_own_are_for_many_rows() -> None:
    assert lanes_for(10, 5) == (0,)
    assert lanes_for(LARGE, 5) == (0,) * 5
    assert lanes_for(10, 200) == lanes_for(LARGE, 200) == (0,) * MOST_LANES


def test_pointers_are_refused_where_rows_are_not_one_after_the_other() -> None:
    with pytest.raises(TypingError, match="an array must be contiguous"):
        halve(np.zeros((3, 2))[:, 0], (0,))


def test_what_registers_hold_beyond_a_row_does_not_count() -> None:
    assert sum_of_multiple(np.inf, np.ones(5), (0,) * 5) == np.inf, "zero times infinity is no number"


@kernel
def copy_row(row: FloatArray, out: FloatArray, lanes: Lanes) -> None:
    """Copy a row in vectors."""
    for c in range(0, row.size, len(lanes)):
        at = min(c, row.size - len(lanes))
        store(load(pointer(row), at, lanes), pointer(out), at)


@widths
def test_numbers_of_single_precision_are_loaded_as_they_are(P: int) -> None:
    row, out = np.arange(1, P + 1, dtype=np.float32) / 7, np.empty(P)
    copy_row(row, out, lanes_for(LARGE, P))
    assert (out == row).all()
