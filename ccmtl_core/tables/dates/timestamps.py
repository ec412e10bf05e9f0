"""Read the text of times strictly: by default ISO 8601, else one strptime pattern.

Of times with a zone or an offset, hours are converted to UTC; days, weeks and months are those that the local
clock shows. A time without a zone is taken as it stands; a column holds one kind or the other.

A regular expression guards each pattern, because the parser of polars also takes spaces, signs and two-digit
years where none were asked for, and moves a leap second (``:60``) to the next minute, and so to another day.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

import polars as pl

from ccmtl_core.base.exceptions import ParameterError
from ccmtl_core.tables.dates.months import in_english
from ccmtl_core.tables.dates.notations import WORDS, Notation, notation

FIRST_YEAR, LAST_YEAR = 1000, 9999
"""Of the dates that are read."""
ISO_8601 = "YYYY-MM-DD (ISO 8601; a time may follow, as in 2024-01-31T23:59:00)"

_YEAR, _TWO = "[1-9][0-9]{3}", "[0-9]{2}"
_ISO_DAY = f"{_YEAR}-{_TWO}-{_TWO}"
_ISO_MINUTE = f"{_TWO}:{_TWO}"
_ISO_SECOND = rf"{_ISO_MINUTE}:[0-5][0-9](?:\.[0-9]{{1,9}})?"
_ISO_ZONE = "(Z|[+-][0-9]{2}(?::?[0-9]{2})?)"  # the only group of a guard

_WIDTH = {"Y": "4", "y": "2", "j": "1,3", **dict.fromkeys("mdHIMS", "1,2")}
_WORDS = {
    "b": "[A-Za-z]{3}",
    "B": "[A-Za-z]{3,9}",
    "a": "[A-Za-z]{3}",
    "A": "[A-Za-z]{6,9}",
    "p": "[AaPp][Mm]",
    "z": "([+-][0-9]{2}:?[0-9]{2}|UTC)",
    "f": "[0-9]{1,9}",
}
_KNOWN = [*_WIDTH, *_WORDS]


@dataclass(frozen=True)
class _Pattern:
    guard: str
    strptime: str
    has_zone: bool
    has_day: bool = True
    is_foreign: bool = False
    """Whether it reads the names of months in other languages than English, and these alone."""

    def parse(self, text: pl.Expr, *, in_utc: bool) -> pl.Expr:
        text = in_english(text) if self.is_foreign else text
        guarded: pl.Expr = pl.when(text.str.contains(f"^(?:{self.guard})$")).then(text)
        pattern = self.strptime
        if self.has_zone:
            guarded = guarded.str.replace("UTC$", "+0000")
        whole: pl.Expr = guarded
        if not self.has_day:
            whole, pattern = guarded + " 01", f"{pattern} %d"
        moment = whole.str.strptime(pl.Datetime("us"), pattern, strict=False)
        if not self.has_zone:
            return moment
        moment = moment.dt.replace_time_zone(None)
        return moment if in_utc else moment + self._ahead_of_utc(guarded)

    def _ahead_of_utc(self, text: pl.Expr) -> pl.Expr:
        noon = pl.lit("2000-01-01T12:00") + text.str.extract(f"^(?:{self.guard})$", 1)
        in_utc = noon.str.strptime(pl.Datetime("us"), "%Y-%m-%dT%H:%M%#z", strict=False)
        return pl.lit(datetime(2000, 1, 1, 12)) - in_utc.dt.replace_time_zone(None)


@dataclass(frozen=True)
class TimeFormat:
    """How the text of a ``ds`` column is read; build with :func:`time_format`."""

    name: str
    patterns: tuple[_Pattern | Notation, ...]
    in_utc: bool = True

    def parse(self, text: pl.Expr) -> pl.Expr:
        """Return the times as ``Datetime("us")``, in UTC or local; null where no pattern fits."""
        return pl.coalesce([pattern.parse(text, in_utc=self.in_utc) for pattern in self.patterns])

    @property
    def guard(self) -> str:
        """A regular expression that fits each text with a time, and few others."""
        return "|".join(f"(?:{pattern.guard})" for pattern in self.patterns)

    def has_zone(self, text: pl.Expr) -> pl.Expr:
        """Return whether each text names a zone."""
        guards = (f"^(?:{pattern.guard})$" for pattern in self.patterns if pattern.has_zone)
        return pl.any_horizontal(pl.lit(False), *map(text.str.contains, guards))


_ISO = TimeFormat(
    ISO_8601,
    (
        _Pattern(_ISO_DAY, "%Y-%m-%d", False),
        *(
            _Pattern(f"{_ISO_DAY}{gap}{time}{zone}", f"%Y-%m-%d{gap}{directives}{offset}", bool(zone))
            for zone, offset in (("", ""), (_ISO_ZONE, "%#z"))
            for time, directives in ((_ISO_MINUTE, "%H:%M"), (_ISO_SECOND, "%H:%M:%S%.f"))
            for gap in "T "
        ),
    ),
)


def time_format(ds_format: str | None, *, in_utc: bool = True) -> TimeFormat:
    """Return the format of a strptime pattern or another notation; without one, ISO 8601.

    Times with a zone are converted to UTC, or else are what the local clock shows. A pattern with a directive
    that is not read here, or that does not name one moment, is a ParameterError.
    """
    if ds_format is None:
        return replace(_ISO, in_utc=in_utc)
    if (other := notation(ds_format)) is not None:
        return TimeFormat(ds_format, (other,), in_utc)
    named = re.findall(r"%(.?)", ds_format, flags=re.DOTALL)
    unknown = [f"%{letter}" for letter in named if letter not in _KNOWN]
    if unknown:
        known = ", ".join(f"%{letter}" for letter in _KNOWN)
        raise ParameterError(
            f"{', '.join(unknown)} cannot be used in `ds_format`; there are {known}; "
            "%G or %g with %V, %Y or %y with %q, %Y alone; "
            f"{', '.join(WORDS)}"
        )
    rules = [*_rules(named), ("f" not in named or ".%f" in ds_format, "a point before %f")]
    for is_met, rule in rules:
        if not is_met:
            raise ParameterError(f"`ds_format` needs {rule}")
    has_day = "d" in named or "j" in named
    strptime = ds_format.replace(".%f", "%.f")  # as polars writes it
    pattern = _Pattern(_guard(ds_format), strptime, "z" in named, has_day)
    has_words = not {"b", "B"}.isdisjoint(named)
    return TimeFormat(ds_format, (pattern, replace(pattern, is_foreign=True))[: 1 + has_words], in_utc)


def _rules(named: list[str]) -> Iterator[tuple[bool, str]]:
    def count(letters: str) -> int:
        return sum(letter in letters for letter in named)

    yield len(set(named)) == len(named), "each directive once"
    yield count("Yy") == 1, "one year: %Y or %y"
    yield count("mbBj") == 1, "one month (%m, %b or %B) or the day of the year (%j)"
    yield count("dj") <= 1, "at most one day: %d or %j"
    yield count("HI") == count("M") <= 1, "the hour and the minute, or neither"
    yield count("M") <= count("dj"), "a day beside the hour"
    yield count("I") == count("p"), "%p beside %I, and only there"
    yield count("f") == 0 or count("S") == 1, "%S beside %f"
    yield count("Sz") == 0 or count("M") == 1, "hour and minute beside %S and %z"


def _guard(ds_format: str) -> str:
    tokens = re.findall(r"%.|[^%]+", ds_format, flags=re.DOTALL)
    is_number = [False, *(token[0] == "%" and token[1] in _WIDTH for token in tokens), False]
    guard = ""
    for i, token in enumerate(tokens, start=1):
        if is_number[i]:
            # Next to another number the width must be full: 2000111 is two different days.
            touches = is_number[i - 1] or is_number[i + 1]
            guard += _number(token[1], touches)
        else:
            guard += _WORDS[token[1]] if token[0] == "%" else re.escape(token)
    return guard


def _number(letter: str, is_full: bool) -> str:
    if letter == "Y":
        return _YEAR
    if letter == "S":
        return "[0-5][0-9]" if is_full else "[0-5]?[0-9]"
    return f"[0-9]{{{_WIDTH[letter][-1] if is_full else _WIDTH[letter]}}}"
