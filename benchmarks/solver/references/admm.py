"""Solve a fusion problem by the alternating direction method of multipliers, with cached factors.

Two splittings. :class:`~ccmtl_core.methods.splitting.BlockSplitting` is that of the network lasso.
:class:`EdgeSplitting` copies the differences W_i − W_j instead and needs the factor of one T·P × T·P matrix.
Both are over-relaxed (Boyd et al., Found. Trends Mach. Learn. 3, 2011, section 3.4.3) and factorise again
where balancing the residuals changes the penalty (section 3.4.1, relative residuals).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from benchmarks.solver.references.attempt import Attempt
from benchmarks.stopwatch import Stopwatch
from ccmtl_core.base.types import FloatArray
from ccmtl_core.kernels.solver.splitting_kernel import RELAXATION
from ccmtl_core.methods.splitting import BlockSplitting, natural_penalty
from ccmtl_core.solver.objective import FusionProblem, row_norms

STEPS_PER_CHECK = 5
CHECKS_PER_BALANCE = 2
_UNBALANCED = 5.0  # ratio of the relative residuals from which the penalty is changed
_LARGEST_CHANGE = 10.0


class Setting(NamedTuple):
    """First penalty, as a multiple of the median of (tr G_t / P) / degree, and whether it is balanced."""

    penalty: float
    is_balanced: bool

    def __str__(self) -> str:
        return f"{self.penalty:g}{', balanced' if self.is_balanced else ', fixed'}"


SETTINGS = tuple(Setting(penalty, balanced) for penalty in (1.0, 10.0) for balanced in (True, False))


class Splitting(Protocol):
    """State of one run."""

    W: FloatArray

    def factorise(self, penalty: float) -> None:
        """Prepare the steps with a new penalty."""

    def steps(self, count: int) -> float:
        """Take steps; return the relative primal over the relative dual residual."""


SplittingKind = Callable[[FusionProblem], Splitting]


def cheapest(
    problem: FusionProblem, kind: SplittingKind, settings: Sequence[Setting], target: float, cap: float
) -> Attempt:
    """Return the setting that is the first to bring J to ``target``, given ``cap`` seconds.

    J is looked at off the clock, so that a run ends as soon as it can: no stopping rule could be cheaper.
    """
    first = BlockSplitting(problem)
    first.factorise(1.0)
    first.steps(1)  # loads the compiled loop
    best = _run(problem, kind, settings[0], target, cap)
    for setting in settings[1:]:
        attempt = _run(problem, kind, setting, target, best.seconds.cpu)
        if attempt.reached and (not best.reached or attempt.seconds < best.seconds):
            best = attempt
    return best


def _run(problem: FusionProblem, kind: SplittingKind, setting: Setting, target: float, cap: float) -> Attempt:
    watch, steps, factors = Stopwatch(), 0, 1
    with watch.running():
        penalty = setting.penalty * natural_penalty(problem)
        run = kind(problem)
        run.factorise(penalty)
    while watch.seconds.cpu < cap:
        with watch.running():
            ratio = run.steps(STEPS_PER_CHECK)
        steps += STEPS_PER_CHECK
        if problem.objective(run.W) <= target:
            break
        is_time = steps % (STEPS_PER_CHECK * CHECKS_PER_BALANCE) == 0
        if setting.is_balanced and is_time and not 1.0 / _UNBALANCED <= ratio <= _UNBALANCED:
            with watch.running():
                penalty *= float(np.clip(np.sqrt(ratio), 1.0 / _LARGEST_CHANGE, _LARGEST_CHANGE))
                run.factorise(penalty)
            factors += 1
    words = f"{setting}, {factors} factorisations"
    return Attempt(run.W, watch.seconds, steps, words, problem.objective(run.W) <= target)


class EdgeSplitting:
    """Copies z (E, P) of the differences, scaled multipliers u (E, P)."""

    def __init__(self, problem: FusionProblem) -> None:
        self._problem = problem
        self.W = problem.quadratic.least_squares.weights.copy()
        self._z = problem.differences(self.W)
        self._u = np.zeros_like(self._z)
        self._penalty = 1.0
        E, T = len(problem.head), len(self.W)
        ends = np.r_[problem.head, problem.tail]
        incidence = sparse.csr_array((np.r_[np.ones(E), -np.ones(E)], (np.r_[:E, :E], ends)), shape=(E, T))
        self._laplacian = sparse.kron(incidence.T @ incidence, np.eye(self.W.shape[1]), format="csc")
        self._gram = sparse.block_diag(list(map(sparse.csr_array, problem.quadratic.gram)), format="csc")

    def factorise(self, penalty: float) -> None:
        """Factorise blockdiag(G) + penalty · Laplacian ⊗ I, as a symmetric matrix."""
        self._u *= self._penalty / penalty
        self._penalty = penalty
        self._factor = splu(
            sparse.csc_matrix(self._gram + penalty * self._laplacian),
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )

    def steps(self, count: int) -> float:
        """Take steps; return the relative primal over the relative dual residual."""
        p = self._problem
        for _ in range(count):
            right = p.quadratic.xty + self._penalty * p.divergence(self._z - self._u)
            self.W = self._factor.solve(right.ravel()).reshape(self.W.shape)
            D, old = p.differences(self.W), self._z
            relaxed = RELAXATION * D + (1.0 - RELAXATION) * old + self._u
            length = np.maximum(row_norms(relaxed), np.finfo(float).tiny)
            kept = np.maximum(1.0 - p.radius / (self._penalty * length), 0.0)
            self._z = kept[:, None] * relaxed
            self._u = relaxed - self._z
        dual, multiplier = p.divergence(self._z - old), p.divergence(self._u)
        return _ratio(_norm(D - self._z), max(_norm(D), _norm(self._z)), _norm(dual), _norm(multiplier))


def _norm(A: FloatArray) -> float:
    return float(np.linalg.norm(A))


def _ratio(primal: float, primal_scale: float, dual: float, dual_scale: float) -> float:
    tiny = np.finfo(float).tiny
    return float(primal / max(primal_scale, tiny) / max(dual / max(dual_scale, tiny), tiny))
