"""What a report says of a model, the same in the service and in the commands.

That is how its strength was chosen, where a simple rival had a smaller error, and what to try then; and which
values may be mistyped.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ccmtl_core import ModelChoices, Selection
from ccmtl_core.base.display import counted, quoted
from ccmtl_core.fitting.rivals import SAME_CHOICES
from ccmtl_core.forecasting import ForecastModel

ACCURACY = 1e-3
"""Smaller relative differences of errors can be the solver's rounding, and are passed over."""

MOST_NAMED = 5
"""Series that a sentence names."""

POINTER_TO_NOTES = " `notes` says what limits the model."

_IN_WORDS = {
    "pooled": "pooled (one model for all)",
    "single_task": "single-task (each alone)",
    "shrunk": "shrunk (each drawn towards the pooled model)",
}
_HOW = {
    "pooled": "fusion_strength 1e9",
    "single_task": "fusion_strength 0",
    "shrunk": "ccmtl_core.rival_models fits it",
}
_CHOICES = {"fit_intercept": True, "loss_scaling": "spread", "metric": "mahalanobis"}
"""The value of each choice that is not the default."""


def forecaster_notes(report: Mapping[str, Any]) -> list[str]:
    """Return what limits a forecaster, a sentence each, by its own report."""
    return _lost(report) + _level_notes(report) + _unvalidated_notes(report) + lone_notes(report)


def _lost(report: Mapping[str, Any]) -> list[str]:
    """A sentence for each comparison on rolling origins that a simple rival won."""
    compared = []
    if report.get("held_out"):
        errors = dict(report["held_out"]["errors"])
        compared.append((errors.pop("ccmtl"), errors))
    if report.get("tried"):
        chosen = next(one for one in report["tried"] if one["choices"] == report["choices"])
        compared.append((report["error"], chosen["rivals"]))
    notes = []
    for error, rivals in compared:
        best = min(rivals, key=rivals.__getitem__)
        if rivals[best] < error * (1 - ACCURACY):
            name = best.replace("_", " ")
            notes.append(
                f"On rolling origins the rival {name} has a smaller error than this model, "
                f"{rivals[best]:.6g} against {error:.6g}."
            )
    return notes


def _level_notes(report: Mapping[str, Any]) -> list[str]:
    """A sentence where sums of forecasts were wrong on rolling origins, and the aim would put them right."""
    level = report.get("level") or {}
    if level.get("anchor") is None or level.get("aim") != "products":
        return []
    bias, of_rival = (level["bias"][aim] for aim in ("products", "totals"))
    wrong, rival = "low" if bias < 0 else "high", level["anchor"].replace("_", " ")
    return [
        f"On rolling origins the sum of all forecasts is {abs(bias):.0%} too {wrong}, and with the sum of "
        f"the rival {rival} it is wrong by {abs(of_rival):.0%}. Where sums matter, choose the aim `totals`."
    ]


def _unvalidated_notes(report: Mapping[str, Any]) -> list[str]:
    """A sentence about a forecaster of a history that was too short to choose anything by."""
    if report.get("tried") != []:
        return []
    return [
        "The history is too short to hold any of it out: all series share one model, no error is known, and "
        "ranges are those of a random walk."
    ]


def lone_notes(report: Mapping[str, Any], *, counts: bool = False) -> list[str]:
    """Return a sentence about the lone values of a report, if it has any.

    If ``counts``, the model learned from them as they are.
    """
    n = report.get("n_cut", 0)
    if not n:
        return []
    first = report.get("cut", ())[:MOST_NAMED]
    named = ", ".join(
        f"{quoted(one['unique_id'])} {one['ds']}: {one['y']:.15g}{_as(one, counts)}" for one in first
    )
    named += ", …" if n > len(first) and first else ""
    what = "which the model learned from as it is" if counts else "which counts as the largest of the others"
    return [
        f"{n:,} series {'has' if n == 1 else 'have'} one value far above all others, {what}"
        f"{': ' if named else ''}{named}. Is it mistyped? Then correct it in the data."
    ]


def _as(cut: Mapping[str, Any], counts: bool) -> str:
    return "" if counts else f" as {cut['counted_as']:.15g}"


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
    errors = report["rivals"]
    shown = dict(errors)  # without choices, those with the same ones are the plain ones again
    for name, error in errors.items():
        if errors.get(name + SAME_CHOICES) == error:
            del shown[name + SAME_CHOICES]
    rivals = ", ".join(f"{name.replace('_', ' ')} {error:.6g}" for name, error in shown.items())
    by = f" by the order of {report['order']}" if report["order"] else ""
    return (
        f"best of {len(report['errors'])} strengths on {report['n_folds']} {report['folds']} folds{by}: mean "
        f"RMSE of the tasks {report['errors'][report['chosen']]:.6g}; {rivals}"
    )


class _Comparison(NamedTuple):
    where: str
    error: float
    rivals: Mapping[str, float]

    @property
    def best(self) -> str:
        return min(self.rivals, key=self.rivals.__getitem__)

    @property
    def is_lost(self) -> bool:
        return _is_less(self.rivals[self.best], self.error)

    @property
    def with_choices(self) -> float | None:
        """The error of the best rival with the model's choices, if it is larger: they do harm then."""
        error = self.rivals.get(self.best + SAME_CHOICES)
        return error if error is not None and _is_less(self.rivals[self.best], error) else None

    def told(self, won: str) -> str:
        harm = ""
        if self.with_choices is not None:
            blamed = "" if _is_less(self.with_choices, self.error) else ", not the fusing"
            harm = f" (with this model's choices it has {self.with_choices:.6g}: they do the harm{blamed})"
        return (
            f"{self.where.capitalize()} the rival {_in_words(self.best)} has a smaller error than this "
            f"model, {self.rivals[self.best]:.6g} against {self.error:.6g}{harm}{won}."
        )


def rival_notes(
    choices: ModelChoices, metrics: Mapping[str, Any], selection: Mapping[str, Any] | None, *, of_series: bool
) -> list[str]:
    """Return a sentence for each comparison that the model lost, and one on what to try.

    ``metrics`` are those of the held-out rows (see :func:`app.training.evaluation.evaluate`), empty without;
    ``selection`` is what :func:`described` says where a strength was chosen.
    """
    found, zero = [], None
    if selection is not None:
        error = selection["errors"][selection["chosen"]]
        found.append(_Comparison("on the folds that chose the strength", error, selection["rivals"]))
    if metrics:
        errors = dict(metrics["rmse_mean_of_tasks"])
        error, zero = errors.pop("ccmtl"), errors.pop("zero")
        found.append(_Comparison("on the held-out rows", error, errors))
    won = "".join(f"; {c.where} the model is not behind" for c in found if not c.is_lost)
    lost = [c for c in found if c.is_lost]
    notes = [comparison.told(won) for comparison in lost]
    if zero is not None and _is_less(zero, error):
        notes.append(
            "On the held-out rows this model is worse than always forecasting 0: "
            f"{error:.6g} against {zero:.6g}."
        )
    if notes:
        of_strength = [] if selection is not None else ['fusion_strength "auto"']
        notes.append(_to_try(choices, lost, of_strength + (["more or fewer lags"] if of_series else [])))
    return notes


def _is_less(error: float, other: float) -> bool:
    return error < other * (1 - ACCURACY)


def _in_words(rival: str) -> str:
    name = rival.removesuffix(SAME_CHOICES)
    return _IN_WORDS[name] + (" with the same choices" if name != rival else "")


def _to_try(choices: ModelChoices, lost: Sequence[_Comparison], others: Sequence[str]) -> str:
    """Advise to leave choices out where they did harm, and else to make those that were not made."""
    made = [name for name, other in _CHOICES.items() if getattr(choices, name) == other]
    if any(comparison.with_choices is not None for comparison in lost):
        steps = [f"no {' and no '.join(made)}", *others]
    else:
        steps = [f"{k} {str(v).lower()}" for k, v in _CHOICES.items() if k not in made] + [*others]
    if lost:
        rival = lost[-1].best
        name = rival.removesuffix(SAME_CHOICES)
        plainly = "" if name != rival or not made else "without the choices, "
        steps.append(f"the rival itself ({plainly}{_HOW[name]})")
    return f"What to try: {', or '.join(steps)}."


def ended_notes(forecaster: ForecastModel, ended: Sequence[str]) -> list[str]:
    """Return a sentence about the series that ended, as ``forecaster.ended`` lists them, if there are any."""
    if not ended:
        return []
    newest = forecaster.frequency.text(int(forecaster.last_period.max()))
    features = forecaster.features
    columns = ", ".join(map(quoted, dict.fromkeys((*features.future, *features.past))))
    named = ", ".join(map(quoted, ended[:MOST_NAMED])) + (", …" if len(ended) > MOST_NAMED else "")
    return [
        f"{len(ended):,} of {len(forecaster.unique_ids):,} series have no forecast, as they have ended: "
        f"{named}. All {counted(forecaster.horizon, 'period')} after their last values are over by {newest}, "
        f"and no row says {columns} of these. Add such rows to forecast one."
    ]
