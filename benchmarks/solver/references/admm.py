"""Solve a fusion problem by the alternating direction method of multipliers, with cached factors.

Two splittings. :class:`BlockSplitting` is that of the network lasso (Hallac, Leskovec & Boyd, KDD 2015,
section 3): each end of each edge has a copy of its task's weights, so that a step needs P × P systems only,
one for each task. :class:`EdgeSplitting` copies the differences W_i − W_j instead and needs the factor of
one T·P × T·P matrix. Both are over-relaxed (Boyd et al., Found. Trends Mach. Learn. 3, 2011, section 3.4.3)
and factorise again where balancing the residuals changes the penalty (section 3.4.1, relative residuals).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from benchmarks.solver.references.attempt import Attempt
from benchmarks.stopwatch import Stopwatch
from ccmtl_core.base.types import FloatArray, IndexArray
from ccmtl_core.kernels.compiled import kernel
from ccmtl_core.solver.objective import FusionProblem, row_norms

RELAXATION = 1.6
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
        penalty = setting.penalty * _natural_penalty(problem)
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


def _natural_penalty(problem: FusionProblem) -> float:
    gram = problem.quadratic.gram
    curvature = np.trace(gram, axis1=1, axis2=2) / gram.shape[1]
    return float(np.median(curvature / np.maximum(problem.graph.degree, 1)))


class BlockSplitting:
    """Copies z (E, 2, P) of the weights at both ends of each edge, scaled multipliers u (E, 2, P)."""

    def __init__(self, problem: FusionProblem) -> None:
        self._problem = problem
        self.W = problem.quadratic.least_squares.weights.copy()
        self._z = np.stack([self.W[problem.head], self.W[problem.tail]], axis=1)
        self._u = np.zeros_like(self._z)
        self._penalty = 1.0

    def factorise(self, penalty: float) -> None:
        """Invert (G_t + penalty · degree_t I) for each task."""
        self._u *= self._penalty / penalty
        self._penalty = penalty
        P = self.W.shape[1]
        added = penalty * self._problem.graph.degree.astype(np.float64)
        self._inverse = np.linalg.inv(self._problem.quadratic.gram + added[:, None, None] * np.eye(P))

    def steps(self, count: int) -> float:
        """Take steps; return the relative primal over the relative dual residual."""
        p = self._problem
        for _ in range(count):
            sums = _block_step(
                p.head, p.tail, p.radius, self._penalty, self._inverse, p.quadratic.xty,
                self._z, self._u, self.W,
            )  # fmt: skip
        return _ratio(*np.sqrt(sums))


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
        self._gram = sparse.block_diag(list(problem.quadratic.gram), format="csc")

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


@kernel
def _block_step(
    head: IndexArray,
    tail: IndexArray,
    r: FloatArray,
    penalty: float,
    inverse: FloatArray,
    c: FloatArray,
    z: FloatArray,
    u: FloatArray,
    W: FloatArray,
) -> tuple[float, float, float, float]:
    """One step of W, z and u; returns the squares of both residuals, each followed by its scale's."""
    T, P = W.shape
    right = c.copy()
    for e in range(head.size):
        i, j = head[e], tail[e]
        for p in range(P):
            right[i, p] += penalty * (z[e, 0, p] - u[e, 0, p])
            right[j, p] += penalty * (z[e, 1, p] - u[e, 1, p])
    for t in range(T):
        for p in range(P):
            s = 0.0
            for q in range(P):
                s += inverse[t, p, q] * right[t, q]
            W[t, p] = s
    primal = dual = weights = copies = multipliers = 0.0
    for e in range(head.size):
        i, j = head[e], tail[e]
        square = 0.0
        for p in range(P):
            u[e, 0, p] += RELAXATION * W[i, p] + (1.0 - RELAXATION) * z[e, 0, p]
            u[e, 1, p] += RELAXATION * W[j, p] + (1.0 - RELAXATION) * z[e, 1, p]
            square += (u[e, 0, p] - u[e, 1, p]) ** 2
        # z minimises r ‖z_0 − z_1‖ + penalty/2 Σ ‖z − u‖²: both approach each other, at most to the middle
        kept = max(1.0 - r[e] / (penalty * np.sqrt(square)), 0.5) if square > 0.0 else 0.5
        for p in range(P):
            a, b = u[e, 0, p], u[e, 1, p]
            new_a, new_b = kept * a + (1.0 - kept) * b, (1.0 - kept) * a + kept * b
            dual += (new_a - z[e, 0, p]) ** 2 + (new_b - z[e, 1, p]) ** 2
            primal += (W[i, p] - new_a) ** 2 + (W[j, p] - new_b) ** 2
            weights += W[i, p] ** 2 + W[j, p] ** 2
            copies += new_a**2 + new_b**2
            z[e, 0, p], z[e, 1, p] = new_a, new_b
            u[e, 0, p], u[e, 1, p] = a - new_a, b - new_b
            multipliers += u[e, 0, p] ** 2 + u[e, 1, p] ** 2
    return primal, max(weights, copies), dual, multipliers
