"""Checks that an argument is of the kind it should be, with an error that names the argument."""

from __future__ import annotations

from typing import Any

from ccmtl_core.base.arrays import is_whole
from ccmtl_core.base.exceptions import ParameterError


def check_kind(value: object, what: str, *kinds: type, hint: str = "") -> None:
    """Raise a ParameterError unless the value is of one of these kinds; the hint says how to make one.

    Examples
    --------
    >>> check_kind(5, "graph", list, tuple)
    Traceback (most recent call last):
        ...
    ccmtl_core.base.exceptions.ParameterError: graph must be list or tuple, not int
    """
    if not isinstance(value, kinds):
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise ParameterError(f"{what} must be {wanted}, not {type(value).__name__}{hint and ': '}{hint}")


def check_integer(value: Any, what: str, least: int | None = None, most: int | None = None) -> None:
    """Raise a ParameterError unless the value is an integer in this range."""
    if not is_whole(value):
        raise ParameterError(f"{what} must be an integer, not {value!r}")
    if least is not None and value < least:
        raise ParameterError(f"{what} must be at least {least}, not {value}")
    if most is not None and value > most:
        raise ParameterError(f"{what} must be at most {most}, not {value}")


def check_callback(value: object, what: str) -> None:
    """Raise a ParameterError unless the value is a function, or None for no callback."""
    if value is not None and not callable(value):
        raise ParameterError(f"{what} must be a function, not {value!r}")
