"""What was found of a column of dates; and what must be asked where it may mean something else."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import polars as pl

from ccmtl_core.base.display import option, quoted

NAMES_WEEKS = re.compile(
    r"(?i)week|woche|semaine|semana|settimana|y?yyyww|(?:^|[^a-z])(?:kw|cw|wk)s?(?:[^a-z]|$)"
)
NAMES_QUARTERS = re.compile(r"(?i)quart|trimest|kwarta|kvarta|(?:^|[^a-z])(?:qtr|qrt)s?(?:[^a-z]|$)")
NAMES_HALVES = re.compile(r"(?i)halbjahr|half|semest(?:er|re)")
NAMES_MONTHS = re.compile(r"(?i)month|monat|mois|mes|mese|m[eê]s|period|yyyymm")
_LAST_DAY = 31


@dataclass(frozen=True)
class DatesFound:
    """How a column of dates is written, and why; or the readings that fit alike."""

    format: str | None
    """A ``ds_format``; None for ISO 8601, or where nothing was found."""
    evidence: str
    readings: tuple[tuple[str, str], ...] = ()
    """Of several that fit alike each format, and what it makes of the example."""
    example: str = ""
    is_known: bool = True
    is_ambiguous: bool = False
    """Whether something must be stated, as the column can be read in several ways."""
    may_lack_year: bool = False
    """Whether one of these ways is as days of a year that is not written."""

    @property
    def question(self) -> str:
        """What must be stated, and why."""
        if self.readings:
            ways = " or ".join(f"{when} ({option('ds_format', written)})" for written, when in self.readings)
            rest = "and no other date of the column decides: state `ds_format`"
            return f"{quoted(self.example)} may be {ways}, {rest}"
        return self.evidence


def may_be_days(distinct: pl.Series, name: str) -> DatesFound | None:
    """What is told where months with a year of two digits may be days, as "Jan 24" and "Jan 25" are.

    "24-Jan" always may be: it is how spreadsheets show days.
    """
    if "%y" not in name or "%d" in name or not ("%b" in name or "%B" in name):
        return None
    parts = distinct.to_frame().select(
        pl.col("text").str.extract("([0-9]{2})").cast(pl.Int32).alias("number"),
        pl.col("text").str.extract(r"(\p{L}+)").str.to_lowercase().alias("month"),
    )
    is_of_few_years = 2 * parts["number"].n_unique() <= 3 * parts["month"].n_unique()
    if (is_of_few_years and not name.startswith("%y")) or (parts["number"] > _LAST_DAY).any():
        return None
    message = (
        f"{quoted(distinct[0])} may be a month of a year ({option('ds_format', name)}) or a day of a month "
        "whose year is not written: state the one, or the `year`"
    )
    return DatesFound(
        None, message, example=distinct[0], is_known=False, is_ambiguous=True, may_lack_year=True
    )


def may_be_seasons(distinct: pl.Series, name: str) -> DatesFound | None:
    """What is told where months or weeks may be years from one to the next, as 2023/24 and 2024/25 are."""
    if name[:2] not in ("%Y", "%G") or name[3:] not in ("%m", "%V") or len(distinct) < 2:
        return None
    numbers = distinct.str.extract_all("[0-9]+")
    year, second = (numbers.list.get(i, null_on_oob=True).cast(pl.Int32, strict=False) for i in (0, 1))
    if not ((year + 1) % 100 == second).fill_null(False).all():
        return None
    message = (
        f"{quoted(distinct[0])} may be a year that ends in the next one, or what {option('ds_format', name)} "
        "reads: write such years as one number, or state it"
    )
    return DatesFound(None, message, example=distinct[0], is_known=False, is_ambiguous=True)


def called_part_of_year(
    distinct: pl.Series, readings: Mapping[str | None, pl.Series], column: str
) -> DatesFound | None:
    """What is told where a column is called by quarters or halves of years, and would be read as months."""
    written = [way for way in readings if way is not None and "%d" not in way and re.search("%[mq]", way)]
    are_quarters = bool(NAMES_QUARTERS.search(column))
    if not written or not (are_quarters or NAMES_HALVES.search(column)):
        return None
    if are_quarters and any("%q" in way for way in written):
        return None
    numbers = distinct.str.replace("[12][0-9]{3}", "").str.extract("([0-9]+)").cast(pl.Int32, strict=False)
    found = set(numbers.drop_nulls())
    if not found or max(found) > (4 if are_quarters else 2) or found <= {1, 4}:
        return None
    told = (
        f"{quoted(distinct[0])} may be a month, and the column is called {quoted(column)}: if they are "
        f"months, state {option('ds_format', written[0])}; "
    )
    told += (
        "write quarters as 2024-Q1"
        if are_quarters
        else "no frequency has halves of years, so write each as its first quarter"
    )
    return DatesFound(None, told, example=distinct[0], is_known=False, is_ambiguous=True)


def ambiguous(distinct: pl.Series, readings: Mapping[Any, pl.Series], shown: int) -> DatesFound:
    """Several readings that fit alike, and what each makes of the text to show."""
    return DatesFound(
        None,
        "more than one reading fits all dates",
        tuple((str(written or "ISO 8601"), shown_day(p[shown])) for written, p in readings.items()),
        distinct[shown],
        is_known=False,
        is_ambiguous=True,
    )


def contradiction(distinct: pl.Series, readings: Mapping[Any, pl.Series]) -> DatesFound | None:
    """What is told where texts fit one reading each, and not the same."""
    n_readings = sum(parsed.is_not_null().cast(pl.Int32) for parsed in readings.values())
    alone = {}
    for written, parsed in readings.items():
        at = (parsed.is_not_null() & (n_readings == 1)).arg_true()
        if len(at):
            alone[distinct[int(at[0])]] = written or "ISO 8601"
    if len(alone) < 2:
        return None
    told = ", ".join(f"{quoted(text)} as {written}" for text, written in alone.items())
    message = (
        f"the dates contradict each other: {told}, and no other way reads them; write all in one "
        "way, or state `ds_format` to be told each one that is written otherwise"
    )
    return DatesFound(None, message, example=next(iter(alone)), is_known=False, is_ambiguous=True)


def shown_day(moment: datetime | None) -> str:
    """Return the day of a moment as ISO 8601 writes it."""
    return "no date" if moment is None else f"{moment:%Y-%m-%d}"
