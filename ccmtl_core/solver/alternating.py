"""The paper's solver: alternate between weights W and edge weights w, with less smoothing step by step.

He et al., AAAI 2019, algorithm 1: with the edge weights fixed, the objective is quadratic and its minimiser
solves equation 6; then :func:`edge_weights` computes new edge weights from W. ‖·‖ is smoothed to
√(‖·‖² + ε²), so that w stays finite. A round can only lower the smoothed objective, and ε shrinks after a
fixed number of rounds. The last round at each ε is certified, with the flows w_e (W_i − W_j); so is, once,
the first round whose gap may be within the tolerance.
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
_SHRINK = 0.3  # of ε, from one to the next
_ROUNDS_PER_SMOOTHING = 6
_INNER_TOLERANCE = 1e-1
_SETTLED = 0.5  # of the tolerance: a slack, or a change of J in a round, that is worth an early certificate
# Where the certified gap exceeds both of these, another solver is faster.
_FAR = 100.0  # times the tolerance
_OPEN = 5e-3  # relative gap


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
        Return after this many rounds even if the recorder has not finished, or earlier, when ε shrinks,
        if the certified gap is still far from the tolerance.

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
    """Return the edge weights w_e = r_e / √(‖W_i − W_j‖² + ε²), (E,), from the ``lengths`` ‖W_i − W_j‖.

    The paper's auxiliary variable is ℓ_e = 1 / (2 √(‖W_i − W_j‖² + ε²)). With ℓ fixed the penalty of an edge
    is r_e ℓ_e ‖W_i − W_j‖², whose gradient is w_e (W_i − W_j) with w_e = 2 r_e ℓ_e.

    Examples
    --------
    >>> edge_weights(np.array([6.0]), np.array([4.0]), smoothing=3.0)
    array([1.2])
    """
    w: FloatArray = radius / np.sqrt(lengths**2 + smoothing**2)
    return w


def _slack(problem: FusionProblem, lengths: FloatArray, w: FloatArray) -> float:
    """Σ (r ‖d‖ − w ‖d‖²): the gap of a certificate with the flows w d, without the cost of residuals."""
    return float(lengths @ np.maximum(problem.radius - w * lengths, 0.0))
