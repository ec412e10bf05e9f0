"""Which methods are compared, by the names of the paper, and the parameters that each is searched over.

The paper searches from 1e-5 to 1e5. One strength is searched in half powers of ten; of two strengths every
second power, as all pairs would be hundreds of fits per fold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from ccmtl_core.fitting.rivals import SHRINKAGES
from ccmtl_core.methods import (
    ADMM,
    CCMTL,
    CMTL,
    ITL,
    L21,
    RMTL,
    SRMTL,
    STL,
    BiFactor,
    FuseMTL,
    Shrunk,
    TaskRegressor,
    Trace,
    TriFactor,
)  # fmt: skip

POWERS = tuple(10.0 ** (half / 2) for half in range(10, -11, -1))
"""Falling, so that a method that starts from the solution before starts from zero or one model."""
_PENALTY = ("strength",)
_FUSION = ("fusion_strength",)
_FACTORS = ("feature_strength", "task_strength")
_TOL, _STEPS = 1e-4, 500


@dataclass(frozen=True)
class Rival:
    """A method, the parameters to search, their values, and whether a fit starts from the one before."""

    model: TaskRegressor
    parameters: tuple[str, ...]
    values: tuple[float, ...] = POWERS
    starts_warm: bool = False

    def grid(self, *, quick: bool) -> Sequence[Mapping[str, float]]:
        """Parameters to try: two values in each decade, of two parameters, or to be quick, fewer."""
        step = (4 if len(self.parameters) == 2 else 1) * (2 if quick else 1)
        chosen = product(self.values[::step], repeat=len(self.parameters))
        return [dict(zip(self.parameters, values, strict=True)) for values in chosen]


RIVALS: dict[str, Rival] = {
    "STL": Rival(STL(), ("ridge",)),
    "ITL": Rival(ITL(), ("ridge",)),
    "shrunk": Rival(Shrunk(), ("shrinkage",), SHRINKAGES),
    "L21": Rival(L21(tol=_TOL, max_iter=_STEPS), _PENALTY, starts_warm=True),
    "Trace": Rival(Trace(tol=_TOL, max_iter=_STEPS), _PENALTY, starts_warm=True),
    "RMTL": Rival(RMTL(tol=_TOL, max_iter=_STEPS), ("rank_strength", "outlier_strength")),
    "CMTL": Rival(CMTL(tol=_TOL, max_iter=_STEPS), ("cluster_strength", "ridge"), starts_warm=True),
    "FuseMTL": Rival(FuseMTL(tol=_TOL, max_iter=_STEPS), _FUSION, starts_warm=True),
    "SRMTL": Rival(SRMTL(tol=1e-5, max_iter=200), _FUSION),
    "BiFactor": Rival(BiFactor(tol=1e-4, max_iter=100), _FACTORS),
    "TriFactor": Rival(TriFactor(tol=1e-4, max_iter=100), _FACTORS),
    "CCMTL": Rival(CCMTL(tol=1e-4), _FUSION),
    "CCMTL+": Rival(
        CCMTL(fit_intercept=True, loss_scaling="spread", metric="mahalanobis", tol=1e-4), _FUSION
    ),
}
"""CCMTL+ has all the choices beyond the paper: intercepts, scaled losses, the metric of the tasks."""

SAME_OBJECTIVE: dict[str, Rival] = {
    "CCMTL": Rival(CCMTL(tol=1e-7), _FUSION),
    "ADMM": Rival(ADMM(tol=1e-7, max_iter=100_000), _FUSION),
}
"""Two solvers of one objective."""
