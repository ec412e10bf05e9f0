"""What a product of given attributes can be expected to sell in a period."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from ccmtl_core.base.types import BoolArray, FloatArray, IntArray
from ccmtl_core.forecasting.new.histories import Histories, means

LEAST_LIKE = 3
"""Products that must share attributes for another to be forecast from them."""
ROUNDS = 20
"""In which the effects of attributes on the level settle."""


class Levels(NamedTuple):
    """What attributes tell of the levels of S products.

    Each attribute multiplies the level by a factor: logarithms of levels are parted into effects by medians
    of what the other effects leave. Where fewer than half of the products have a positive level, the median.

    Parameters
    ----------
    level : (L,) float64
        Those that it is told from.
    base : float
        The median; of logarithms where there are effects.
    effects : (A, S) float64
        Of the attributes of each product, on the logarithm; 0 where not known.
    positive : (S,) bool
        The products that have these levels; none where there are no effects.
    """

    level: FloatArray
    base: float
    effects: FloatArray
    positive: BoolArray

    @classmethod
    def of(cls, known: Histories, codes: IntArray) -> Levels:
        """Part the levels of like products by the attributes' codes (A, S)."""
        level = means(known.tail)
        positive, effects = known.like & (level > 0.0), np.zeros(codes.shape)
        if 2 * positive.sum() < known.like.sum():
            own = level[known.like]
            return cls(own, float(np.median(own)), effects, np.zeros(len(level), dtype=np.bool_))
        logs = np.log(level[positive])
        base = float(np.median(logs))
        for _ in range(ROUNDS if len(codes) > 1 else 1):
            for own, effect in zip(codes, effects, strict=True):
                left = logs - base - (effects.sum(axis=0) - effect)[positive]
                told = pl.DataFrame({"code": own[positive], "left": left}).filter(pl.col("code") >= 0)
                found = told.group_by("code").agg(pl.col("left").median(), pl.len())
                some = found.filter(pl.col("len") >= LEAST_LIKE)
                of_code = np.zeros(max(int(own.max(initial=0)), 0) + 1)
                of_code[some["code"].to_numpy()] = some["left"].to_numpy()
                effect[:] = np.where(own >= 0, of_code[own], 0.0)
        return cls(level[positive], base, effects, positive)

    def expected(self, who: IntArray, pattern: BoolArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Return the level that the attributes of products let expect, (k,), and its mean error, (k,).

        With ``pattern``, (A,) bool, these attributes alone.
        """
        if not self.positive.any():
            error = np.abs(self.level - self.base).mean()
            return np.full(len(who), self.base), np.full(len(who), error)
        shown = self.effects[:, who]
        if pattern is not None:
            shown = np.where(pattern[:, None], shown, 0.0)
        expected: FloatArray = np.minimum(np.exp(self.base + shown.sum(axis=0)), self.level.max())
        error = np.empty(len(who))
        patterns, place = np.unique(shown != 0.0, axis=1, return_inverse=True)
        for p, with_effect in enumerate(patterns.T):
            # How wrong levels are that are expected from these attributes alone:
            of_these = np.exp(self.base + self.effects[with_effect][:, self.positive].sum(axis=0))
            same = place.reshape(-1) == p
            error[same] = np.abs(self.level - of_these).sum() / of_these.sum() * expected[same]
        return expected, error
