"""See whether one of several files that are read together has day, month and year in another order."""

from __future__ import annotations

import re

import polars as pl

from ccmtl_core.base.display import option, quoted
from ccmtl_core.tables.dates.timestamps import time_format
from ccmtl_core.tables.faults import Parts

_NUMBERS = re.compile(r"(%[dmyY])([/.-])(%[dmyY])\2(%[dmyY])")
_ORDERS = ("dmY", "mdY", "Ymd", "dmy", "mdy", "ymd")
_MUCH_FARTHER = 2
"""A file is asked about where the other order brings its dates so many times as near together."""


def other_order(texts: pl.DataFrame, parts: Parts, written: str | None, *, in_utc: bool) -> str | None:
    """Return what is told where dates of one file are of another order than all files together show.

    Parameters
    ----------
    texts : DataFrame
        ``text`` and ``file``, the place of its file in ``parts``; each pair once.
    parts : Parts
        The files.
    written : str or None
        How all dates together are written.
    in_utc : bool
        Whether times with a zone are converted to UTC.

    Returns
    -------
    str or None
        None where each file fits; so does one whose dates may be of either order and lie no nearer together
        in the other one.

    Examples
    --------
    >>> texts = pl.DataFrame({"text": ["31/01/2024", "02/01/2024", "02/02/2024"], "file": [0, 1, 1]})
    >>> files = (("jan.csv", 1), ("feb.csv", 2))
    >>> print(other_order(texts, files, "%d/%m/%Y", in_utc=False))
    '02/01/2024' of feb.csv is 2024-01-02 by the dates of the other files (`ds_format='%d/%m/%Y'`), and by \
those of its own 2024-02-01 (`ds_format='%m/%d/%Y'`): state `ds_format` if all files are written in one \
way, or read each one alone
    """
    match = _NUMBERS.match(written or "")
    if match is None or written is None:
        return None
    first, sign, *rest = match.groups()
    own = "".join(letter[1] for letter in (first, *rest))
    of_time = written[match.end() :]
    for order in _ORDERS:
        if order == own or sorted(order) != sorted(own) or (sign == "." and order[0] == "m"):
            continue
        other = sign.join(f"%{letter}" for letter in order) + of_time
        read = {
            "own": time_format(written, in_utc=in_utc).parse(pl.col("text")),
            "other": time_format(other, in_utc=in_utc).parse(pl.col("text")),
        }
        odd = _odd_files(texts.with_columns(**read))
        if odd.height:
            text, file, as_own, as_other = odd.row(0)
            name = parts[file][0]
            shown = "no date" if as_own is None else f"{as_own:%Y-%m-%d}"
            return (
                f"{quoted(text)} of {name} is {shown} by the dates of the other files "
                f"({option('ds_format', written)}), and by those of its own {as_other:%Y-%m-%d} "
                f"({option('ds_format', other)}): state `ds_format` if all files are written in one way, or "
                "read each one alone"
            )
    return None


def _odd_files(texts: pl.DataFrame) -> pl.DataFrame:
    """Of each file whose dates the other order reads better, the first that differs."""
    span = {name: pl.col(name).max() - pl.col(name).min() for name in ("own", "other")}
    is_farther = span["own"] > _MUCH_FARTHER * span["other"]
    n_own, n_other = pl.col("own").null_count(), pl.col("other").null_count()
    is_odd = (n_other < n_own) | ((n_other == n_own) & is_farther)
    odd = texts.filter(is_odd.over("file"), pl.col("other").is_not_null())
    return odd.filter(pl.col("own").ne_missing(pl.col("other"))).select("text", "file", "own", "other")
