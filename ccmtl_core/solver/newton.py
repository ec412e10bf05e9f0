"""Start weights in, certified weights out: primal-dual Newton steps along a path of falling ε.

A round is one Newton step. It leaves a mismatch Σ r ‖s u − d‖, the distance from the path of minimisers
over ε, and a slack Σ r (‖d‖ − u·d), what it costs the gap. ε falls only near the path. The fused weights are
tried when the number of groups has stopped changing, and when the slack over the edges that ε has not fused
is below what the tolerance allows. If they cannot be certified, ε falls on until the slack over all edges is
small enough, and then the steps are solved ever more exactly until the flows balance.
"""

from __future__ import annotations

from ccmtl_core.base.types import FloatArray
from ccmtl_core.solver.certificate import Certifier
from ccmtl_core.solver.clusters import Clusters
from ccmtl_core.solver.fusing import Candidate, fuse_further, fused_groups, try_to_certify
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
    """
    state = NewtonState(problem, multigrid, W)
    smoothing = _FIRST_SMOOTHING * typical_length(problem)
    rtol, waiting, groups = _INNER_TOLERANCE, 0, _Groups()
    while not recorder.finished:
        iterations = state.step(smoothing, rtol)
        objective = problem.objective(state.W)
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
