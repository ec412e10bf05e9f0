"""Find out how the dates of a whole column are written; where two readings fit alike, nothing is guessed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

import polars as pl

from ccmtl_core.base.display import counted, option, quoted
from ccmtl_core.tables.dates.months import in_english
from ccmtl_core.tables.dates.notations import WORDS
from ccmtl_core.tables.dates.timestamps import FIRST_YEAR, ISO_8601, LAST_YEAR, TimeFormat, time_format

CENTURY_RULE = "two-digit years 00 to 69 are read as 2000 to 2069, 70 to 99 as 1970 to 1999"
SERIAL_FROM, SERIAL_TO = 20_000, 80_000
"""Whole numbers that a spreadsheet may mean as days: 1954 to 2119."""
_FIRST_TEXTS = 60
_NUMBERED_MOST = 9_999
_LAST_DAY = 31
_MUCH_FARTHER = 5
_YEARS = (1900, 2100)
_TIMES = ("", " %H:%M", " %H:%M:%S", "T%H:%M", "T%H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
_WORDED = (
    "%d %b %Y", "%d-%b-%Y", "%d/%b/%Y", "%b %d, %Y", "%b %d %Y", "%d %B %Y", "%B %d, %Y", "%d-%b-%y",
    "%d. %b %Y", "%d. %B %Y", "%d de %B de %Y", "%Y年%m月%d日",
    "%a, %d %b %Y", "%A, %d %B %Y", "%A, %B %d, %Y",
)  # fmt: skip
_LONGER = (
    "%Y-%m", "%Y/%m", "%m/%Y", "%m.%Y", "%m-%Y", "%YM%m", "%Y年%m月",
    "%b %Y", "%B %Y", "%b-%Y", "%b-%y", "%b %y", "%b/%Y", "%b/%y", "%b%Y", "%b%y", "%Y %b", "%Y-%b",
    "%G-W%V", "%GW%V", "%G W%V", "%G-W%V-%u", "%YQ%q", "%Y-Q%q", "%Y Q%q", "Q%q %Y", "Q%q-%Y", "Q%q/%Y",
    "%qQ%Y", "%qQ %Y", "%qQ%y", "Q%q %y", "Q%q-%y", "Q%q/%y", "Q%q'%y", "%Y%m%d %H:%M", "%Y%m%d %H:%M:%S",
    "%Y-%m-%d %H:%M:%S %z", "%Y-%m-%d %H:%M:%S.%f %z", "%d%b%Y", "%d%b%y", "%Y.%m.%d.", "%Y. %m. %d.",
    "%b '%y", "%qQ %y", "%Y-%m-%d %H:%M:%S.%f",
    "%d-%b %Y", "%d/%b %Y", "%b-%d %Y", "%b %d %Y",
    "%G-%V", "%G/%V", "%V/%G", "%V.%G", "%V-%G",
)  # fmt: skip
_DIGITS = {
    4: ("%Y", "%y%m", "%g%V"),
    6: ("%Y%m", "%G%V", "%y%m%d", "%d%m%y", "%m%d%y"),
    7: ("%Y%j", "%Y0%m"),
    8: ("%Y%m%d", "%d%m%Y", "%m%d%Y"),
    12: ("%Y%m%d%H%M",),
    14: ("%Y%m%d%H%M%S",),
}
"""Ways to write dates in digits alone, by how many there are."""
_WEEK_WORD = r"(?:kw|cw|wk|w|week|woche|sem|semaine|semana|settimana|s)[. ]?\s?"
_WEEK_OF_YEAR = re.compile(rf"(?i)({_WEEK_WORD})([0-9]{{1,2}})([ /,.-]{{1,2}})([12][0-9]{{3}})")
_NAMES_WEEKS = re.compile(
    r"(?i)week|woche|semaine|semana|settimana|y?yyyww|(?:^|[^a-z])(?:kw|cw|wk)s?(?:[^a-z]|$)"
)
_NAMES_MONTHS = re.compile(r"(?i)month|monat|mois|mes|mese|m[eê]s|period|yyyymm")
_YEAR_AND_WEEK = re.compile(rf"(?i)([12][0-9]{{3}})([ /-]?{_WEEK_WORD})([0-9]{{1,2}})")


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


def infer_dates(texts: pl.Series, *, in_utc: bool = False, column: str = "") -> DatesFound:
    """Find out how the dates of a column are written, from all of its texts.

    Parameters
    ----------
    texts : polars Series of str
        The column's texts; empty ones say nothing.
    in_utc : bool
        Whether times with a zone are converted to UTC.
    column : str
        The column's name; where it tells of weeks, 202401 is one, and no month.

    Returns
    -------
    DatesFound

    Examples
    --------
    >>> infer_dates(pl.Series(["01/02/2024", "31/12/2024"])).format
    '%d/%m/%Y'
    >>> print(infer_dates(pl.Series(["01/02/2024", "03/04/2024"])).question)
    '01/02/2024' may be 2024-02-01 (`ds_format='%d/%m/%Y'`) or 2024-01-02 (`ds_format='%m/%d/%Y'`), \
and no other date of the column decides: state `ds_format`
    """
    distinct = texts.drop_nulls().unique(maintain_order=True).rename("text")
    distinct = distinct.filter(distinct != "")
    if not len(distinct):
        return DatesFound(None, "the column holds no dates", is_known=False)
    if (numbers := distinct.cast(pl.Int64, strict=False)).null_count() == 0:
        return _of_numbers(distinct, numbers, column)
    first = distinct.head(_FIRST_TEXTS)
    shown = first.to_frame().select(pl.coalesce(in_english(pl.col("text")), "text")).to_series()
    tried: dict[str | None, pl.Series] = {}
    for written, form in (*_candidates(), *_weeks(first[0])):
        if any(map(form.fullmatch, shown)) and _parsed(first, written, in_utc).null_count() < len(first):
            tried[written] = _parsed(distinct, written, in_utc)
    if not tried:
        return _numbered(distinct) or _unknown(distinct)
    fewest = min(parsed.null_count() for parsed in tried.values())
    best = {written: parsed for written, parsed in tried.items() if parsed.null_count() == fewest}
    unwanted = _weeks_or_months(best, is_week=bool(_NAMES_WEEKS.search(column)))
    best = {written: parsed for written, parsed in best.items() if written not in unwanted}
    if 2 * fewest > len(distinct):
        return _unknown(distinct)
    best = _of_near_years(best)
    n_read = len(distinct) - fewest
    name, times = next(iter(best.items()))
    others = {written: parsed for written, parsed in best.items() if not parsed.equals(times)}
    if others:
        readings = {name: times, **others}
        differs = _first_difference(list(readings.values())) or 0
        return _contradiction(distinct, readings) or _ambiguous(distinct, readings, differs)
    if name is not None and (
        open_question := _may_be_days(distinct, name) or _may_be_seasons(distinct, name)
    ):
        return open_question
    of = counted(len(distinct), "different date")
    evidence = f"{n_read:,} of {of} are written so" + _decided(distinct, tried, name)
    evidence += "".join(f", as they are for {option('ds_format', other)}" for other in sorted(unwanted))
    return DatesFound(name, evidence + (f"; {CENTURY_RULE}" if name and "%y" in name else ""))


def _may_be_days(distinct: pl.Series, name: str) -> DatesFound | None:
    """What is told where months with a year of two digits may be days, as "Jan 24" and "Jan 25" are."""
    if "%y" not in name or "%d" in name or not ("%b" in name or "%B" in name):
        return None
    parts = distinct.to_frame().select(
        pl.col("text").str.extract("([0-9]{2})").cast(pl.Int32).alias("number"),
        pl.col("text").str.extract(r"(\p{L}+)").str.to_lowercase().alias("month"),
    )
    if 2 * parts["number"].n_unique() <= 3 * parts["month"].n_unique() or (parts["number"] > _LAST_DAY).any():
        return None
    message = (
        f"{quoted(distinct[0])} may be a month of a year ({option('ds_format', name)}) or a day of a month "
        "whose year is not written: state the one, or the `year`"
    )
    return DatesFound(
        None, message, example=distinct[0], is_known=False, is_ambiguous=True, may_lack_year=True
    )


def _may_be_seasons(distinct: pl.Series, name: str) -> DatesFound | None:
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


def _of_near_years(readings: dict[str | None, pl.Series]) -> dict[str | None, pl.Series]:
    """Without readings that find the year elsewhere and spread the dates over many times as many years."""
    spans = {
        written: (parsed.max() - parsed.min()).total_seconds()  # type: ignore[operator, union-attr]
        for written, parsed in readings.items()
        if written is not None and "%y" in written
    }
    if len(spans) < 2:
        return readings
    nearest = min(spans, key=lambda written: spans[written])
    of_year = nearest.index("%y")
    far = {
        w for w, span in spans.items() if w.index("%y") != of_year and span > _MUCH_FARTHER * spans[nearest]
    }
    return {written: parsed for written, parsed in readings.items() if written not in far}


def _weeks_or_months(readings: Mapping[str | None, pl.Series], *, is_week: bool) -> set[str]:
    """Those as weeks of what may be months, or the other way round where the column says so."""
    pairs = {written.replace("%G", "%Y").replace("%V", "%m"): written for written in readings if written}
    both = {month: week for month, week in pairs.items() if week != month in readings}
    return set(both if is_week else both.values())


def _first_difference(readings: Sequence[pl.Series]) -> int | None:
    """The place of the first text that is not the same date in all readings; None where there is none."""
    differs = [readings[0].ne_missing(other).arg_true() for other in readings[1:]]
    return min((int(at[0]) for at in differs if len(at)), default=None)


def _ambiguous(distinct: pl.Series, readings: Mapping[Any, pl.Series], shown: int) -> DatesFound:
    """Several readings that fit alike, and what each makes of the text to show."""
    return DatesFound(
        None,
        "more than one reading fits all dates",
        tuple((str(written or "ISO 8601"), _day(p[shown])) for written, p in readings.items()),
        distinct[shown],
        is_known=False,
        is_ambiguous=True,
    )


def _contradiction(distinct: pl.Series, readings: Mapping[Any, pl.Series]) -> DatesFound | None:
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


def lack_year(texts: pl.Series) -> bool:
    """Return whether texts are dates once a year is added, as 01-Mar is; KW 09 and Q1 may count without.

    Parameters
    ----------
    texts : polars Series of str
        The first ones of a column, or names of columns.

    Returns
    -------
    bool

    Examples
    --------
    >>> lack_year(pl.Series(["01-Mar", "02-Mar"])), lack_year(pl.Series(["Mar 24", "Apr 24"]))
    (True, False)
    """
    words = texts.drop_nulls().unique(maintain_order=True).head(_FIRST_TEXTS)
    words = words.filter(words != "")
    if (
        not len(words)
        or not (words.str.contains(r"^\D*[0-9]{0,2}\D*$") & words.str.contains(r"\p{L}{3}")).all()
    ):
        return False
    if infer_dates(words).is_known:
        return False
    found = infer_dates(words + " 2024")
    return found.is_known and found.format != "integer"


def _day(moment: datetime | None) -> str:
    return "no date" if moment is None else f"{moment:%Y-%m-%d}"


def _decided(distinct: pl.Series, tried: dict[str | None, pl.Series], name: str | None) -> str:
    """Which date rules out the next best reading."""
    rivals = {written: p for written, p in tried.items() if written != name and p.null_count() < len(p)}
    if not rivals:
        return ""
    written, parsed = min(rivals.items(), key=lambda rival: rival[1].null_count())
    at = (parsed.is_null() & tried[name].is_not_null()).arg_true()
    return f"; {quoted(distinct[int(at[0])])} is no {written or 'ISO 8601'}" if len(at) else ""


@cache
def _candidates() -> tuple[tuple[str | None, re.Pattern[str]], ...]:
    """The known ways to write dates, and what texts of each look like: none but these are parsed."""
    return tuple((written, re.compile(time_format(written).guard)) for written in _known_ways())


def _known_ways() -> Iterator[str | None]:
    yield None
    for sign in "/.-":
        days = [f"%d{sign}%m{sign}%Y", f"%Y{sign}%m{sign}%d", f"%d{sign}%m{sign}%y", f"%y{sign}%m{sign}%d"]
        if sign != ".":  # nobody writes the month first with dots
            days += [f"%m{sign}%d{sign}%Y", f"%m{sign}%d{sign}%y"]
        for day in days:
            yield from (f"{day}{time}" for time in _TIMES)
    for day in _WORDED:
        yield from (f"{day}{time}" for time in _TIMES)
    yield from _LONGER


def _weeks(text: str) -> Iterator[tuple[str, re.Pattern[str]]]:
    """The notation of a week with a word for it, as in "KW 9 2024", and as it stands in that text."""
    found = []
    if match := _WEEK_OF_YEAR.fullmatch(text):
        found.append(f"{match[1]}%V{match[3]}%G")
    if match := _YEAR_AND_WEEK.fullmatch(text):
        found.append(f"%G{match[2]}%V")
    yield from ((written, re.compile(time_format(written).guard)) for written in found)


def _parsed(texts: pl.Series, written: str | None, in_utc: bool) -> pl.Series:
    formats: TimeFormat = time_format(written, in_utc=in_utc)
    moment = formats.parse(pl.col("text"))
    in_range = moment.dt.year().is_between(FIRST_YEAR, LAST_YEAR)
    return texts.to_frame().select(pl.when(in_range).then(moment)).to_series()


def _of_numbers(distinct: pl.Series, numbers: pl.Series, column: str) -> DatesFound:
    """Days, weeks, months or years in digits, or small numbers of periods; other ones may be anything."""
    is_week = bool(_NAMES_WEEKS.search(column))
    widths = distinct.str.len_chars().unique().to_list()
    low, high = int(numbers.min() or 0), int(numbers.max() or 0)  # type: ignore[arg-type]
    fits = dict(_fitting(distinct, _DIGITS.get(widths[0], ()))) if len(widths) == 1 else {}
    others = ""
    if "%Y%m" not in fits and not is_week and _NAMES_MONTHS.search(column):
        fits.pop("%G%V", None)  # a 13th month, as of a fiscal year, is no week
    if "%Y%m" in fits and "%G%V" in fits:  # twelve weeks look like twelve months
        others = option("ds_format", "%Y%m" if is_week else "%G%V")
        del fits["%Y%m" if is_week else "%G%V"]
    if "%Y%m" in fits and len(distinct) > 12 and distinct.str.tail(2).n_unique() == 12:  # days go on to 31
        fits = {"%Y%m": fits["%Y%m"]}
    elif "%Y" in fits:
        fits = {"%Y": fits["%Y"]}
    if any("%Y" in written or "%G" in written for written in fits):
        if (differs := _first_difference(list(fits.values()))) is not None:
            return _ambiguous(distinct, fits, differs)
        evidence = f"all are {widths[0]} digits that read so"
        return DatesFound(next(iter(fits)), evidence + (f", as they do with {others}" if others else ""))
    if not fits and -_NUMBERED_MOST <= low <= high <= _NUMBERED_MOST:
        return DatesFound("integer", f"all are whole numbers, from {low} to {high}")
    ways = [f"{option('ds_format', name)} reads {distinct[0]} as {_day(fits[name][0])}" for name in fits]
    words = ["excel"] if SERIAL_FROM <= low <= high <= SERIAL_TO else []
    words += ["epoch"] if high > 1e8 else []
    words += ["epoch_ms"] if high > 1e11 else []
    words += ["integer"] if _fits(distinct, "integer") else []
    ways += [f"{option('ds_format', name)} reads {WORDS[name]}" for name in words]
    what = f"the dates are whole numbers from {low} to {high}"
    if "excel" in words:
        first, last = (_parsed(pl.Series("text", [str(day)]), "excel", False)[0] for day in (low, high))
        what += f", which as days of a spreadsheet are {_day(first)} to {_day(last)}"
    told = "; ".join(ways) or "a `ds_format` such as '%Y%m%d'"
    return DatesFound(None, f"{what}: state what they are ({told})", is_known=False, is_ambiguous=True)


def _fitting(distinct: pl.Series, ways: Sequence[str]) -> Iterator[tuple[str, pl.Series]]:
    """Of the ways to write dates in digits those that fit all, and the days."""
    for written in ways:
        parsed = _parsed(distinct, written, False)
        if parsed.null_count() == 0 and parsed.dt.year().is_between(*_YEARS).all():
            yield written, parsed


def _fits(distinct: pl.Series, written: str) -> bool:
    return _parsed(distinct, written, False).null_count() == 0


def _numbered(distinct: pl.Series) -> DatesFound | None:
    """Whole numbers of periods behind the same word, as in W0, W1."""
    found = [re.fullmatch("([A-Za-z]+[ _]?)[0-9]{1,4}", text) for text in distinct.to_list()[:_NUMBERED_MOST]]
    words = {match[1] for match in found if match}
    if None in found or len(words) != 1:
        return None
    return DatesFound("integer", f"all are whole numbers behind {quoted(words.pop())}")


def _unknown(distinct: pl.Series) -> DatesFound:
    examples = ", ".join(map(quoted, distinct.head(3)))
    message = (
        f"no way to write dates is known that reads most of the column, such as {examples}; by default "
        f"{ISO_8601}: state `ds_format`, a pattern such as '%d/%m/%Y' or one of {', '.join(WORDS)}"
    )
    return DatesFound(None, message, is_known=False)
