"""The one-line ``repr`` of values in a notebook, and how messages quote and count things and name options."""

from __future__ import annotations

import ast
import re
import reprlib
from collections.abc import Callable, Sequence
from typing import Any

_MOST_NAMES, _LONGEST_NAME, _LONGEST_QUOTED = 5, 30, 100
_OPTION = re.compile(r"""`([a-z]+(?:_[a-z]+)*)(?:=('[^'`]*'|"[^"`]*"|\[[^`]*\]|[0-9]+))?`""")
"""An option in a message, as :func:`option` writes it."""


def shown(thing: object, *parts: str) -> str:
    """Return the name of its class with the parts in brackets.

    Examples
    --------
    >>> shown(ValueError(), "2 tasks", "", "5 rows")
    'ValueError(2 tasks, 5 rows)'
    """
    return f"{type(thing).__name__}({', '.join(filter(None, parts))})"


def counted(number: int, noun: str) -> str:
    """Return the number with its noun.

    Examples
    --------
    >>> counted(1, "task"), counted(23812, "task")
    ('1 task', '23,812 tasks')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def named(names: Sequence[str], noun: str) -> str:
    """Return how many names there are, and the first of them.

    Examples
    --------
    >>> named(("price", "promotion"), "feature")
    '2 features [price, promotion]'
    >>> named(tuple("abcdefg"), "feature")
    '7 features [a, b, c, d, e, …]'
    """
    first = [f"{name[: _LONGEST_NAME - 1]}…" if len(name) > _LONGEST_NAME else name for name in names]
    listed = ", ".join([*first[:_MOST_NAMES], *(["…"] if len(names) > _MOST_NAMES else [])])
    return f"{counted(len(names), noun)} [{listed}]"


def quoted(value: object) -> str:
    """Return what stands for a value in an error: as Python writes it, its middle left out where it is long.

    Examples
    --------
    >>> quoted("0471"), len(quoted("0" * 10_000))
    ("'0471'", 100)
    """
    short = reprlib.Repr()
    short.maxstring = short.maxother = short.maxlong = _LONGEST_QUOTED
    return short.repr(value)


def option(name: str, value: str | int | Sequence[str] | None = None) -> str:
    """Return what names an option of the library in a message, with the value that it should have.

    Examples
    --------
    >>> option("ds_format", "%d/%m/%Y")
    "`ds_format='%d/%m/%Y'`"
    """
    return f"`{name}`" if value is None else f"`{name}={value!r}`"


def with_options(text: str, words: Callable[[str, Any], str | None]) -> str:
    """Return the message with its options as another place calls them, such as a command or HTTP.

    Parameters
    ----------
    text : str
        In which options stand as :func:`option` writes them.
    words : callable
        Takes the name and the value, None where there is none; returns what stands for them, or None for an
        option that it does not know, which is left as it is.

    Returns
    -------
    str

    Examples
    --------
    >>> with_options("choose `fill='zero'`", lambda name, value: f"--{name} {value}")
    'choose --fill zero'
    """

    def called(match: re.Match[str]) -> str:
        value = None if match[2] is None else ast.literal_eval(match[2])
        return words(match[1], value) or match[0]

    return _OPTION.sub(called, text)


def spread(numbers: Sequence[float]) -> str:
    """Return least and most, or one number if they are equal.

    Examples
    --------
    >>> spread([12, 10, 14]), spread([3, 3])
    ('10 to 14', '3')
    """
    least, most = min(numbers), max(numbers)
    return f"{least:.4g}" if least == most else f"{least:.4g} to {most:.4g}"
