"""Names of columns that are periods: days, weeks, months and years in words and digits, or counted ones."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

import polars as pl

from ccmtl_core.base.display import option, quoted
from ccmtl_core.tables.dates.inference import infer_dates, lack_year
from ccmtl_core.tables.dates.months import OTHER_WORDS
from ccmtl_core.tables.dates.timestamps import time_format
from ccmtl_core.tables.faults import FaultList

_MONTH = (
    r"(?i)\b(?:(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
    rf"|(?:{OTHER_WORDS})(?![^\W\d_]))\.?"
)
_WEEK = re.compile(r"(?i)(?:kw|cw|wk|w|week|woche|sem|semaine|semana)[. ]?[0-9]{1,2}")
_BACK = re.compile(r"(?i)\b(?:ago|back|lag|prior|vor|hace)(?![^\W\d_])|^t ?-")
"""Says that a number counts from the present."""
_PART_OF_YEAR = re.compile(rf"(?i){_WEEK.pattern.removeprefix('(?i)')}|[mq][. ]?[0-9]{{1,2}}")
_NAMES_YEARS = re.compile(
    r"(?i)(?:^|[^a-z])(?:year|yr|jahr|ann[eé]e|a[nñ]o|anno|jaar|год|rok|år)(?:[^a-z]|$)"
)
_SUMS = ("total", "sum", "gesamt", "ytd")
"""How names begin of columns that add up the periods before them."""


def form_of(name: str) -> str:
    """Return the name with ``#`` for each number and ``@`` for the name of a month."""
    return re.sub("[0-9]+", "#", re.sub(_MONTH, "@", name.strip()))


def periods_alone(names: Sequence[str]) -> list[str]:
    """Return names of columns without what they all begin or end with, where periods are left.

    Examples
    --------
    >>> periods_alone(["Qty Jan 2024", "Qty Feb 2024"]), periods_alone(["W1", "W2"])
    (['Jan 2024', 'Feb 2024'], ['W1', 'W2'])
    """
    names = list(names)
    heads, tails = _cuts(names), _cuts([name[::-1] for name in names])
    for head, tail in [(0, 0), *((at, 0) for at in heads), *((0, at) for at in tails)]:
        bare = [name[head : len(name) - tail] for name in names]
        if are_periods(bare):
            return bare
    return names


def are_periods(names: Sequence[str]) -> bool:
    """Return whether names are dates, with a year or without."""
    texts = pl.Series(names, dtype=pl.String)
    found = infer_dates(texts)
    return (found.is_known and found.format != "integer") or bool(found.readings) or lack_year(texts)


def _cuts(names: Sequence[str]) -> list[int]:
    """Where the common beginning of names may be cut off: behind its words."""
    letters = takewhile(lambda of_all: len(set(of_all)) == 1, zip(*names, strict=False))
    common = "".join(of_all[0] for of_all in letters)
    return [word.end() for word in re.finditer(r"[^\W\d_]+[\W_]*", common)]


def with_years(names: Sequence[str], year: int | None, faults: FaultList) -> tuple[str, ...] | None:
    """Return names of periods without a year with one, which goes on where they go back; None of any others.

    Months and days that lack the year, and weeks that go back, are refused where it is not stated.
    """
    texts = pl.Series("text", names)
    numbers = texts.str.extract("([0-9]+)").cast(pl.Int64, strict=False)
    goes_back = bool((numbers.diff() < 0).any())
    are_weeks = all(map(_WEEK.fullmatch, names)) and (goes_back or year is not None)
    if not (are_weeks or lack_year(texts)):
        return None
    if year is None and texts.str.contains(r"^[0-9]{2}[- ]\p{L}+$").all():
        message = (
            f"the columns {names[0]!r} to {names[-1]!r} may be called by days or by months of years: if by "
            "days, state the `year` of the first, such as 2024; months write as 2024-03"
        )
        raise faults.refusal_for("unknown_periods", message)
    if year is None:
        message = (
            f"the columns {names[0]!r} to {names[-1]!r} are called by periods without a year: state the "
            "`year` of the first, such as 2024; or write it in the names, as 2024-03 or 2024-W09"
        )
        raise faults.refusal_for("unknown_periods", message)
    dated = texts + f" {year}"
    found = infer_dates(dated)
    times = dated.to_frame().select(time_format(found.format).parse(pl.col("text"))).to_series()
    years = year + (times.diff().dt.total_days() < 0).fill_null(False).cast(pl.Int64).cum_sum()
    return tuple(f"{name} {of}" for name, of in zip(names, years, strict=True))


def refuse_months_in_other_words(columns: Sequence[str], places: Sequence[int], faults: FaultList) -> None:
    """Refuse a header with unread months between others, such as "Mai 24" after "Apr 24"."""
    form, of_periods = _any_word(columns[places[0]]), set(places)
    left = [columns[i] for i in range(places[0], places[-1]) if i not in of_periods]
    left = [name for name in left if _any_word(name) == form and not name.casefold().startswith(_SUMS)]
    if "@" in form and left:
        message = (
            f"the columns {', '.join(map(repr, left[:5]))} stand between periods such as "
            f"{columns[places[0]]!r} and are not read as one: name the months in English or as 2024-05"
        )
        raise faults.refusal_for("unknown_periods", message)


def refuse_years_beside(names: Sequence[str], others: Sequence[str], faults: FaultList) -> None:
    """Refuse periods without a year that stand beside a column of years, as "Jan" beside "Year" does.

    Where nothing but the years stands beside them, names such as "Store 1" may be series.
    """
    years = [other for other in others if _NAMES_YEARS.search(other)]
    may_be_series = len(others) == 1 and not all(map(_PART_OF_YEAR.fullmatch, names))
    if may_be_series and not lack_year(pl.Series(names)):
        return
    if years and not any(re.search("(?:19|20)[0-9]{2}", name) for name in names):
        message = (
            f"the year of the columns {names[0]!r} to {names[-1]!r} stands in a column of its own, "
            f"{years[0]!r}: write a row for each period instead, or the year into the names, as 2024-03"
        )
        raise faults.refusal_for("unknown_periods", message)


def refuse_counted_twice(names: Sequence[str], faults: FaultList) -> None:
    """Refuse counted periods that begin anew, as below a line of years."""
    repeated = [name for i, name in enumerate(names) if name in names[:i]]
    numbers = pl.Series(names).str.extract("([0-9]+)").cast(pl.Int64, strict=False)
    if repeated and (numbers.diff() < 0).any():
        message = (
            f"columns are called {quoted(repeated[0])} more than once, as months of several years are: write "
            "the year into the names, as 2024-03"
        )
        raise faults.refusal_for("unknown_periods", message)


def refuse_counted_back(names: Sequence[str], faults: FaultList) -> None:
    """Refuse counted periods whose numbers fall or that say that they count from now, as "M-3", "M-2" do."""
    numbers = pl.Series(names).str.extract("([0-9]+)").cast(pl.Int64, strict=False)
    if (numbers.diff().drop_nulls() < 0).all() or all(map(_BACK.search, names)):
        message = (
            f"the columns {names[0]!r} to {names[-1]!r} may count periods back from now: call them by dates, "
            "as 2024-03, or by numbers that grow with time; if the largest number is the newest, state "
            f"{option('periods', re.sub('[0-9]+', '*', names[0]))}"
        )
        raise faults.refusal_for("unknown_periods", message)


def _any_word(name: str) -> str:
    """The name with ``#`` for each number and ``@`` for each word."""
    return re.sub("[0-9]+", "#", re.sub(r"[^\W\d_]+", "@", name.strip()))
