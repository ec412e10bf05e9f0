"""The text of a bad cell in, what its sender may want to do about it out; nothing is guessed silently."""

from __future__ import annotations

import re
from collections.abc import Iterator

_NUMBERS = re.compile(r"\s*(\d{1,4})([./-])(\d{1,2})\2(\d{2}|\d{4})(?:([ T])(\d{1,2}):\d{2}(:\d{2})?)?\s*")
_COMPACT = re.compile(r"\d{8}")
_DECIMAL_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}([. ]\d{3})+),\d+")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")


def date_hint(text: str) -> str:
    """Name the ``ds_format`` that reads a date as it stands, or the two that might.

    Examples
    --------
    >>> date_hint("31.01.2024")
    "; to read it, create the dataset with `ds_format` '%d.%m.%Y'"
    >>> date_hint("01/02/2024")
    "; to read it, create the dataset with `ds_format` '%m/%d/%Y' or '%d/%m/%Y' (which is first?)"
    >>> date_hint("soon")
    ''
    """
    formats = list(_formats(text))
    if not formats:
        return ""
    which = " (which is first?)" if len(formats) > 1 else ""
    return f"; to read it, create the dataset with `ds_format` {' or '.join(map(repr, formats))}{which}"


def number_hint(text: str) -> str:
    """Say what a comma in a number is about.

    Examples
    --------
    >>> number_hint("6,5")
    '; the decimal sign must be a point, not a comma: 6.5'
    >>> number_hint("1,234,567.5")
    '; leave the commas between thousands out: 1234567.5'
    >>> number_hint("many")
    ''
    """
    text = text.strip()
    if re.fullmatch(r"[+-]?\d{1,3},\d{3}", text):
        return "; the decimal sign must be a point, and nothing may stand between thousands"
    if _DECIMAL_COMMA.fullmatch(text):
        point = re.sub(r"[. ]", "", text).replace(",", ".")
        return f"; the decimal sign must be a point, not a comma: {point}"
    if _THOUSANDS.fullmatch(text):
        return f"; leave the commas between thousands out: {text.replace(',', '')}"
    return ""


def _formats(text: str) -> Iterator[str]:
    if _COMPACT.fullmatch(text):
        if _is_day(text[6:], text[4:6]):
            yield "%Y%m%d"
        return
    match = _NUMBERS.fullmatch(text)
    if match is None:
        return
    first, sign, second, last, gap, hour, seconds = match.groups()
    time = f"{gap}%H:%M{':%S' if seconds else ''}" if hour else ""
    if len(first) == 4:
        if len(last) == 2 and sign != "-" and _is_day(last, second):
            yield f"%Y{sign}%m{sign}%d{time}"
        return
    year = "%Y" if len(last) == 4 else "%y"
    orders = ("%d", "%m") if sign == "." else ("%m", "%d")
    for one, other in (orders, orders[::-1]):
        day, month = (first, second) if one == "%d" else (second, first)
        if _is_day(day, month):
            yield f"{one}{sign}{other}{sign}{year}{time}"
            if sign == ".":  # nobody writes the month first with dots
                return


def _is_day(day: str, month: str) -> bool:
    return 1 <= int(day) <= 31 and 1 <= int(month) <= 12
