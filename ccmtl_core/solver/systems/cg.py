"""Solve a symmetric positive semidefinite system by conjugate gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ccmtl_core.base.types import FloatArray

Operator = Callable[[FloatArray], FloatArray]

MOST_ITERATIONS = 60
"""For one system of a round, which the next round changes anyway."""


class CGResult(NamedTuple):
    """Solution (T, P), iterations spent, last residual (T, P), and whether the tolerance was met."""

    x: FloatArray
    iterations: int
    residual: FloatArray
    converged: bool


def flexible_cg(
    apply: Operator,
    precondition: Operator,
    b: FloatArray,
    *,
    x0: FloatArray | None = None,
    rtol: float,
    atol: float = 0.0,
    max_iterations: int = 100,
) -> CGResult:
    """Solve A x = b by conjugate gradients whose preconditioner may change from step to step.

    The direction update is Polak-Ribière's, which forgives a preconditioner that is not linear
    (Notay, SIAM J. Sci. Comput. 22, 2000). Stops when √(rᵀM⁻¹r) has fallen to ``rtol`` of its first value
    or to ``atol``; for a good preconditioner that is the energy norm of the error.

    Examples
    --------
    >>> A = np.array([[4.0, 1.0], [1.0, 3.0]])
    >>> flexible_cg(lambda x: A @ x, lambda r: r, np.array([1.0, 2.0]), rtol=1e-12).x
    array([0.09090909, 0.63636364])
    """
    x = np.zeros_like(b) if x0 is None else x0.copy()
    r = b.copy() if x0 is None else b - apply(x)
    z = precondition(r)
    rz = float(np.vdot(r, z))
    goal = max(rtol * np.sqrt(max(rz, 0.0)), atol)
    p = z.copy()
    for iteration in range(max_iterations):
        if not rz > goal**2:
            return CGResult(x, iteration, r, True)
        q = apply(p)
        curvature = float(np.vdot(p, q))
        if not curvature > 0.0:  # the direction is empty: nothing more can be gained
            return CGResult(x, iteration, r, False)
        step = rz / curvature
        x += step * p
        r_old = r
        r = r - step * q
        z = precondition(r)
        rz_old, rz = rz, float(np.vdot(r, z))
        p *= (rz - float(np.vdot(r_old, z))) / rz_old
        p += z
    return CGResult(x, max_iterations, r, rz <= goal**2)
