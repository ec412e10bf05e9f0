"""The School set, where its file lies, and a set like it in size and kind that is made here.

The file may not be passed on. The set made here keeps what makes it hard: features in bytes, many of which
are constant within a school or add up to the constant column, so that no school's least squares are unique.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.io import loadmat

from ccmtl_core import TaskDataset
from tests.support.real_data import SCHOOL, needs

N_SCHOOLS, N_PUPILS = 139, 15_362
N_YEARS, N_BANDS, N_ORIGINS, N_GROUPS = 3, 3, 11, 6


@cache
def school() -> TaskDataset:
    """Return the real set: three years of examinations in Inner London."""
    file = loadmat(SCHOOL)
    X, y = ([np.asarray(block, dtype=np.float64) for block in file[name].ravel()] for name in ("X", "Y"))
    return TaskDataset.from_arrays(X, [block.ravel() for block in y])


@cache
def school_like() -> TaskDataset:
    """Return the set made here: whole numbers from uniform draws, so that each release of numpy agrees."""
    draw = np.random.default_rng(12).random
    sizes = 22 + (177 * draw(N_SCHOOLS)).astype(int)
    sizes[: abs(N_PUPILS - sizes.sum())] += np.sign(N_PUPILS - sizes.sum())
    group = (N_GROUPS * draw(N_SCHOOLS)).astype(int)
    blocks = [_school(draw, n, g) for n, g in zip(sizes, group, strict=True)]
    X = [block[:, :-1].astype(np.float64) for block in blocks]
    return TaskDataset.from_arrays(X, [block[:, -1].astype(np.float64) for block in blocks])


def _school(draw: np.random.Generator.random, n: int, group: int) -> np.ndarray:
    """One school: its pupils' features and, last, the points of their examination."""
    year = (N_YEARS * draw(n) ** (0.3 + 2 * draw())).astype(int)
    girl = (draw(n) < np.clip(2 * draw() - 0.5, 0, 1)).astype(int)
    band = (N_BANDS * draw(n)).astype(int)
    origin = (N_ORIGINS * draw(n) ** 6).astype(int)
    poor, able = (8 + 70 * draw(N_YEARS)).astype(int), (3 + 45 * draw(N_YEARS)).astype(int)
    kinds = [np.eye(3, dtype=int)[int(3 * draw())] for _ in range(2)]
    constant = np.tile(np.concatenate([*kinds, [1]]), (n, 1))
    noise = 24 * (draw((n, 4)) - 0.5).sum(axis=1)
    points = 22 + 2 * group - 8 * (band - 1) + (1 + group % 3) * girl - 0.1 * poor[year] + noise
    one_hot = [
        np.eye(N_YEARS)[year], poor[year, None], able[year, None], girl[:, None], 1 - girl[:, None],
        np.eye(N_BANDS)[band], np.eye(N_ORIGINS)[origin],
    ]  # fmt: skip
    return np.column_stack([*one_hot, constant, np.clip(np.rint(points), 1, 70)]).astype(np.uint8)


each_school = pytest.mark.parametrize("pupils", [school_like, pytest.param(school, marks=needs(SCHOOL))])
"""The test runs for the set made here, and for the real one where it lies."""
