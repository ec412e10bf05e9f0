"""Add forecasts of products up to totals of groups, or of all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from ccmtl_core.base.arrays import checked_names
from ccmtl_core.base.display import quoted
from ccmtl_core.base.exceptions import DataError
from ccmtl_core.data.frames import as_polars


def total_forecasts(forecasts: Any, attributes: Any | None = None, by: Sequence[str] = ()) -> pl.DataFrame:
    """Add up forecasts of products, so that totals fit their parts.

    A total has no range: the ends of the products' ranges do not add up to those of a range of their sum, as
    not all products are at the same end at once.

    Parameters
    ----------
    forecasts : DataFrame of polars or pandas, or an Arrow table
        ``unique_id``, ``ds`` and ``yhat``, as :meth:`ForecastModel.forecast` returns them.
    attributes : such a table, optional
        ``unique_id`` and columns of text; needed for ``by``.
    by : sequence of str
        Attributes whose groups are added up, each combination on its own; by default all products are.

    Returns
    -------
    DataFrame
        The attributes, ``ds``, ``yhat`` and ``n_products``, the forecasts that were added; in the order of
        the attributes and dates. Products of unknown attributes are a group, of null.

    Raises
    ------
    ParameterError, DataError
        No such table; an attribute that it does not have.

    Examples
    --------
    >>> found = pl.DataFrame({"unique_id": ["a", "b", "c"], "ds": [1, 1, 1], "yhat": [1.0, 2.0, 4.0]})
    >>> kinds = pl.DataFrame({"unique_id": ["a", "b", "c"], "kind": ["tea", "tea", "jam"]})
    >>> total_forecasts(found, kinds, ["kind"]).rows()
    [('jam', 1, 4.0, 1), ('tea', 1, 3.0, 2)]
    >>> total_forecasts(found).rows()
    [(1, 7.0, 3)]
    """
    names = checked_names(by, "attribute")
    table = None if attributes is None else as_polars(attributes, "attributes")
    there = [] if table is None else [name for name in table.columns if name != "unique_id"]
    if unknown := [name for name in names if name not in there]:
        found = f"there are {', '.join(map(quoted, there))}" if there else "there are none"
        raise DataError(f"there is no attribute {quoted(unknown[0])} to add up by; {found}")
    parts = as_polars(forecasts, "forecasts").select("unique_id", "ds", "yhat")
    if table is not None:
        parts = parts.join(table.select("unique_id", *names), on="unique_id", how="left")
    summed = parts.group_by(*names, "ds").agg(
        pl.col("yhat").sum(), pl.len().cast(pl.Int64).alias("n_products")
    )
    return summed.sort(*names, "ds")
