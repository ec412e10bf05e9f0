"""Say in a sentence where a simple rival had a smaller error than the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, get_args

from ccmtl_core import ModelChoices
from ccmtl_core.choices.model_choices import LossScaling, Metric
from ccmtl_core.fitting.rivals import SAME_CHOICES

ACCURACY = 1e-3
"""Smaller relative differences of errors can be the solver's rounding, and are passed over."""

_IN_WORDS = {
    "pooled": "pooled (one model for all)",
    "single_task": "single-task (each alone)",
    "shrunk": "shrunk (each drawn towards the pooled model)",
    "zero": "zero (always 0)",
}
_CHOICES = {"fit_intercept": (False, True), "loss_scaling": get_args(LossScaling), "metric": get_args(Metric)}


class _Comparison(NamedTuple):
    where: str
    error: float
    rival: str
    least: float

    @property
    def is_lost(self) -> bool:
        return self.least < self.error * (1 - ACCURACY)


def rival_notes(
    choices: ModelChoices,
    metrics: Mapping[str, Any],
    selection: Mapping[str, Any] | None,
    *,
    of_series: bool,
) -> list[str]:
    """Return a sentence for each comparison that the model lost.

    Parameters
    ----------
    choices : ModelChoices
        What was fitted; the other choices can still be tried.
    metrics : mapping
        Of the held-out rows, as :func:`app.training.evaluation.evaluate` gives them; empty without.
    selection : mapping, optional
        ``errors`` of the strengths, the place ``chosen`` among them and the errors of the ``rivals``, as
        :func:`app.reports.selection_report.described` gives them, where a strength was chosen.
    of_series : bool
        Whether there are lags to change.

    Returns
    -------
    list of str
        One sentence for each lost comparison.
    """
    found = []
    if selection is not None:
        error = selection["errors"][selection["chosen"]]
        found.append(_compared("on the folds that chose the strength", error, selection["rivals"]))
    if metrics:
        errors = dict(metrics["rmse_mean_of_tasks"])
        found.append(_compared("on the held-out rows", errors.pop("ccmtl"), errors))
    won = [f"; {c.where} the model is not behind" for c in found if not c.is_lost]
    advice = _to_try(choices, is_chosen=selection is not None, of_series=of_series)
    return [
        f"{c.where.capitalize()} the rival {_in_words(c.rival)} has a smaller error than this model, "
        f"{c.least:.6g} against {c.error:.6g}{''.join(won)}: {advice}."
        for c in found
        if c.is_lost
    ]


def _compared(where: str, error: float, rivals: Mapping[str, float]) -> _Comparison:
    best = min(rivals, key=rivals.__getitem__)
    return _Comparison(where, error, best, rivals[best])


def _in_words(rival: str) -> str:
    name = rival.removesuffix(SAME_CHOICES)
    return _IN_WORDS[name] + (" with the same choices" if name != rival else "")


def _to_try(choices: ModelChoices, *, is_chosen: bool, of_series: bool) -> str:
    others = []
    for name, (usual, other) in _CHOICES.items():
        value = other if getattr(choices, name) == usual else usual
        others.append(f"{name} {str(value).lower()}")
    if not is_chosen:
        others.append('fusion_strength "auto"')
    if of_series:
        others.append("more or fewer lags")
    return f"try {', '.join(others)}, or take the rival"
