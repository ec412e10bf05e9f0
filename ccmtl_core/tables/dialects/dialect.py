"""What a caller states of a file, and what is known of it once it was opened: stated, or guessed and why."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, fields
from typing import Any, Literal

from ccmtl_core.base.exceptions import ParameterError

SHAPES = ("auto", "long", "wide")
RAGGED = ("refuse", "pad", "skip")
DECIMALS = (".", ",")
THOUSANDS = ("none", ",", ".", " ", "'")


@dataclass(frozen=True)
class ReadOptions:
    """What is stated of a file; None is guessed from its content, and `Dialect` tells what was.

    Examples
    --------
    >>> ReadOptions(delimiter=";", decimal=",").decimal
    ','
    """

    delimiter: str | None = None
    """One character between fields; "tab" is the tabulator."""
    encoding: str | None = None
    """Any name that Python knows, such as "windows-1252" or "gb18030"."""
    decimal: str | None = None
    """The decimal sign of numbers: "." or ","."""
    thousands: str | None = None
    """What stands between thousands: ",", ".", " " (any kind of space), "'" or "none"."""
    quote: str | None = None
    """One character around fields that hold a delimiter; by default the double quote."""
    header_row: int | None = None
    """The line that names the columns, from 1; 0: none does, and columns are called column_1, column_2, …."""
    comment: str | None = None
    """Lines that begin with this are no rows."""
    currency: str | None = None
    """A sign or word before or after numbers that is taken off, such as "€"."""
    empty: str | None = None
    """What stands for no value in a column of numbers, such as "NA"; an empty cell always does."""
    ragged: str | None = None
    """What becomes of rows with another number of fields than the header: "refuse" (the default), "pad" those
    with too few with empty cells, or "skip" all of them, and blank lines: totals and footers."""
    sheet: str | None = None
    """The sheet of a workbook, by its name."""
    member: str | None = None
    """The file in an archive, by its path; in an archive inside it, "inner.zip/sales.csv"."""
    shape: str | None = None
    """"long" (a row holds one value), "wide" (many), or "auto"."""
    periods: str | None = None
    """Of a wide table, the columns that hold periods, as a pattern of their names: "W*"."""
    year: int | None = None
    """Of dates without one: the year, or that of the first column of a wide table."""

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        for field in fields(self):
            value = getattr(self, field.name)
            wanted = int if field.name in ("header_row", "year") else str
            if value is not None and (not isinstance(value, wanted) or isinstance(value, bool)):
                raise ParameterError(f"`{field.name}` must be {wanted.__name__}, not {value!r}")
        if self.delimiter in ("tab", "\\t"):
            object.__setattr__(self, "delimiter", "\t")
        for name in ("delimiter", "quote"):
            mark = getattr(self, name)
            if mark is not None and (len(mark) != 1 or not mark.isascii() or mark in "\r\n\0"):
                raise ParameterError(f'`{name}` must be one ASCII character or "tab", not {mark!r}')
        if self.delimiter is not None and self.delimiter == self.quote:
            raise ParameterError(f"`delimiter` and `quote` are both {self.quote!r}")
        _one_of("decimal", self.decimal, DECIMALS)
        _one_of("thousands", self.thousands, THOUSANDS)
        _one_of("ragged", self.ragged, RAGGED)
        _one_of("shape", self.shape, SHAPES)
        if self.decimal is not None and self.decimal == self.thousands:
            raise ParameterError(f"`decimal` and `thousands` are both {self.decimal!r}")
        if self.header_row is not None and self.header_row < 0:
            raise ParameterError(f"`header_row` counts lines from 1, or is 0 for none; not {self.header_row}")
        if self.year is not None and not 1000 <= self.year <= 9999:
            raise ParameterError(f"`year` must have four digits, not {self.year}")
        for name in ("comment", "currency", "empty"):
            if getattr(self, name) == "":
                raise ParameterError(f"`{name}` must not be empty")
        if self.currency is not None and re.fullmatch(r"[eE0-9+.,'()\s-]+", self.currency):
            raise ParameterError(f"`currency` must be no part of a number, and {self.currency!r} may be one")
        if self.encoding is not None:
            try:
                is_text = codecs.lookup(self.encoding)._is_text_encoding
            except (LookupError, ValueError):
                is_text = False
            if not is_text:
                raise ParameterError(
                    f"there is no encoding {self.encoding!r}; some are utf-8, utf-16, windows-1252, "
                    "windows-1250, windows-1251, gb18030, big5, shift_jis and euc_kr"
                )


def _one_of(name: str, value: str | None, known: tuple[str, ...]) -> None:
    if value is not None and value not in known:
        raise ParameterError(f"`{name}` must be {', '.join(map(repr, known))}; not {value!r}")


NOTHING_STATED = ReadOptions()


@dataclass(frozen=True)
class Trait:
    """One thing that is known of a file."""

    name: str
    value: str | int
    origin: Literal["stated", "guessed"]
    evidence: str
    """What in the file says so, or that it was stated."""

    def __str__(self) -> str:
        how = "stated" if self.origin == "stated" else f"guessed: {self.evidence}"
        return f"{self.name.replace('_', ' ')} {self.value!r} ({how})"


@dataclass(frozen=True)
class Dialect:
    """How a file is written.

    Parameters
    ----------
    traits : tuple of Trait
        In the order in which they were found. Names are ``format``, ``compression``, ``member``, ``sheet``,
        ``encoding``, ``delimiter``, ``quote``, ``header_row``, ``comment``, ``padding``, ``decimal``,
        ``thousands``, ``shape`` and ``periods``; those that a format does not have are absent.

    Examples
    --------
    >>> dialect = Dialect().guessed("delimiter", ";", "5 of 5 lines have 3 fields")
    >>> print(dialect)
    delimiter ';' (guessed: 5 of 5 lines have 3 fields)
    >>> dialect.get("delimiter")
    ';'
    """

    traits: tuple[Trait, ...] = ()

    def get(self, name: str) -> str | int | None:
        """Return the value of a trait, None where it is absent."""
        return next((trait.value for trait in self.traits if trait.name == name), None)

    def stated(self, name: str, value: str | int) -> Dialect:
        """Return the dialect with a trait that the caller stated."""
        return self._with(Trait(name, value, "stated", "stated"))

    def guessed(self, name: str, value: str | int, evidence: str) -> Dialect:
        """Return the dialect with a trait that the file shows, and how it does."""
        return self._with(Trait(name, value, "guessed", evidence))

    def _with(self, trait: Trait) -> Dialect:
        return Dialect((*(other for other in self.traits if other.name != trait.name), trait))

    def to_dict(self) -> dict[str, Any]:
        """Return the traits for JSON, by their names."""
        return {
            trait.name: {"value": trait.value, "origin": trait.origin, "evidence": trait.evidence}
            for trait in self.traits
        }

    def __str__(self) -> str:
        return "\n".join(map(str, self.traits))


NOTHING_KNOWN = Dialect()
