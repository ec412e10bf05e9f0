"""The one pass over the rows: exact up to a few roundings, for rows of any length and in any order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccmtl_core import SufficientStatistics, TaskDataset
from ccmtl_core.base.exceptions import DataError
from ccmtl_core.base.types import EPS
from ccmtl_core.data.row_blocks import IN_PLACE
from ccmtl_core.kernels.statistics.gram_blocks import ROWS
from ccmtl_core.kernels.statistics.gram_kernel import PIECE, accumulate_gram
from ccmtl_core.statistics.gram_totals import Totals, zeros

WIDTHS = [*range(1, 19), 28, 31, 200]
LENGTHS = [0, 1, 2, 3, 5, ROWS - 1, ROWS, ROWS + 1, 100, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE + 20]

rows = st.builds(
    lambda seed, P, lengths: (np.random.default_rng(seed), P, np.array(lengths)),
    st.integers(0, 2**32),
    st.sampled_from(WIDTHS),
    st.lists(st.sampled_from(LENGTHS), min_size=1, max_size=4),
)
Rows = tuple[np.random.Generator, int, np.ndarray]


def offsets_of(lengths: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths)])


def totals_of(X: np.ndarray, y: np.ndarray, lengths: np.ndarray, order: np.ndarray = IN_PLACE) -> Totals:
    totals = zeros(len(lengths), X.shape[1])[:5]
    accumulate_gram(X, y, order, offsets_of(lengths), np.arange(len(lengths)), *totals)
    return totals


def exact(X: np.ndarray, y: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The five sums in extended precision, each with that of the absolute values of its terms."""
    Z = np.column_stack([X, y, np.ones(len(y))]).astype(np.longdouble)
    P = X.shape[1]
    for part in (np.s_[:P, :P], np.s_[:P, P], np.s_[P, P], np.s_[:P, P + 1], np.s_[P, P + 1]):
        yield (Z.T @ Z)[part], (abs(Z).T @ abs(Z))[part]


def magnitudes(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers of sizes that differ by powers of ten."""
    return rng.standard_normal(shape) * 10.0 ** rng.integers(-6, 7, shape)


@given(rows)
def test_sums_are_exact_up_to_few_roundings(case: Rows) -> None:
    rng, P, lengths = case
    n = int(lengths.sum())
    X, y = magnitudes(rng, (n, P)), magnitudes(rng, (n,))
    totals = totals_of(X, y, lengths)
    for t, (a, b) in enumerate(zip(offsets_of(lengths)[:-1], offsets_of(lengths)[1:], strict=True)):
        for total, (value, size) in zip(totals, exact(X[a:b], y[a:b]), strict=True):
            assert (abs(total[t] - value) <= (2 * ROWS + 8) * EPS * size).all()
        assert np.array_equal(totals[0][t], totals[0][t].T)


@given(rows)
def test_an_order_of_rows_is_that_of_sorted_rows(case: Rows) -> None:
    rng, P, lengths = case
    n = int(lengths.sum())
    X, y = magnitudes(rng, (n, P)), magnitudes(rng, (n,))
    order = rng.permutation(n)
    for one, other in zip(
        totals_of(X, y, lengths, order), totals_of(X[order], y[order], lengths), strict=True
    ):
        assert np.array_equal(one, other)


def test_strided_arrays_are_read_as_they_are() -> None:
    rng = np.random.default_rng(0)
    X, y, order = rng.standard_normal((40, 6)), rng.standard_normal((40, 3)), rng.permutation(80)[::2] % 40
    lengths = np.array([15, 25])
    strided = totals_of(X[:, ::-1], y[:, 1], lengths, order)
    for one, other in zip(
        strided, totals_of(X[:, ::-1].copy(), y[:, 1].copy(), lengths, order.copy()), strict=True
    ):
        assert np.array_equal(one, other)


@given(rows)
def test_a_task_alone_has_the_same_sums_as_among_others(case: Rows) -> None:
    rng, P, lengths = case
    n = int(lengths.sum())
    X, y = magnitudes(rng, (n, P)), magnitudes(rng, (n,))
    together = totals_of(X, y, lengths)
    for t, (a, b) in enumerate(zip(offsets_of(lengths)[:-1], offsets_of(lengths)[1:], strict=True)):
        alone = totals_of(X[a:b].copy(), y[a:b].copy(), lengths[t : t + 1])
        for one, other in zip(together, alone, strict=True):
            assert np.array_equal(one[t], other[0])


@given(rows, st.sampled_from([np.nan, np.inf]))
def test_nothing_beside_the_rows_gets_in(case: Rows, beside: float) -> None:
    rng, P, lengths = case
    n = int(lengths.sum())
    X, y = np.full((n + 8, P), beside), np.full(n + 8, beside)
    X[4 : n + 4], y[4 : n + 4] = rng.standard_normal((n, P)), rng.standard_normal(n)
    inside = totals_of(X[4 : n + 4], y[4 : n + 4], lengths)
    for one, other in zip(inside, totals_of(X[4 : n + 4].copy(), y[4 : n + 4].copy(), lengths), strict=True):
        assert np.array_equal(one, other)


@given(rows)
def test_rows_are_added_to_the_slots_of_their_groups(case: Rows) -> None:
    rng, P, lengths = case
    n, T = int(lengths.sum()), len(lengths)
    X, y = rng.standard_normal((n, P)), rng.standard_normal(n)
    slot = 1 + rng.permutation(T)
    totals = tuple(rng.standard_normal(a.shape) for a in zeros(T + 2, P)[:5])
    before = tuple(a.copy() for a in totals)
    accumulate_gram(X, y, IN_PLACE, offsets_of(lengths), slot, *totals)
    for total, old, new in zip(totals, before, totals_of(X, y, lengths), strict=True):
        assert np.array_equal(total[[0, -1]], old[[0, -1]])
        size = abs(old[slot]) + abs(new) + n
        assert (abs(total[slot] - (old[slot] + new)) <= 8 * EPS * size).all()


@pytest.mark.parametrize("n", [20, 100, 128, 256, 1000, 5000, 50_000, 300_000])
def test_errors_of_equal_rows_do_not_add_up(n: int) -> None:
    """All of them have one sign: a sum over 128 rows one by one is off by 14 units, most often."""
    values = np.random.default_rng(0).uniform(0.5, 8.0, min(300, 3_000_000 // n))
    data = TaskDataset(
        np.repeat(values, n)[:, None],
        np.ones(len(values) * n),
        np.arange(len(values) + 1) * n,
        tuple(map(str, range(len(values)))),
        ("x",),
    )
    statistics = SufficientStatistics.from_dataset(data)
    assert not statistics.centred.gram.any()
    square = statistics.gram[:, 0, 0].astype(np.longdouble)
    of_squares = abs(square / n / values.astype(np.longdouble) ** 2 - 1)
    of_sums = abs(statistics.x_sum[:, 0].astype(np.longdouble) / n / values - 1)  # type: ignore[index]
    assert max(of_squares.max(), of_sums.max()) < 8 * EPS


@pytest.mark.parametrize("P", [1, 3, 10])
def test_arrays_of_other_kinds_give_the_same(P: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(-9, 9, (50, P)).astype(np.float64)
    y = rng.integers(-9, 9, 50).astype(np.float64)
    frozen = X.copy()
    frozen.flags.writeable = False
    expected = SufficientStatistics.from_dataset(TaskDataset.from_arrays([X], [y]))
    assert np.array_equal(expected.gram[0], X.T @ X)
    others: list[Any] = [np.asfortranarray(X), X.astype(np.float32), X.astype(np.int8), frozen, X[::-1][::-1]]
    for other in others:
        names = ("0",), tuple(map(str, range(P)))
        statistics = SufficientStatistics.from_dataset(TaskDataset(other, y, np.array([0, 50]), *names))
        assert np.array_equal(statistics.gram, expected.gram)
        assert np.array_equal(statistics.xty, expected.xty)


def test_squares_that_underflow_are_refused_by_name() -> None:
    X = np.array([[1.0, 1.0], [2.0, 3.0], [1.0, 1e-170], [2.0, 3e-170]])
    data = TaskDataset(X, np.arange(4.0), [0, 2, 4], ("a", "b"), ("x", "z"))
    with pytest.raises(DataError, match=r"task 'b': sums do not fit .* smaller units, or let it be 0"):
        SufficientStatistics.from_dataset(data)
    with pytest.raises(DataError, match="task 'b'"):
        SufficientStatistics.by_fold(data, np.zeros(4, dtype=int), 1)


def test_no_features_are_refused() -> None:
    with pytest.raises(DataError, match="at least one task and one feature"):
        SufficientStatistics.from_blocks([(np.zeros((2, 0)), [1.0, 2.0], [0, 0])], 1, 0)
