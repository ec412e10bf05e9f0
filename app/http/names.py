"""What names and other texts of requests must look like, and what an unknown name may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
NAME = rf"^{_NAME}$"
NO_NUL = r"^[^\x00]*$"  # PostgreSQL's text cannot hold it
AFTER = "after-"
PARQUET = "application/vnd.apache.parquet"
ARROW_STREAM = "application/vnd.apache.arrow.stream"
NAME_CURSOR = rf"^{AFTER}{_NAME}$"
KEY_CURSOR = "^[0-9a-f]{12}$"

IN_WORDS = {
    NAME: "must be 1 to 100 characters, each one of A to Z, a to z, 0 to 9, dot, dash and underscore; "
    "the first must be a letter or a digit",
    NO_NUL: "must not contain the character NUL",
    **dict.fromkeys((NAME_CURSOR, KEY_CURSOR), "must be `next_cursor` of the page before, unchanged"),
}
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
