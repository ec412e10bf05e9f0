"""What to tell a user whose number was not understood, most often because of a comma."""

from __future__ import annotations

import re

_DECIMAL_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}([. ]\d{3})+),\d+")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")


def number_hint(text: str) -> str:
    """Explain the comma in a text that is not a number; empty where there is nothing to explain.

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
