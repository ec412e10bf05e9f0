"""Read times that strptime has no word for: ISO weeks, quarters, years, numbers of days or seconds."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

import polars as pl

WORDS = {
    "excel": "days since 1899-12-30, as spreadsheets number them",
    "epoch": "seconds since 1970",
    "epoch_ms": "milliseconds since 1970",
    "integer": "whole numbers that count periods, also behind a word, as in W12",
}
"""Notations that stand in place of a pattern, and what each is."""

_YEAR = "([1-9][0-9]{3})"
_PARTS = {
    "Y": _YEAR,
    "G": _YEAR,
    "g": "([0-9]{2})",
    "y": "([0-9]{2})",
    "V": "(0[1-9]|[1-4][0-9]|5[0-3])",
    "u": "([1-7])",
    "q": "([1-4])",
}
_SHORT_WEEK = "(0?[1-9]|[1-4][0-9]|5[0-3])"
_COMBINATIONS = {"Y", "qY", "qy", "GV", "GVu", "gV", "gVu"}
_DAY = 86_400_000_000
_EXCEL_START = datetime(1899, 12, 30)


@dataclass(frozen=True)
class Notation:
    """One way to write times, which a regular expression guards."""

    guard: str
    compute: Callable[[pl.Expr], pl.Expr]
    has_zone: bool = False

    def parse(self, text: pl.Expr, *, in_utc: bool) -> pl.Expr:
        """Return the times as ``Datetime("us")``, null where the text is written in another way."""
        return self.compute(pl.when(text.str.contains(f"^(?:{self.guard})$")).then(text))


def notation(ds_format: str) -> Notation | None:
    """Return the notation of one of ``WORDS`` or of a pattern of weeks, quarters or years; None of any other.

    Parameters
    ----------
    ds_format : str
        "excel", "epoch", "epoch_ms", "integer"; or text around %G and %V (ISO year and week; %g is a
        year of two digits; and perhaps %u, the day from Monday 1), %Y or %y and %q (a quarter), or %Y alone.

    Returns
    -------
    Notation or None

    Examples
    --------
    >>> weeks = notation("%G-W%V")
    >>> pl.select(weeks.parse(pl.lit("2024-W07"), in_utc=False)).item()
    datetime.datetime(2024, 2, 12, 0, 0)
    """
    if ds_format in WORDS:
        return _NUMBERS[ds_format]
    tokens = re.findall(r"%.|[^%]+", ds_format, flags=re.DOTALL)
    letters = [token[1] for token in tokens if token[0] == "%"]
    if "".join(sorted(letters, key="qYyGgVu".find)) not in _COMBINATIONS:
        return None
    is_number = [False, *(token[0] == "%" for token in tokens), False]
    guard = ""
    for i, token in enumerate(tokens, start=1):
        if token == "%V" and not (is_number[i - 1] or is_number[i + 1]):
            guard += _SHORT_WEEK
        else:
            guard += _PARTS[token[1]] if token[0] == "%" else re.escape(token)

    def compute(text: pl.Expr) -> pl.Expr:
        parts = {
            letter: text.str.extract(f"^(?:{guard})$", i).cast(pl.Int32)
            for i, letter in enumerate(letters, start=1)
        }
        return _moment(parts)

    return Notation(guard, compute)


def _moment(parts: Mapping[str, pl.Expr]) -> pl.Expr:
    (year,) = (parts[letter] for letter in "YGyg" if letter in parts)
    if "Y" not in parts and "G" not in parts:
        year = year + pl.when(year < 70).then(2000).otherwise(1900)
    if "V" not in parts:
        return pl.datetime(year, parts["q"] * 3 - 2 if "q" in parts else pl.lit(1), 1)
    fourth = pl.date(year, 1, 4)
    days = (parts["V"] - 1) * 7 + parts.get("u", pl.lit(1)) - fourth.dt.weekday()
    day = fourth + pl.duration(days=days)
    is_there = (day.dt.iso_year() == year) & (day.dt.week() == parts["V"])
    return pl.when(is_there).then(day).cast(pl.Datetime("us"))


def _since(start: datetime, microseconds: int) -> Callable[[pl.Expr], pl.Expr]:
    def compute(text: pl.Expr) -> pl.Expr:
        passed = (text.cast(pl.Float64, strict=False) * microseconds).round().cast(pl.Int64, strict=False)
        return pl.lit(start, pl.Datetime("us")) + passed.cast(pl.Duration("us"))

    return compute


def _number(text: pl.Expr) -> pl.Expr:
    days = text.str.extract("(-?[0-9]+)$", 1).cast(pl.Int32, strict=False)
    return pl.lit(datetime(1970, 1, 1), pl.Datetime("us")) + pl.duration(days=days)


# Spreadsheets count a 29th of February 1900, which was none: days before the 61st are not the same in all.
_NUMBERS = {
    "excel": Notation(r"(?:6[1-9]|[7-9][0-9]|[1-9][0-9]{2,5})(?:\.[0-9]+)?", _since(_EXCEL_START, _DAY)),
    "epoch": Notation(r"-?[0-9]{1,11}(?:\.[0-9]+)?", _since(datetime(1970, 1, 1), 1_000_000)),
    "epoch_ms": Notation("-?[0-9]{1,14}", _since(datetime(1970, 1, 1), 1_000)),
    "integer": Notation("(?:[A-Za-z]+[ _]?)?[0-9]{1,5}|-[0-9]{1,5}", _number),
}
