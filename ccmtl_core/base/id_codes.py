"""Number the distinct ids of a column of text."""

from __future__ import annotations

import numpy as np
import polars as pl

from ccmtl_core.base.types import IntArray


def id_codes(ids: pl.Series, *, ordered: bool) -> tuple[tuple[str, ...], IntArray]:
    """Return the T distinct ids of a column without missing values, and the number of each row's, (n,) int64.

    They are numbered in the order of their text, or else of their first appearance.

    Examples
    --------
    >>> id_codes(pl.Series(["b", "a", "b"]), ordered=True)
    (('a', 'b'), array([1, 0, 1]))
    """
    distinct, codes = codes_of(ids, ordered=ordered)
    return tuple(distinct.to_list()), codes


def codes_of(column: pl.Series, *, ordered: bool = False) -> tuple[pl.Series, IntArray]:
    """Return the D distinct values of a column without missing ones, and the number of each row's.

    They are numbered as they appear, or in their order.

    Returns
    -------
    distinct : (D,) polars Series
    codes : (n,) int64

    Examples
    --------
    >>> distinct, codes = codes_of(pl.Series([7, 3, 7]))
    >>> distinct.to_list(), codes
    ([7, 3], array([0, 1, 0]))
    """
    distinct = column.unique(maintain_order=True)
    if ordered:
        distinct = distinct.sort()
    numbers = pl.DataFrame({"value": distinct, "code": np.arange(len(distinct), dtype=np.int64)})
    rows = pl.DataFrame({"value": column})
    codes = rows.join(numbers, on="value", how="left", maintain_order="left")["code"]
    return distinct, codes.to_numpy()
