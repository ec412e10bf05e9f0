"""Inverses of Gram blocks against numpy's, where one vector holds a row and where not."""

from __future__ import annotations

import numpy as np
import pytest

from ccmtl_core.base.types import FloatArray
from ccmtl_core.kernels.solver import block_kernels
from ccmtl_core.kernels.vectors import LARGE, lanes_for

every_width = pytest.mark.parametrize(("P", "n_rows"), [(1, 1), (5, 1), (5, LARGE), (8, 1), (11, 1)])
close = pytest.approx


def random_blocks(n_tasks: int, P: int) -> FloatArray:
    A = np.random.default_rng(0).standard_normal((n_tasks, P + 2, P))
    return np.einsum("tni,tnj->tij", A, A)


@every_width
def test_blocks_are_inverted(P: int, n_rows: int) -> None:
    G, diagonal = random_blocks(30, P), np.random.default_rng(1).uniform(0.1, 10.0, 30)
    G[::4] = 0.0
    inverse = np.empty_like(G)
    block_kernels.invert_blocks(G, diagonal, inverse, lanes_for(n_rows, P))
    expected = np.linalg.inv(G + diagonal[:, None, None] * np.eye(P))
    assert inverse == close(expected, rel=1e-12, abs=1e-14)


# The eigenvalues of wider ones are lost in the rounding of eigvalsh itself.
@pytest.mark.parametrize(("P", "n_rows"), [(1, 1), (3, 1), (3, LARGE), (8, 1)])
def test_singular_blocks_give_finite_symmetric_inverses(P: int, n_rows: int) -> None:
    one = np.ones((P, P))
    faint, uneven = np.resize([0.0, 1e-300, 1e300], P), np.resize([1e12, 1e-12, 0.0], P)
    G = np.stack([0 * one, one, np.diag(faint), np.diag(uneven)])
    inverse = np.empty_like(G)
    block_kernels.invert_blocks(G, np.zeros(4), inverse, lanes_for(n_rows, P))
    assert np.isfinite(inverse).all()
    assert (inverse == np.swapaxes(inverse, 1, 2)).all()
    assert (np.linalg.eigvalsh(inverse[[1, 3]]) > 0).all()


@every_width
def test_definite_blocks_are_inverted_and_their_norms_bounded(P: int, n_rows: int) -> None:
    G = random_blocks(30, P)
    inverse, bound = np.empty_like(G), np.empty(30)
    assert block_kernels.invert_definite(G, inverse, bound, lanes_for(n_rows, P))
    assert inverse == close(np.linalg.inv(G), rel=1e-10, abs=1e-14)
    norm = np.linalg.norm(inverse, 2, axis=(1, 2))
    assert (bound >= norm * (1 - 1e-12)).all()
    assert (bound <= P**0.125 * norm * (1 + 1e-12)).all()


@every_width
@pytest.mark.parametrize(
    "block", [0.0, np.outer([1.0, 2.0], [1.0, 2.0]), np.nan], ids=["empty", "collinear", "not a number"]
)
def test_a_block_that_is_not_safely_definite_is_told(P: int, n_rows: int, block: FloatArray | float) -> None:
    G = np.stack([np.eye(P), np.eye(P)])
    G[1, -2:, -2:] = block if P > 1 else 0.0
    assert not block_kernels.invert_definite(G, np.empty_like(G), np.empty(2), lanes_for(n_rows, P))
