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
    distinct = ids.unique(maintain_order=True)
    if ordered:
        distinct = distinct.sort()
    numbers = pl.DataFrame({"id": distinct, "code": np.arange(len(distinct), dtype=np.int64)})
    codes = pl.DataFrame({"id": ids}).join(numbers, on="id", how="left", maintain_order="left")["code"]
    return tuple(distinct.to_list()), codes.to_numpy()
