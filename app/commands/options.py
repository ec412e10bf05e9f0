"""What the options of commands mean, and which of them contradict each other; nothing is read here.

No module of the library is imported, as that takes seconds: its lists of choices are repeated here, and a
test compares them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Literal

import typer

from app.commands.file_options import Stated, option

Folds = Literal["random", "contiguous", "rolling"]
Rule = Literal["best", "one_standard_error"]
Solver = Literal["auto", "dual", "alternating", "newton"]
LossScaling = Literal["none", "spread"]
Metric = Literal["euclidean", "mahalanobis"]
Aim = Literal["products", "totals"]
DEFAULT_FOLDS = 5


class Dialect(StrEnum):
    """Databases whose SQL can be written."""

    DUCKDB = "duckdb"
    POSTGRES = "postgres"
    BIGQUERY = "bigquery"
    SNOWFLAKE = "snowflake"
    SPARK = "spark"


def _refuse_twice(columns: Sequence[str]) -> None:
    repeated = sorted(name for name, n in Counter(columns).items() if n > 1)
    if repeated:
        raise typer.BadParameter(
            f"the column {repeated[0]!r} is named twice: the id, the time, the value and each column beside "
            "them must be different ones"
        )


@dataclass(frozen=True)
class Asked:
    """What ``ccmtl forecast`` and ``backtest`` shall forecast, and what stands beside the values."""

    horizon: int
    aim: Aim
    level: list[float]
    future: list[str]
    past: list[str]
    static: list[str] = field(default_factory=list)
    total_by: list[str] | None = None
    """The attributes by which forecasts are added up; "all": over all products."""
    contributions: bool = False
    n_origins: int = 1
    quantiles: list[float] = field(default_factory=list)

    def refuse_contradictions(self, stated: Stated) -> None:
        """Refuse options that cannot stand beside each other."""
        _refuse_twice([*stated.named_columns, *self.future, *self.past, *self.static])
        ranges = {"--level": self.level, "--quantiles": self.quantiles}
        of_ranges = [name for name, given in ranges.items() if given]
        if self.contributions and (of_ranges or self.total_by is not None or self.static):
            raise typer.BadParameter(
                "--contributions: goes without --level, --quantiles, --static and --total-by"
            )
        if self.total_by is None:
            return
        refuse(of_ranges, "sums of forecasts have no ranges")
        unknown = [name for name in self.total_by if name not in self.static]
        if unknown and self.total_by != ["all"]:
            raise typer.BadParameter(f"--total-by: {unknown[0]} must be named in --static too")


@dataclass(frozen=True)
class Source:
    """The options of ``ccmtl fit`` that name what to read; None where they were not given."""

    file: Path | None
    statistics: Path | None
    task: str | None
    target: str | None
    features: str | None
    lags: int | None
    accept_gaps: bool
    stated: Stated

    def refuse_contradictions(self) -> None:
        """Refuse options that cannot stand beside each other, and say which to leave out or to add."""
        if (self.file is None) == (self.statistics is None):
            raise typer.BadParameter("give either FILE or --statistics FILE")
        columns = {"--task": self.task, "--target": self.target, "--features": self.features}
        of_samples = [name for name, value in columns.items() if value is not None]
        of_series = [*self.stated.of_series, *(["--accept-gaps"] if self.accept_gaps else [])]
        if self.statistics is not None:
            lags = [] if self.lags is None else ["--lags"]
            of_file = map(option, self.stated.written)
            refuse([*of_samples, *lags, *of_series, *of_file], "statistics name their own columns")
        elif self.lags is None:
            refuse(of_series, "these are for series, which need --lags")
            if len(of_samples) < len(columns):
                raise typer.BadParameter("FILE needs --task, --target and --features; of series, --lags")
        else:
            reason = (
                "of series, columns are --unique-id, --ds and --y, and the features are the values before"
            )
            refuse(of_samples, reason)


def refuse(given: Sequence[str], reason: str) -> None:
    """Refuse options that were given, if any."""
    if given:
        raise typer.BadParameter(f"{', '.join(dict.fromkeys(given))}: {reason}")


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
        if not all(number == 0 or 1e-100 <= number <= 1e100 for number in numbers):
            raise typer.BadParameter(f"--fusion-strength must be 0, or from 1e-100 to 1e100; not {text!r}")
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
