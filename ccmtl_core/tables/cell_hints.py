"""Say what to do about a cell that is no number, no date or a damaged id as it stands; nothing is guessed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime

import polars as pl

from ccmtl_core.base.display import counted, option
from ccmtl_core.tables.dates.timestamps import FIRST_YEAR

_DECIMAL_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}([. ]\d{3})+),\d+")
_THOUSANDS = re.compile(r"[+-]?(\d{1,3}(,\d{3})+|\d{1,2}(,\d{2})+,\d{3})(\.\d+)?")
_DATE = re.compile(
    r"([0-9]{1,4})([./-])([0-9]{1,2})\2([0-9]{4}|[0-9]{2})(?:([ T])[0-9]{1,2}:[0-9]{2}(:[0-9]{2})?)?"
)
_COMPACT_DATE = re.compile(r"[0-9]{8}")
_NO_VALUE = {"na", "n/a", "#n/a", "<na>", "nan", "nat", "null", "none", "-", "--", "–", "—", "?", "#value!",
             "#div/0!", "#ref!", "#name?"}  # fmt: skip
_YES_OR_NO = re.compile(
    "(?i)yes|no|y|n|j|on|off|ja|nein|nee|nej|oui|non|s[ií]|sì|sim|n[aã]o|tak|nie|ano|ne|da|nu|igen|nem|kyllä|"
    "ei|evet|hayır|да|нет|так|ні|ναι|όχι|是|否|はい|いいえ|예|아니요|wahr|falsch|vrai|faux|vero|falso|waar|"
    "onwaar|verdadero|verdadeiro"
)
_UNIT = r"([^\W\d_]{1,4}|[$€£¥₹₩₽₺฿%])"
_BESIDE_NUMBER = re.compile(rf"\(?[+-]?(?:{_UNIT}\s?[+-]?[0-9][0-9.,' ]*|[0-9][0-9.,'\s]*?{_UNIT})\)?")
_MONTH = (
    "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec|Mrz|Mai|Okt|Dez|"
    "janv|févr|mars|avr|juin|juil|août|sept|déc)"
)
_FRACTION = r"^[0-9]+\.0$"
_DAMAGED = (
    (r"^[0-9](?:\.[0-9]+)?[eE]\+[0-9]+$",
     "as a spreadsheet shows long numbers",
     "digits are lost, and different ids may have become one. Export the column as text"),
    (rf"^(?:[0-9]{{1,2}}(?:-|\. ){_MONTH}|{_MONTH}-[0-9]{{2}}|[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}} 00:00:00)$",
     "as the dates that a spreadsheet makes of ids such as 10-3",
     "the ids are lost, and different ones may have become one. Export the column as text"),
    (_FRACTION,
     "as whole numbers that became fractions",
     "the same ids without '.0' are other series. Write them as text"),
    ('^="',
     "as formulas by which a spreadsheet keeps digits",
     "the same ids without '=' and quotes are other series. Write them as text"),
    (rf"(?i)^\s*(?:{'|'.join(map(re.escape, sorted(_NO_VALUE)))})\s*$",
     "as a program writes an id that is missing",
     "rows of different products may have become one series. Write their ids, or take the rows out"),
)  # fmt: skip
"""Patterns of ids that programs damaged, how these look, and what that means."""


def number_hint(text: str) -> str:
    """Say what a comma, a space or a word where a number belongs is about.

    Examples
    --------
    >>> number_hint("6,5")
    "; the decimal sign must be a point, not a comma: 6.5; or state `decimal=','`"
    >>> number_hint("1,234,567.5")
    "; leave the commas between thousands out: 1234567.5; or state `thousands=','`"
    >>> number_hint(" 1.5")
    '; leave out the spaces around it'
    >>> number_hint("$1,004.50")
    "; if '$' is a currency or a unit, state `currency='$'`"
    >>> number_hint("n/a")
    "; if it says that there is no value, state `empty='n/a'`"
    >>> number_hint("Nein")
    '; if the column says yes or no, write 1 and 0'
    >>> number_hint("many")
    ''
    """
    bare = text.strip()
    if bare.startswith("="):
        return "; it is a formula without its value: open the file in a spreadsheet program, and save it"
    if bare.casefold() in _NO_VALUE:
        return f"; if it says that there is no value, state {option('empty', bare)}"
    if _YES_OR_NO.fullmatch(bare):
        return "; if the column says yes or no, write 1 and 0"
    if beside := _BESIDE_NUMBER.fullmatch(bare):
        sign = beside[1] or beside[2]
        if sign in "eE":
            return ""
        return f"; if {sign!r} is a currency or a unit, state {option('currency', sign)}"
    if re.fullmatch(r"[+-]?\d{1,3},\d{3}", bare):
        return (
            "; the decimal sign must be a point, and nothing may stand between thousands; or state "
            "`decimal=','`, or `decimal='.'` if the comma is one between thousands"
        )
    if _DECIMAL_COMMA.fullmatch(bare):
        point = re.sub(r"[. ]", "", bare).replace(",", ".")
        return f"; the decimal sign must be a point, not a comma: {point}; or state `decimal=','`"
    if _THOUSANDS.fullmatch(bare):
        return f"; leave the commas between thousands out: {bare.replace(',', '')}; or state `thousands=','`"
    return _space_hint(text)


def says_no_value(text: str) -> bool:
    """Return whether a cell has a word for no value, such as NA."""
    return text.strip().casefold() in _NO_VALUE


def _space_hint(text: str) -> str:
    return "; leave out the spaces around it" if text.strip() and text != text.strip() else ""


def date_hint(text: str) -> str:
    """Name the ``ds_format`` that reads a date as it stands, or the two that might.

    Examples
    --------
    >>> date_hint("31.01.2024")
    "; to read it, state `ds_format='%d.%m.%Y'`"
    >>> date_hint("01/02/2024")
    "; to read it, state `ds_format='%m/%d/%Y'` or `ds_format='%d/%m/%Y'` (which is first?)"
    >>> date_hint("51/2024")
    '; if it is a date, state the `ds_format` that reads it'
    """
    formats = []
    for ds_format in _candidates(text):
        with suppress(ValueError):  # there is no such day
            if datetime.strptime(text, ds_format).year >= FIRST_YEAR:
                formats.append(ds_format)
    if not formats:
        return _space_hint(text) or "; if it is a date, state the `ds_format` that reads it"
    which = " or ".join(option("ds_format", one) for one in formats) + (
        " (which is first?)" if len(formats) > 1 else ""
    )
    return f"; to read it, state {which}"


def _candidates(text: str) -> list[str]:
    if _COMPACT_DATE.fullmatch(text):
        return ["%Y%m%d"]
    match = _DATE.fullmatch(text)
    if match is None:
        return []
    first, sign, _, last, gap, seconds = match.groups()
    time = "" if gap is None else f"{gap}%H:%M{':%S' if seconds else ''}"
    if len(first) == 4:
        return [] if sign == "-" else [f"%Y{sign}%m{sign}%d{time}"]
    year = "%Y" if len(last) == 4 else "%y"
    day_first, month_first = (f"{a}{sign}{b}{sign}{year}{time}" for a, b in (("%d", "%m"), ("%m", "%d")))
    # Nobody writes the month first with dots.
    return [day_first] if sign == "." else [month_first, day_first]


def spreadsheet_ids(ids: Iterable[str]) -> list[str]:
    """Return the ids that a spreadsheet or another program damaged, or wrote where there was none.

    Whole numbers with the fraction 0 are damaged where all ids are such numbers.

    Examples
    --------
    >>> spreadsheet_ids(["4006381333931", "4.00638E+12", "10-Mar", "NULL", "7.0"])
    ['4.00638E+12', '10-Mar', 'NULL']
    >>> spreadsheet_ids(["101.0", "102.0"])
    ['101.0', '102.0']
    """
    texts = pl.Series(ids, dtype=pl.String)
    if texts.str.contains(_FRACTION).all():
        return texts.to_list()
    patterns = "|".join(f"(?:{pattern})" for pattern, _, _ in _DAMAGED if pattern != _FRACTION)
    return texts.filter(texts.str.contains(patterns)).to_list()


def spreadsheet_warning(ids: Sequence[str]) -> str:
    """Say what is lost with the ids that :func:`spreadsheet_ids` found, one or more."""
    texts, told = pl.Series(ids, dtype=pl.String), []
    for pattern, look, meaning in _DAMAGED:
        of_kind = texts.filter(texts.str.contains(pattern)).to_list()
        if of_kind:
            verb, examples = "looks" if len(of_kind) == 1 else "look", ", ".join(map(repr, of_kind[:3]))
            told.append(f"{counted(len(of_kind), 'id')} {verb} {look} ({examples}): {meaning}.")
    return " ".join(told)
