"""What the options of ``ccmtl fit`` mean, and which of them contradict each other; nothing is read here.

No module of the library is imported, as that takes seconds: its lists of choices are repeated here, and a
test compares them.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

import typer

Fill = Literal["none", "zero", "forward"]
Every = Literal[
    "h", "D", "W", "MS", "B", "D-MON", "D-TUE", "D-WED", "D-THU", "D-FRI", "D-SAT", "D-SUN",
    "W-MON", "W-TUE", "W-WED", "W-THU", "W-FRI", "W-SAT", "W-SUN", "ME", "QS", "QE", "YS", "YE", "1",
]  # fmt: skip
EVERY_HELP = (
    "h, D, W (from Monday), MS, QS or YS; W-FRI (weeks that end so), ME, QE or YE; B (Monday to Friday) "
    "or D-SUN (all but Sundays); 1 for numbers."
)
Duplicates = Literal["error", "sum", "mean", "last"]
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


def listed(names: str) -> list[str]:
    """Split names as a line of CSV: one that has a comma itself is quoted.

    Examples
    --------
    >>> listed('price, "sold, online"')
    ['price', 'sold, online']
    """
    return next(csv.reader([names], skipinitialspace=True), [])


def refuse_twice(columns: Sequence[str]) -> None:
    """Refuse a column that several options name."""
    repeated = sorted(name for name, n in Counter(columns).items() if n > 1)
    if repeated:
        raise typer.BadParameter(
            f"the column {repeated[0]!r} is named twice: the id, the time, the value and each column beside "
            "them must be different ones"
        )


@dataclass(frozen=True)
class Shown:
    """What ``ccmtl forecast`` prints: ranges, sums by attributes ("all": of all products), contributions."""

    level: list[float]
    total_by: list[str] | None
    contributions: bool

    def refuse_contradictions(self, static: Sequence[str]) -> None:
        """Refuse options that cannot stand beside each other."""
        if self.contributions and (self.level or self.total_by is not None or static):
            raise typer.BadParameter("--contributions: goes without --level, --static and --total-by")
        if self.total_by is None:
            return
        if self.level:
            raise typer.BadParameter("--level: sums of forecasts have no ranges")
        unknown = [name for name in self.total_by if name not in static]
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
    time: str | None
    frequency: Every | None
    ds_format: str | None
    fill: Fill | None
    duplicates: Duplicates | None
    accept_gaps: bool
    written: Mapping[str, Any]
    """How the file is written, as far as it is stated."""

    def refuse_contradictions(self) -> None:
        """Refuse options that cannot stand beside each other, and say which to leave out or to add."""
        if (self.file is None) == (self.statistics is None):
            raise typer.BadParameter("give either FILE or --statistics FILE")
        of_series: dict[str, Any] = {
            "--time": self.time,
            "--frequency": self.frequency,
            "--ds-format": self.ds_format,
        }
        of_series |= {"--fill": self.fill, "--duplicates": self.duplicates}
        of_series |= {"--accept-gaps": self.accept_gaps or None}
        columns = {"--task": self.task, "--target": self.target, "--features": self.features}
        if self.statistics is not None:
            of_file = {f"--{name.replace('_', '-')}": value for name, value in self.written.items()}
            _refuse(
                {**columns, "--lags": self.lags, **of_series, **of_file}, "statistics name their own columns"
            )
        elif self.lags is None:
            _refuse(
                {f"--{name}": self.written.get(name) for name in ("shape", "periods")}, "these are for series"
            )
            _refuse(of_series, "these are for series, which need --lags")
            if None in columns.values():
                raise typer.BadParameter(
                    "FILE needs --task, --target and --features; of series, --lags and --frequency"
                )
        else:
            _refuse({"--features": self.features}, "with --lags the features are the values before")
            if self.frequency is None:
                raise typer.BadParameter("--lags needs --frequency, such as h, D, W or MS: what a period is")


def _refuse(options: dict[str, Any], reason: str) -> None:
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise typer.BadParameter(f"{', '.join(given)}: {reason}")


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
