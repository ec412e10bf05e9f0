"""Fuse tasks exactly once they are nearly fused, and certify the result.

Tasks whose edge is shorter than a few ε are fused: they become one task of the merged problem, in which no
edge is short any more, so that a few Newton steps with ε falling quickly reach its optimum to all digits.
The flows of the edges between groups follow from there; those inside keep what the path gave them, and
the certificate repairs what is missing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ccmtl_core.base.types import FloatArray
from ccmtl_core.solver.certificate import Certifier
from ccmtl_core.solver.clusters import Clusters, MergedProblem
from ccmtl_core.solver.newton_step import FUSED, NewtonState
from ccmtl_core.solver.objective import FusionProblem
from ccmtl_core.solver.outcome import TIGHT, Recorder
from ccmtl_core.solver.systems.pooled_spectrum import PooledSpectrum

_STEPS = 3  # at most, where the tolerance is not tight: groups that are still wrong are not worth more
_TIGHT_STEPS = 6
_LADDER, RUNG = 4, 10.0  # how often, and by how much, longer edges are tried at the end
_LOOSE = 1e-5  # from this tolerance on, most groups are tried too early to be worth an exact solution
_ENOUGH, _LOOSELY_ENOUGH = 0.005, 0.05  # of the tolerated gap: slack and mismatch of the merged problem
_SHRINK = 0.1  # of ε, from step to step
_INNER_TOLERANCE, _LOOSE_INNER_TOLERANCE = 1e-4, 1e-2


class Candidate(NamedTuple):
    """Weights (T, P), flows (E, P), and the edge weights (E,) by which a certificate spreads residuals."""

    weights: FloatArray
    flows: FloatArray
    edge_weights: FloatArray


def fused_groups(problem: FusionProblem, W: FloatArray, smoothing: float) -> Clusters:
    """The groups of tasks that are joined by edges shorter than a few ε."""
    return Clusters.along(problem.graph, problem.lengths(W) <= FUSED * smoothing)


def fuse(
    problem: FusionProblem, plain: Candidate, clusters: Clusters, smoothing: float, tolerance: float
) -> Candidate:
    """Fuse the tasks of each group, and solve the problem of the groups, with ε falling quickly."""
    loose = tolerance >= _LOOSE
    enough = (_LOOSELY_ENOUGH if loose else _ENOUGH) * tolerance * problem.objective(plain.weights)
    steps = _STEPS if tolerance >= TIGHT else _TIGHT_STEPS
    merged = MergedProblem(problem, clusters)
    flows, w = plain.flows.copy(), problem.radius / smoothing
    if len(merged.problem.head) == 0:
        return Candidate(_alone(merged.problem, clusters.mean(plain.weights))[clusters.label], flows, w)
    state = NewtonState.start(merged.problem, clusters.mean(plain.weights))
    for _ in range(steps):
        state.step(smoothing, _LOOSE_INNER_TOLERANCE if loose else _INNER_TOLERANCE)
        if state.slack + state.mismatch <= enough:
            break
        smoothing *= _SHRINK
    between = merged.edge >= 0
    edge = merged.edge[between]
    flows[between] = (problem.radius * merged.sign)[between, None] * state.u[edge]
    w[between] = problem.radius[between] * (state.w / merged.problem.radius)[edge]
    return Candidate(state.W[clusters.label], flows, w)


def _alone(problem: FusionProblem, W: FloatArray) -> FloatArray:
    """Least squares of each task, which stays at W along the directions in which it has no data."""
    n_tasks = problem.quadratic.n_tasks
    step = problem.quadratic.least_squares.weights - W
    PooledSpectrum.of(problem.quadratic.gram, np.arange(n_tasks), n_tasks).remove_null(step)
    return W + step


def fuse_further(problem: FusionProblem, plain: Candidate, smoothing: float, recorder: Recorder) -> None:
    """Fuse longer edges too, as long as J does not rise: some that are zero at the optimum shrink slowly."""
    for _ in range(_LADDER):
        smoothing *= RUNG
        clusters = fused_groups(problem, plain.weights, smoothing)
        fused = fuse(problem, plain, clusters, smoothing, recorder.tolerance).weights
        if not recorder.prefer(fused, problem.objective(fused)):
            return


def try_to_certify(
    problem: FusionProblem,
    plain: Candidate,
    smoothing: float,
    recorder: Recorder,
    certifier: Certifier,
    *,
    fused_only: bool = False,
) -> int:
    """Certify the fused weights and, failing that, the plain ones; returns the CG iterations spent."""
    iterations = 0
    clusters = fused_groups(problem, plain.weights, smoothing)
    fused = fuse(problem, plain, clusters, smoothing, recorder.tolerance)
    for candidate in (fused, plain)[: 1 if fused_only else 2]:
        W, flows, w = candidate
        certificate = certifier.certify(W, flows, recorder.tolerance, w)
        recorder.consider(W, certificate.objective, certificate)
        iterations += certificate.cg_iterations
        if recorder.finished:
            break
    return iterations
