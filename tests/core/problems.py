"""Random tasks for property tests, and an oracle in exact rational arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from ccmtl_core import TaskDataset


@st.composite
def datasets(draw: st.DrawFn, max_tasks: int = 6, max_features: int = 5) -> TaskDataset:
    """Ragged tasks: empty ones, short ones, some with repeated or zero columns."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    P = draw(st.integers(1, max_features))
    lengths = draw(st.lists(st.integers(0, 12), min_size=1, max_size=max_tasks))
    if draw(st.booleans()):
        lengths[0] = 300  # more than one chunk of the kernels
    X = [rng.standard_normal((n, P)) * 10.0 ** rng.integers(-3, 4) for n in lengths]
    for block in X:
        if P > 1 and rng.random() < 0.3:
            block[:, -1] = block[:, 0]
        if rng.random() < 0.2:
            block[:, 0] = 0.0
    y = [rng.standard_normal(n) * 10.0 ** rng.integers(-3, 4) for n in lengths]
    return TaskDataset.from_arrays(X, y)


def exact_residual(X: np.ndarray, y: np.ndarray) -> Fraction:
    """Least residual sum of squares over w, by Gram-Schmidt in rational arithmetic."""
    rest = [Fraction(float(v)) for v in y]
    basis: list[list[Fraction]] = []
    for column in X.T:
        v = [Fraction(float(value)) for value in column]
        for q in basis:
            v = _without(v, q)
        if any(v):
            basis.append(v)
            rest = _without(rest, v)
    return sum((r * r for r in rest), Fraction(0))


def _without(v: list[Fraction], q: list[Fraction]) -> list[Fraction]:
    share = sum(a * b for a, b in zip(v, q, strict=True)) / sum(b * b for b in q)
    return [a - share * b for a, b in zip(v, q, strict=True)]
