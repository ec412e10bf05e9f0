"""Inverses of wide blocks against numpy's, of any width, in double and in single precision."""

from __future__ import annotations

import numpy as np
import pytest

from ccmtl_core.base.types import FloatArray
from ccmtl_core.kernels.wide_blocks import inverses, invert_wide

close = pytest.approx


def random_blocks(n_tasks: int, P: int) -> FloatArray:
    A = np.random.default_rng(0).standard_normal((n_tasks, P + 2, P))
    return np.einsum("tni,tnj->tij", A, A)


@pytest.mark.parametrize("P", [1, 4, 7, 8, 17, 53])
def test_blocks_and_their_determinants_are_those_of_numpy(P: int) -> None:
    G = random_blocks(30, P)
    G[::4] = 0.0
    inverse, log_determinant = inverses(G, 0.5)
    shifted = G + 0.5 * np.eye(P)
    assert inverse == close(np.linalg.inv(shifted), rel=1e-10, abs=1e-12)
    assert log_determinant == close(np.linalg.slogdet(shifted)[1], rel=1e-10)
    assert (inverse == np.swapaxes(inverse, 1, 2)).all()


def test_only_the_chosen_blocks_are_inverted_each_with_its_shift_in_the_precision_asked_for() -> None:
    G, shift = random_blocks(5, 20), np.arange(1.0, 6.0)
    inverse = np.zeros(G.shape, np.float32)
    invert_wide(G, np.array([1, 3]), shift, inverse)
    expected = np.linalg.inv(G + shift[:, None, None] * np.eye(20))
    assert inverse[[1, 3]] == close(expected[[1, 3]], rel=1e-4, abs=1e-6)
    assert not inverse[[0, 2, 4]].any()


def test_singular_blocks_give_finite_inverses_with_a_positive_diagonal() -> None:
    P = 18
    faint, uneven = np.resize([0.0, 1e-300, 1e300], P), np.resize([1e12, 1e-12, 0.0], P)
    inverse, log_determinant = inverses(
        np.stack([np.zeros((P, P)), np.ones((P, P)), np.diag(faint), np.diag(uneven)]), 0.0
    )
    assert np.isfinite(inverse).all()
    assert np.isfinite(log_determinant).all()
    assert (np.diagonal(inverse, axis1=1, axis2=2) > 0).all()
