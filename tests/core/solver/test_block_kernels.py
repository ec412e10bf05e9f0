"""Inverses of Gram blocks against numpy's, with P as a constant and as a number."""

from __future__ import annotations

import numpy as np
import pytest

from ccmtl_core._types import FloatArray
from ccmtl_core.solver import block_kernels
from ccmtl_core.solver.kernels import Dims

P = 3
every_dims = pytest.mark.parametrize("dims", [P, (0,) * P], ids=["number", "constant"])
close = pytest.approx


def random_blocks(n_tasks: int) -> FloatArray:
    A = np.random.default_rng(0).standard_normal((n_tasks, 5, P))
    return np.einsum("tni,tnj->tij", A, A)


@every_dims
def test_blocks_are_inverted(dims: Dims) -> None:
    G, diagonal = random_blocks(30), np.random.default_rng(1).uniform(0.1, 10.0, 30)
    G[::4] = 0.0
    inverse = np.empty_like(G)
    block_kernels.invert_blocks(G, diagonal, inverse, dims)
    expected = np.linalg.inv(G + diagonal[:, None, None] * np.eye(P))
    assert inverse == close(expected, rel=1e-12, abs=1e-14)


@every_dims
def test_singular_blocks_give_finite_symmetric_inverses(dims: Dims) -> None:
    one = np.ones((P, P))
    G = np.stack([0 * one, one, np.diag([0.0, 1e-300, 1e300]), np.diag([1e12, 1e-12, 0.0])])
    inverse = np.empty_like(G)
    block_kernels.invert_blocks(G, np.zeros(4), inverse, dims)
    assert np.isfinite(inverse).all()
    assert (inverse == np.swapaxes(inverse, 1, 2)).all()
    assert (np.linalg.eigvalsh(inverse[[1, 3]]) > 0).all()


@every_dims
def test_definite_blocks_are_inverted_and_their_norms_bounded(dims: Dims) -> None:
    G = random_blocks(30)
    inverse, bound = np.empty_like(G), np.empty(30)
    assert block_kernels.invert_definite(G, inverse, bound, dims)
    assert inverse == close(np.linalg.inv(G), rel=1e-10, abs=1e-14)
    norm = np.linalg.norm(inverse, 2, axis=(1, 2))
    assert (bound >= norm * (1 - 1e-12)).all()
    assert (bound <= P**0.125 * norm * (1 + 1e-12)).all()


@every_dims
@pytest.mark.parametrize(
    "X",
    [np.zeros((4, P)), np.outer([1.0, 2.0, 3.0, 4.0], [1.0, 1.0, 1.0]), np.full((4, P), np.nan)],
    ids=["empty", "collinear", "not a number"],
)
def test_a_block_that_is_not_safely_definite_is_told(dims: Dims, X: FloatArray) -> None:
    G = np.stack([np.eye(P), X.T @ X])
    assert not block_kernels.invert_definite(G, np.empty_like(G), np.empty(2), dims)
