"""What a report says of a model, the same in the service and in ``ccmtl fit``.

That is how its strength was chosen, and where a simple rival had a smaller error.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, get_args

from ccmtl_core import ModelChoices, Selection
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


def described(selection: Selection) -> dict[str, Any]:
    """Return what a report keeps of how the strength was chosen; errors are means over the folds."""
    return {
        "folds": selection.folds,
        "order": selection.order,
        "n_folds": len(selection.fold_errors),
        "rule": selection.rule,
        "score": "rmse_mean_of_tasks",
        "fusion_strengths": selection.fusion_strengths.tolist(),
        "errors": selection.errors.tolist(),
        "standard_errors": [e if math.isfinite(e) else None for e in selection.standard_errors.tolist()],
        "n_groups": selection.n_groups.mean(axis=0).tolist(),
        "largest_gap": float(selection.gaps.max()),
        "chosen": selection.chosen,
        "rivals": {name: float(errors.mean()) for name, errors in selection.rivals.items()},
    }


def in_words(report: dict[str, Any]) -> str:
    """Return what :func:`described` says on one line."""
    rivals = ", ".join(f"{name.replace('_', ' ')} {error:.6g}" for name, error in report["rivals"].items())
    by = f" by the order of {report['order']}" if report["order"] else ""
    return (
        f"best of {len(report['errors'])} strengths on {report['n_folds']} {report['folds']} folds{by}: mean "
        f"RMSE of the tasks {report['errors'][report['chosen']]:.6g}; {rivals}"
    )


def rival_notes(
    choices: ModelChoices,
    metrics: Mapping[str, Any],
    selection: Mapping[str, Any] | None,
    *,
    of_series: bool,
) -> list[str]:
    """Return a sentence for each comparison that the model lost to a rival.

    ``metrics`` are those of the held-out rows (see :func:`app.training.evaluation.evaluate`), empty without;
    ``selection`` is what :func:`described` says where a strength was chosen. Each sentence ends with what to
    try: other ``choices`` and, of series, other lags.
    """
    compared = []
    if selection is not None:
        error = selection["errors"][selection["chosen"]]
        compared.append(("on the folds that chose the strength", error, selection["rivals"]))
    if metrics:
        rivals = dict(metrics["rmse_mean_of_tasks"])
        compared.append(("on the held-out rows", rivals.pop("ccmtl"), rivals))
    lost, won = [], ""
    for where, error, rivals in compared:
        best = min(rivals, key=rivals.__getitem__)
        if rivals[best] < error * (1 - ACCURACY):
            lost.append(
                f"{where.capitalize()} the rival {_name(best)} has a smaller error than this model, "
                f"{rivals[best]:.6g} against {error:.6g}"
            )
        else:
            won = f"; {where} the model is not behind"
    advice = _to_try(choices, is_chosen=selection is not None, of_series=of_series)
    return [f"{sentence}{won}: {advice}." for sentence in lost]


def _name(rival: str) -> str:
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
