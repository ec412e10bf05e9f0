"""Minimise by primal-dual Newton steps: along a path of falling ε, or from one strength to the next.

A round is one Newton step. It leaves a mismatch Σ r ‖s u − d‖, the distance from the path of minimisers
over ε, and a slack Σ r (‖d‖ − u·d), what it costs the gap. ε falls only near the path. The fused weights are
tried when the number of groups has stopped changing, and when the slack over the edges that ε has not fused
is below what the tolerance allows. If they cannot be certified, ε falls on until the slack over all edges is
small enough, and then the steps are solved ever more exactly until the flows balance.

Weights and flows change little from one strength to the next, and so does the ε that the tolerance allows. So
a path of strengths goes on with those of the strength before: two to five steps are mostly enough.
"""

from __future__ import annotations

import numpy as np

from ccmtl_core.base.types import FloatArray
from ccmtl_core.solver.certificate import Certifier
from ccmtl_core.solver.clusters import Clusters
from ccmtl_core.solver.fusing import RUNG, Candidate, fuse, fuse_further, fused_groups, try_to_certify
from ccmtl_core.solver.newton_step import NewtonState
from ccmtl_core.solver.objective import FusionProblem
from ccmtl_core.solver.outcome import Outcome, Recorder, typical_length
from ccmtl_core.solver.report import SolveStatus
from ccmtl_core.solver.systems.multigrid import Multigrid

_FIRST_SMOOTHING = 0.1  # of the typical edge length of least squares
_SHRINK = 0.2  # of ε, from round to round
_NEAR_PATH = 0.3  # mismatch over slack
_SLACK_SHARE = 0.7  # of the tolerated gap: a slack below it needs no smaller ε
_BALANCED = 0.02  # mismatch over that share, from which a certificate is worth computing
_PATIENCE = 4  # rounds to wait for it: rounding can keep the mismatch up where the flows are good enough
_INNER_TOLERANCE = 0.1
_TIGHTEST_INNER_TOLERANCE = 1e-3
_MOST_ROUNDS = 16  # for one strength of a path, after which the other solvers take over, for good
_AIM = 0.6  # of the allowed slack, which the next ε of a path is to reach
_LEAST_SHRINK, _MOST_SHRINK = 0.7, 0.1  # of that ε, from round to round
_GAINED, _TIGHTER = 0.8, 0.5  # share of the mismatch that may be left, and of the inner tolerance if more is
_FEW_GROUPS = 4  # tasks to a group, from where the problem of the groups is cheap


def newton(
    problem: FusionProblem, W: FloatArray, recorder: Recorder, certifier: Certifier, multigrid: Multigrid
) -> Outcome:
    """Minimise by primal-dual Newton steps until the certified gap is within the recorder's tolerance.

    Parameters
    ----------
    problem : FusionProblem
        What to minimise; λ > 0 and at least one edge.
    W : (T, P) float64
        Start weights; not changed.
    recorder : Recorder
        Keeps the best certificate and decides when to stop.
    certifier : Certifier
        Of the same problem.
    multigrid : Multigrid
        On the same graph and Gram blocks; its edge weights are overwritten.

    Returns
    -------
    Outcome
        The best weights found, with their certificate.
    """
    state = NewtonState(problem, multigrid, W)
    smoothing = _FIRST_SMOOTHING * typical_length(problem)
    rtol, waiting, groups = _INNER_TOLERANCE, 0, _Groups()
    while not recorder.finished:
        iterations = state.step(smoothing, rtol)
        objective = state.objective()
        recorder.consider(state.W, objective)
        allowed = _SLACK_SHARE * recorder.tolerance * objective
        on_path = state.mismatch <= _NEAR_PATH * state.slack
        balanced = state.mismatch <= _BALANCED * allowed or waiting >= _PATIENCE
        settled = on_path and groups.settled(fused_groups(problem, state.W, smoothing))
        tried = recorder.last_round or settled or (balanced and state.open_slack <= allowed)
        if tried:
            plain = Candidate(state.W, state.flows(), state.w)
            iterations += try_to_certify(
                problem, plain, smoothing, recorder, certifier, fused_only=state.slack > allowed
            )
            if recorder.status is SolveStatus.CONVERGED:
                fuse_further(problem, plain, smoothing, recorder)
        recorder.end_round(objective, smoothing, iterations)
        waiting = 0 if tried or state.open_slack > allowed else waiting + 1
        if state.slack > allowed and (tried or (on_path and not waiting)):
            smoothing, rtol = _SHRINK * smoothing, _INNER_TOLERANCE
        elif tried or waiting:
            rtol = max(0.5 * rtol, _TIGHTEST_INNER_TOLERANCE)
    return recorder.outcome()


class _Groups:
    """Says when the number of fused groups has stopped changing, ever more rarely if that was too early."""

    def __init__(self) -> None:
        self._last, self._pause, self._skip = -1, 0, 0

    def settled(self, clusters: Clusters) -> bool:
        """Whether to try the groups of this ε."""
        same, self._last = clusters.n_clusters == self._last, clusters.n_clusters
        if not same or self._skip:
            self._skip = max(self._skip - 1, 0)
            return False
        self._skip = self._pause
        self._pause += 1
        return True


class Follower:
    """Newton steps that go on, from strength to strength, where they ended.

    Parameters
    ----------
    multigrid : Multigrid
        On the graph and the Gram blocks of all problems to come; its edge weights are overwritten.
    """

    def __init__(self, multigrid: Multigrid) -> None:
        self._multigrid = multigrid
        self._state: NewtonState | None = None
        self._smoothing = 0.0
        self.gave_up = False

    def solve(self, problem: FusionProblem, W: FloatArray, recorder: Recorder, certifier: Certifier) -> None:
        """Step until the certified gap is within the recorder's tolerance, or it is seen to take too long.

        Parameters
        ----------
        problem : FusionProblem
            What to minimise; λ > 0 and at least one edge.
        W : (T, P) float64
            Where the first solve starts; the later ones start where the one before ended.
        recorder : Recorder
            Keeps the best certificate and decides when to stop.
        certifier : Certifier
            Of the same problem.
        """
        state = self._at(problem, W)
        rtol, groups, before = _INNER_TOLERANCE, -1, np.inf
        for _ in range(_MOST_ROUNDS):
            iterations = state.step(self._smoothing, rtol)
            objective = state.objective()
            recorder.consider(state.W, objective)
            allowed = _SLACK_SHARE * recorder.tolerance * objective
            if recorder.last_round or max(state.slack, state.mismatch) <= allowed:
                iterations += self._certify(state, recorder, certifier)
                before = 0.0
            elif state.open_slack <= allowed and state.mismatch <= state.slack:
                groups, spent = self._certify_fused(state, groups, recorder, certifier)
                iterations += spent
            recorder.end_round(objective, self._smoothing, iterations)
            if recorder.finished:
                return
            if state.mismatch > _GAINED * before:  # solved too loosely
                rtol = max(_TIGHTER * rtol, _TIGHTEST_INNER_TOLERANCE)
            before = state.mismatch
            if state.slack > allowed and state.mismatch <= state.slack:
                share = _AIM * allowed / state.slack
                self._smoothing *= min(max(share, _MOST_SHRINK), _LEAST_SHRINK)
                before = np.inf
        self.gave_up, self._state = True, None

    def _at(self, problem: FusionProblem, W: FloatArray) -> NewtonState:
        """The state where the solve before ended, as one of this problem."""
        if self._state is None:
            self._state = NewtonState(problem, self._multigrid, W)
            self._state.overshoot = 1.0  # near a solution, whole steps that rise go round in circles
            self._smoothing = _FIRST_SMOOTHING * typical_length(problem)
        self._state.problem = problem
        return self._state

    def _certify(self, state: NewtonState, recorder: Recorder, certifier: Certifier) -> int:
        """Certify the weights, and prefer fused ones that are as good; returns the CG iterations spent."""
        W, flows = state.W, state.flows()
        certificate = certifier.certify(W, flows, recorder.tolerance, state.w)
        recorder.consider(W, certificate.objective, certificate)
        if recorder.status is SolveStatus.CONVERGED:
            clusters = fused_groups(state.problem, W, self._smoothing)
            if _FEW_GROUPS * clusters.n_clusters <= len(W):
                plain = Candidate(W, flows, state.w)
                fuse_further(state.problem, plain, self._smoothing / RUNG, recorder)
            else:
                fused = clusters.mean(W)[clusters.label]
                recorder.prefer(fused, state.problem.objective(fused))
        return certificate.cg_iterations

    def _certify_fused(
        self, state: NewtonState, before: int, recorder: Recorder, certifier: Certifier
    ) -> tuple[int, int]:
        """If few groups remain, solve for one model each; return the numbers of groups and CG iterations."""
        problem = state.problem
        clusters = fused_groups(problem, state.W, self._smoothing)
        if _FEW_GROUPS * clusters.n_clusters > len(state.W) or clusters.n_clusters == before:
            return clusters.n_clusters, 0
        plain = Candidate(state.W, state.flows(), state.w)
        W, flows, w = fuse(problem, plain, clusters, self._smoothing, recorder.tolerance)
        certificate = certifier.certify(W, flows, recorder.tolerance, w)
        recorder.consider(W, certificate.objective, certificate)
        return clusters.n_clusters, certificate.cg_iterations
