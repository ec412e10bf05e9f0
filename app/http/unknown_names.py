"""Say what an unknown name was probably meant to be."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_LONGEST = 500  # characters that are compared; no known name is nearly as long


def hint(name: str, known: Iterable[str], prefix: str = "") -> str:
    """Return the nearest of ``known``, or all of them where none is near; each is shown with ``prefix``.

    Examples
    --------
    >>> hint("fill_metod", ["fill_method", "lags"])
    "did you mean 'fill_method'?"
    >>> hint("x", ["fill_method", "lags"])
    'there are: fill_method, lags'
    """
    names = list(known)
    near = difflib.get_close_matches(name[:_LONGEST], names, n=1)
    if near:
        return f"did you mean {prefix + near[0]!r}?"
    return f"there are: {', '.join(prefix + name for name in names) or 'none'}"
