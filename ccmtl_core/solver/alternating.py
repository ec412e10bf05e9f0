"""The paper's solver: alternate between weights and edge weights, with less smoothing step by step.

He et al., AAAI 2019, algorithm 1: with edge weights ℓ_e = 1 / (2 ‖W_i − W_j‖) fixed, the objective is
quadratic and its minimiser solves equation 6; then the edge weights are renewed (:func:`edge_weights`). Here
‖·‖ is smoothed to √(‖·‖² + ε²), which keeps ℓ finite, and ε falls to a share of itself whenever its objective
is near its minimum: each round can only lower the smoothed objective. The edge terms of a solved system are
feasible flows up to the rounds still missing, from which the last round at each ε makes a certificate; so
does, once, the first round after which the tolerance may be reached.
"""

from __future__ import annotations

import numpy as np

from ccmtl_core.base.types import FloatArray
from ccmtl_core.solver.certificate import Certifier
from ccmtl_core.solver.fusing import Candidate, try_to_certify
from ccmtl_core.solver.objective import FusionProblem
from ccmtl_core.solver.outcome import Outcome, Recorder, typical_length
from ccmtl_core.solver.systems.cg import MOST_ITERATIONS, flexible_cg
from ccmtl_core.solver.systems.multigrid import Multigrid

_FIRST_SMOOTHING = 1e-2  # of the typical edge length of least squares
_SHRINK = 0.3
_ROUNDS_PER_SMOOTHING = 6
_INNER_TOLERANCE = 1e-1
_SETTLED = 0.5  # of the tolerance: a slack, or a last change of J, that is worth an early certificate
_FAR = 100.0  # times the tolerance,
_OPEN = 5e-3  # and above this gap: another solver is the faster from there


def alternate(
    problem: FusionProblem,
    W: FloatArray,
    recorder: Recorder,
    certifier: Certifier,
    multigrid: Multigrid,
    *,
    max_rounds: int | None = None,
) -> Outcome:
    """Minimise by the alternation until the certified gap is within the recorder's tolerance.

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
    max_rounds : int, optional
        Return after so many rounds even if the recorder has not finished, and already after a certificate
        whose gap is far from the tolerance.

    Returns
    -------
    Outcome
        The best weights found, with their certificate.
    """
    rounds, objective, is_first_try = 0, np.inf, True
    smoothing = _FIRST_SMOOTHING * typical_length(problem)
    lengths = problem.lengths(W)
    while not (recorder.finished or rounds == max_rounds):
        for number in range(1, _ROUNDS_PER_SMOOTHING + 1):
            w = edge_weights(problem.radius, lengths, smoothing)
            multigrid.update(w)
            solved = flexible_cg(
                multigrid.apply, multigrid.precondition, problem.quadratic.xty, x0=W,
                rtol=_INNER_TOLERANCE, max_iterations=MOST_ITERATIONS,
            )  # fmt: skip
            W, iterations = solved.x, solved.iterations
            lengths = problem.lengths(W)
            before, objective = objective, problem.loss(W) + float(problem.radius @ lengths)
            slack, tolerated = _slack(problem, lengths, w), recorder.tolerance * objective
            early = is_first_try and min(slack, abs(before - objective)) <= _SETTLED * tolerated
            if early or number == _ROUNDS_PER_SMOOTHING or recorder.last_round:
                plain = Candidate(W, w[:, None] * problem.differences(W), w)
                loose = slack > tolerated and not recorder.last_round
                iterations += try_to_certify(problem, plain, smoothing, recorder, certifier, fused_only=loose)
                is_first_try = False
            recorder.consider(W, objective)
            recorder.end_round(objective, smoothing, iterations)
            rounds += 1
            if recorder.finished or rounds == max_rounds:
                break
        smoothing *= _SHRINK
        if max_rounds is not None and recorder.relative_gap > max(_FAR * recorder.tolerance, _OPEN):
            break
    return recorder.outcome()


def edge_weights(radius: FloatArray, lengths: FloatArray, smoothing: float) -> FloatArray:
    """Return w_e = 2 r_e ℓ_e, with the ℓ_e = 1 / (2 √(‖W_i − W_j‖² + ε²)) of the paper, (E,).

    With ℓ fixed the penalty of an edge is r_e ℓ_e ‖W_i − W_j‖², whose gradient is w_e (W_i − W_j): the 2 of
    the square and the 1/2 of ℓ cancel, and the system to solve has r_e / √(‖W_i − W_j‖² + ε²).

    Examples
    --------
    >>> edge_weights(np.array([6.0]), np.array([4.0]), smoothing=3.0)
    array([1.2])
    """
    w: FloatArray = radius / np.sqrt(lengths**2 + smoothing**2)
    return w


def _slack(problem: FusionProblem, lengths: FloatArray, w: FloatArray) -> float:
    """Σ r ‖d‖ − w ‖d‖²: what the flows w d cost a certificate whatever is done about residuals."""
    return float(lengths @ np.maximum(problem.radius - w * lengths, 0.0))
