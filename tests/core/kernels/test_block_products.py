"""Products of blocks and vectors, in vectors of every width, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from ccmtl_core.base.arrays import read_only
from ccmtl_core.kernels.block_products import absolute_quadratic, quadratic, times
from ccmtl_core.kernels.vectors import LARGE

sizes = pytest.mark.parametrize(
    ("T", "P"),
    [(0, 3), (1, 1), (40, 2), (LARGE // 5, 5), (30, 8), (30, 11), (20, 19), (9, 53)],
    ids="{0}".format,
)


@sizes
def test_products_follow_their_formulas(T: int, P: int) -> None:
    rng = np.random.default_rng(P)
    A = rng.standard_normal((T, P, P))
    A, v = A + np.swapaxes(A, 1, 2), rng.standard_normal((T, P))
    product = np.einsum("tpq,tq->tp", A, v)
    size = np.einsum("tp,tpq,tq->t", abs(v), abs(A), abs(v))
    assert times(A, v) == pytest.approx(product, rel=1e-12, abs=1e-13)
    assert (abs(quadratic(A, v) - np.einsum("tp,tp->t", v, product)) <= 1e-14 * P * size).all()
    assert absolute_quadratic(A, v) == pytest.approx(size, rel=1e-13)


def test_arrays_may_be_strided_or_refuse_writes() -> None:
    rng = np.random.default_rng(0)
    A, v = np.asfortranarray(rng.standard_normal((6, 3, 3))), rng.standard_normal((12, 3))[::2]
    A = A + np.swapaxes(A, 1, 2)
    for blocks, rows in ((A, v), (read_only(A), read_only(v))):
        assert times(blocks, rows) == pytest.approx(np.einsum("tpq,tq->tp", A, v))
