"""A model's errors beside those of its simple rivals go in; a sentence where a rival did better comes out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.training.schemas import TrainingJobRequest

ACCURACY = 1e-3
"""Smaller relative differences of errors can be the solver's rounding, and are passed over."""

_IN_WORDS = {
    "pooled": "pooled (one model for all)",
    "single_task": "single-task (each alone)",
    "shrunk": "shrunk (each drawn towards the pooled model)",
    "zero": "zero (always 0)",
}
_CHOICES = {"fit_intercept": True, "loss_scaling": "spread", "metric": "mahalanobis"}


def rival_notes(
    request: TrainingJobRequest,
    metrics: Mapping[str, Any],
    selection: Mapping[str, Any] | None,
    *,
    of_series: bool,
) -> list[str]:
    """Return a sentence for each comparison that the model lost.

    Parameters
    ----------
    request : TrainingJobRequest
        What was asked for: what it left at its default can still be tried.
    metrics : mapping
        Of the held-out rows, as :func:`app.training.evaluation.evaluate` gives them; empty without.
    selection : mapping, optional
        As :func:`app.training.strength_choice.described` gives it, where a strength was chosen.
    of_series : bool
        Whether there are lags to change.
    """
    advice = _to_try(request, of_series=of_series)
    notes = []
    if selection is not None:
        error = selection["errors"][selection["chosen"]]
        notes.append(_note("On the folds that chose the strength", error, selection["rivals"], advice))
    if metrics:
        errors = dict(metrics["rmse_mean_of_tasks"])
        notes.append(_note("On the held-out rows", errors.pop("ccmtl"), errors, advice))
    return [note for note in notes if note is not None]


def _note(where: str, error: float, rivals: Mapping[str, float], advice: str) -> str | None:
    best = min(rivals, key=rivals.__getitem__)
    if not rivals[best] < error * (1 - ACCURACY):
        return None
    return (
        f"{where} the plain rival {_IN_WORDS[best]} has a smaller error than this model, "
        f"{rivals[best]:.6g} against {error:.6g}: {advice}."
    )


def _to_try(request: TrainingJobRequest, *, of_series: bool) -> str:
    open_ = [
        f"{name} {str(value).lower()}" for name, value in _CHOICES.items() if getattr(request, name) != value
    ]
    if isinstance(request.fusion_strength, float):
        open_.append('fusion_strength "auto"')
    if of_series:
        open_.append("more or fewer lags")
    return f"try {', '.join(open_)}, or take the rival" if open_ else "consider to take the rival"
