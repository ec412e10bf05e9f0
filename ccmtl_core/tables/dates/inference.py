"""Find out how the dates of a whole column are written; where two readings fit alike, nothing is guessed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

import polars as pl

from ccmtl_core.base.display import counted, option, quoted
from ccmtl_core.tables.dates.doubts import (
    NAMES_MONTHS,
    NAMES_QUARTERS,
    NAMES_WEEKS,
    DatesFound,
    ambiguous,
    called_part_of_year,
    contradiction,
    may_be_days,
    may_be_seasons,
    shown_day,
)
from ccmtl_core.tables.dates.months import in_english
from ccmtl_core.tables.dates.notations import WORDS
from ccmtl_core.tables.dates.timestamps import FIRST_YEAR, ISO_8601, LAST_YEAR, TimeFormat, time_format

CENTURY_RULE = "two-digit years 00 to 69 are read as 2000 to 2069, 70 to 99 as 1970 to 1999"
SERIAL_FROM, SERIAL_TO = 20_000, 80_000
"""Whole numbers that a spreadsheet may mean as days: 1954 to 2119."""
_FIRST_TEXTS = 60
_NUMBERED_MOST = 9_999
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
    "%G-%V", "%G/%V", "%V/%G", "%V.%G", "%V-%G", "%Y-%q", "%Y/%q", "%q/%Y", "%q.%Y", "%q-%Y",
    "%y-%b", "%y %b",
)  # fmt: skip
_DIGITS = {
    4: ("%Y", "%y%m", "%g%V", "%m%y"),
    6: ("%Y%m", "%G%V", "%y%m%d", "%d%m%y", "%m%d%y"),
    7: ("%Y%j", "%Y0%m"),
    8: ("%Y%m%d", "%d%m%Y", "%m%d%Y"),
    12: ("%Y%m%d%H%M",),
    14: ("%Y%m%d%H%M%S",),
}
"""Ways to write dates in digits alone, by how many there are."""
_WEEK_WORD = r"(?:kw|cw|wk|w|week|woche|sem|semaine|semana|settimana|s)[. ]?\s?"
_WEEK_OF_YEAR = re.compile(rf"(?i)({_WEEK_WORD})([0-9]{{1,2}})([ /,.-]{{1,2}})([12][0-9]{{3}})")
_YEAR_AND_WEEK = re.compile(rf"(?i)([12][0-9]{{3}})([ /-]?{_WEEK_WORD})([0-9]{{1,2}})")


def infer_dates(texts: pl.Series, *, in_utc: bool = False, column: str = "") -> DatesFound:
    """Find out how the dates of a column are written, from all of its texts.

    Parameters
    ----------
    texts : polars Series of str
        The column's texts; empty ones say nothing.
    in_utc : bool
        Whether times with a zone are converted to UTC.
    column : str
        The column's name; where it tells of weeks, 202401 is one, and no month; so 2024-1 in quarters.

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
    if open_question := called_part_of_year(distinct, best, column):
        return open_question
    unwanted = _of_other_periods(best, column, distinct)
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
        return contradiction(distinct, readings) or ambiguous(distinct, readings, differs)
    if name is not None and (open_question := may_be_days(distinct, name) or may_be_seasons(distinct, name)):
        return open_question
    of = counted(len(distinct), "different date")
    evidence = f"{n_read:,} of {of} are written so" + _decided(distinct, tried, name)
    evidence += "".join(f", as they are for {option('ds_format', other)}" for other in sorted(unwanted))
    return DatesFound(name, evidence + (f"; {CENTURY_RULE}" if name and "%y" in name else ""))


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


def _of_other_periods(readings: Mapping[str | None, pl.Series], column: str, distinct: pl.Series) -> set[str]:
    """Those as weeks and quarters of what may be months, or as others where the column says what they are.

    Numbers from 1 to 4 of several years may be quarters as well as months: then both are left.
    """
    alike: dict[str, list[str]] = {}
    for written in filter(None, readings):
        as_month = written.replace("%G", "%Y").replace("%V", "%m").replace("%q", "%m")
        alike.setdefault(as_month, []).append(written)
    months = [written for written, ways in alike.items() if len(ways) > 1 and written in ways]
    kept = "%m"
    if NAMES_WEEKS.search(column):
        kept = "%V"
    elif NAMES_QUARTERS.search(column):
        kept = "%q"
    elif (
        not NAMES_MONTHS.search(re.sub("(?i)period", "", column))
        and distinct.str.extract("([12][0-9]{3})").n_unique() > 1
    ):
        kept = "%m|%q"
    unwanted = set()
    for month in months:
        wanted = {way for way in alike[month] if re.search(kept, way)} or {month}
        unwanted |= set(alike[month]) - wanted
    return unwanted


def _first_difference(readings: Sequence[pl.Series]) -> int | None:
    """The place of the first text that is not the same date in all readings; None where there is none."""
    differs = [readings[0].ne_missing(other).arg_true() for other in readings[1:]]
    return min((int(at[0]) for at in differs if len(at)), default=None)


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
    is_week = bool(NAMES_WEEKS.search(column))
    widths = distinct.str.len_chars().unique().to_list()
    low, high = int(numbers.min() or 0), int(numbers.max() or 0)  # type: ignore[arg-type]
    fits: dict[str | None, pl.Series] = {}
    if len(widths) == 1:
        fits.update(_fitting(distinct, _DIGITS.get(widths[0], ())))
    others = ""
    if "%Y%m" not in fits and not is_week and NAMES_MONTHS.search(column):
        fits.pop("%G%V", None)  # a 13th month, as of a fiscal year, is no week
    if "%Y%m" in fits and "%G%V" in fits:  # twelve weeks look like twelve months
        others = option("ds_format", "%Y%m" if is_week else "%G%V")
        del fits["%Y%m" if is_week else "%G%V"]
    if "%Y%m" in fits and len(distinct) > 12 and distinct.str.tail(2).n_unique() == 12:  # days go on to 31
        fits = {"%Y%m": fits["%Y%m"]}
    elif "%Y" in fits:
        fits = {"%Y": fits["%Y"]}
    if open_question := called_part_of_year(distinct, fits, column):
        return open_question
    if any(written and ("%Y" in written or "%G" in written) for written in fits):
        if (differs := _first_difference(list(fits.values()))) is not None:
            return ambiguous(distinct, fits, differs)
        evidence = f"all are {widths[0]} digits that read so"
        return DatesFound(next(iter(fits)), evidence + (f", as they do with {others}" if others else ""))
    if not fits and -_NUMBERED_MOST <= low <= high <= _NUMBERED_MOST:
        return DatesFound("integer", f"all are whole numbers, from {low} to {high}")
    ways = [f"{option('ds_format', name)} reads {distinct[0]} as {shown_day(fits[name][0])}" for name in fits]
    words = ["excel"] if SERIAL_FROM <= low <= high <= SERIAL_TO else []
    words += ["epoch"] if high > 1e8 else []
    words += ["epoch_ms"] if high > 1e11 else []
    words += ["integer"] if _fits(distinct, "integer") else []
    ways += [f"{option('ds_format', name)} reads {WORDS[name]}" for name in words]
    what = f"the dates are whole numbers from {low} to {high}"
    if "excel" in words:
        first, last = (_parsed(pl.Series("text", [str(day)]), "excel", False)[0] for day in (low, high))
        what += f", which as days of a spreadsheet are {shown_day(first)} to {shown_day(last)}"
    told = "; ".join(ways) or "a `ds_format` such as '%Y%m%d'"
    return DatesFound(None, f"{what}: state what they are ({told})", is_known=False, is_ambiguous=True)


def _fitting(distinct: pl.Series, ways: Sequence[str]) -> Iterator[tuple[str, pl.Series]]:
    """Of the ways to write dates in digits those that fit all, and the days."""
    for written in ways:
        parsed = _parsed(distinct, written, False)
        if written == "%m%y" and not distinct.str.starts_with("0").any():
            continue  # 1001 and 1002 are numbers rather than Octobers
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
