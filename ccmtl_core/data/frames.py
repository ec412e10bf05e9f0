"""Tables of polars, pandas or Arrow, taken as tables of polars."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from ccmtl_core.base.arguments import check_kind
from ccmtl_core.base.arrays import column_names, refuse
from ccmtl_core.base.display import quoted
from ccmtl_core.base.exceptions import ParameterError


def as_polars(table: Any, what: str, *, in_utc: bool = False) -> pl.DataFrame:
    """Return a table of polars, pandas or Arrow as one of polars; integers in ``unique_id`` become text.

    pandas is read through NumPy, as Arrow may not be installed beside it.

    Parameters
    ----------
    table : DataFrame of polars or pandas, or an Arrow table
        What is read.
    what : str
        What errors call it.
    in_utc : bool
        Whether times of pandas with a zone are converted to UTC; by default they are what its clock shows.

    Returns
    -------
    polars DataFrame
        Missing values, such as NaT and pandas' NA, are null.

    Raises
    ------
    ParameterError
        No such table.
    DataError
        A table of pandas whose columns have no names, or in which one comes twice.

    Examples
    --------
    >>> as_polars(pl.DataFrame({"unique_id": [7], "y": [1.0]}), "frame").rows()
    [('7', 1.0)]
    """
    if isinstance(table, pl.LazyFrame):
        raise ParameterError(
            f"{what} is a polars LazyFrame, which holds no values yet: give {what}.collect()"
        )
    if isinstance(table, pl.DataFrame):
        frame = table
    elif hasattr(table, "columns") and hasattr(table, "to_numpy"):
        frame = _of_pandas(table, what, in_utc)
    else:
        if not hasattr(table, "__arrow_c_stream__"):
            check_kind(table, what, pl.DataFrame, hint="polars.DataFrame makes one of a dict")
        frame = pl.DataFrame(table)
    if "unique_id" in frame.columns and frame.schema["unique_id"].is_integer():
        return frame.with_columns(pl.col("unique_id").cast(pl.String))
    return frame


def _of_pandas(table: Any, what: str, in_utc: bool) -> pl.DataFrame:
    names = column_names(table)
    unnamed = [label for label in table.columns if not isinstance(label, str)]
    refuse([f"{what}: the column {label!r} has a name that is no text" for label in unnamed[:1]])
    twice = sorted({name for name in names if names.count(name) > 1})
    refuse([f"{what}: there are two columns {quoted(name)}" for name in twice])
    return pl.DataFrame([_column(table[name], in_utc).alias(name) for name in names])


def _column(values: Any, in_utc: bool) -> pl.Series:
    """A column of pandas; null in place of what equals nothing, as NaT and pandas' NA do."""
    if getattr(values.dtype, "tz", None) is not None:
        values = (values.dt.tz_convert("UTC") if in_utc else values).dt.tz_localize(None)
    array = np.asarray(values)
    if array.dtype.kind == "M":
        return pl.Series(array.astype("M8[us]"))
    if array.dtype.kind in "biuf":
        return pl.Series(array)
    cells = [cell if (cell == cell) is True else None for cell in array.tolist()]
    return pl.Series(cells, strict=False)
