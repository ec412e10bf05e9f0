"""What ``ccmtl fit`` does with ``--fusion-strength``: fit at one strength, or choose among several."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import typer

from app.commands.fit_data import FitData
from ccmtl_core import (
    FitResult,
    ModelChoices,
    ParameterError,
    Progress,
    Selection,
    SelectionProgress,
    fit,
    select,
)
from ccmtl_core.fitting.scoring import Rule
from ccmtl_core.fitting.selection import Folds

Show = Callable[[Progress], None]


@dataclass(frozen=True)
class Strength:
    """One strength, several (a list), or those of the default grid (None); and how one of them is chosen."""

    value: float | list[float] | None
    folds: Folds | None = None
    n_folds: int | None = None
    rule: Rule | None = None

    @classmethod
    def parsed(cls, text: str, folds: Folds | None, n_folds: int | None, rule: Rule | None) -> Strength:
        """Read "auto", a number, or numbers with commas between them; refuse options without effect."""
        if text == "auto":
            return cls(None, folds, n_folds, rule)
        try:
            numbers = list(map(float, text.split(",")))
        except ValueError:
            raise typer.BadParameter(
                f"--fusion-strength must be a number, numbers with commas between them, or auto; not {text!r}"
            ) from None
        if len(set(numbers)) < len(numbers):
            raise typer.BadParameter(f"--fusion-strength must name no number twice; not {text!r}")
        if len(numbers) > 1:
            return cls(numbers, folds, n_folds, rule)
        given = {"--folds": folds, "--n-folds": n_folds, "--rule": rule}
        if without_effect := [option for option, value in given.items() if value is not None]:
            raise typer.BadParameter(
                f"{', '.join(without_effect)} would choose among several strengths, and --fusion-strength "
                f"{text} is one: leave them out, or give several strengths, or auto"
            )
        return cls(numbers[0])

    @property
    def is_chosen(self) -> bool:
        """Whether cross-validation chooses it."""
        return not isinstance(self.value, float)

    def fit(
        self, data: FitData, show: Show, choices: ModelChoices, *, tolerance: float, solver: str
    ) -> tuple[FitResult, Selection | None]:
        """Fit the data, or its folds together, with the strength or the chosen one."""
        if isinstance(self.value, float):
            one = data.rows[0] if isinstance(data.rows, list) else data.rows
            result = fit(
                one, self.value, choices=choices, tolerance=tolerance, solver=solver, on_progress=show
            )
            return result, None
        if isinstance(data.rows, list) and len(data.rows) < 2:
            raise ParameterError("the statistics hold no folds, by which a strength is chosen; name one")

        def told(step: SelectionProgress) -> None:
            show(Progress(f"fit {step.done} of {step.total}", 0, None, None, 0.0))

        selection = select(
            data.rows,
            self.value,
            folds=self.folds or ("random" if data.series is None else "rolling"),
            time=None if self.folds == "random" else data.time,
            n_folds=self.n_folds,
            rule=self.rule or "best",
            choices=choices,
            tolerance=tolerance,
            solver=solver,
            n_jobs=-1,
            on_progress=told,
        )
        return selection.fit, selection
