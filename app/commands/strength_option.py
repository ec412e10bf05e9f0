"""What ``ccmtl fit`` does with ``--fusion-strength``: fit at one strength, or choose among several."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import typer

from ccmtl_core import (
    FitResult,
    ParameterError,
    Progress,
    Selection,
    SelectionProgress,
    SufficientStatistics,
    TaskDataset,
    fit,
    select,
)

Show = Callable[[Progress], None]


@dataclass(frozen=True)
class Strength:
    """One strength, several (a list), or those of the default grid (None); and how one of them is chosen."""

    value: float | tuple[float, ...] | None
    folds: str
    n_folds: int
    rule: str

    @classmethod
    def parsed(cls, text: str, folds: str, n_folds: int, rule: str) -> Strength:
        """Read "auto", a number, or numbers with commas between them.

        Raises
        ------
        typer.BadParameter
            It is none of these.
        """
        if text == "auto":
            return cls(None, folds, n_folds, rule)
        try:
            numbers = tuple(map(float, text.split(",")))
        except ValueError:
            raise typer.BadParameter(
                f"--fusion-strength must be a number, numbers with commas between them, or auto; not {text!r}"
            ) from None
        return cls(numbers[0] if len(numbers) == 1 else numbers, folds, n_folds, rule)

    @property
    def is_chosen(self) -> bool:
        """Whether cross-validation chooses it."""
        return not isinstance(self.value, float)

    def fit(
        self, data: TaskDataset | Sequence[SufficientStatistics], show: Show, **options: Any
    ) -> tuple[FitResult, Selection | None]:
        """Fit the data, or its folds together, with the strength or the chosen one.

        Raises
        ------
        ParameterError
            Statistics that hold no folds, and a strength is to be chosen.
        """
        if isinstance(self.value, float):
            one = data if isinstance(data, TaskDataset) else data[0]
            return fit(one, fusion_strength=self.value, on_progress=show, **options), None
        if not isinstance(data, TaskDataset) and len(data) < 2:
            raise ParameterError("the statistics hold no folds, by which a strength is chosen; name one")

        def told(step: SelectionProgress) -> None:
            show(Progress(f"fit {step.done} of {step.total}", 0, None, None, 0.0))

        selection = select(
            data,
            self.value,
            folds=self.folds,
            n_folds=self.n_folds,
            rule=self.rule,
            n_jobs=-1,
            on_progress=told,
            **options,
        )
        return selection.fit, selection


def described(selection: Selection) -> dict[str, Any]:
    """What the report says of a choice; errors are means over the folds."""
    table = zip(selection.fusion_strengths, selection.errors, selection.standard_errors, strict=True)
    return {
        "n_folds": len(selection.fold_errors),
        "path": [
            {"fusion_strength": float(strength), "error": float(error), "standard_error": _finite(deviation)}
            for strength, error, deviation in table
        ],
        "error": float(selection.errors[selection.chosen]),
        "rivals": {name: float(errors.mean()) for name, errors in selection.rivals.items()},
    }


def in_words(choice: dict[str, Any]) -> str:
    """The same on one line."""
    rivals = ", ".join(f"{name.replace('_', ' ')} {error:.6g}" for name, error in choice["rivals"].items())
    return (
        f"best of {len(choice['path'])} strengths on {choice['n_folds']} folds: mean RMSE of the tasks "
        f"{choice['error']:.6g}; {rivals}"
    )


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
