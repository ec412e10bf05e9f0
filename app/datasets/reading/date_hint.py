"""Suggest the formats that would read a date that was not understood."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime

from app.datasets.reading.timestamps import FIRST_YEAR

_NUMBERS = re.compile(
    r"([0-9]{1,4})([./-])([0-9]{1,2})\2([0-9]{4}|[0-9]{2})(?:([ T])[0-9]{1,2}:[0-9]{2}(:[0-9]{2})?)?"
)
_COMPACT = re.compile(r"[0-9]{8}")


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


def _formats(text: str) -> Iterator[str]:
    for ds_format in _candidates(text):
        with suppress(ValueError):  # there is no such day
            if datetime.strptime(text, ds_format).year >= FIRST_YEAR:
                yield ds_format


def _candidates(text: str) -> list[str]:
    if _COMPACT.fullmatch(text):
        return ["%Y%m%d"]
    match = _NUMBERS.fullmatch(text)
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
