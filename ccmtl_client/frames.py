"""Tables of polars, pandas or Arrow, whose libraries are imported when a table is first met."""

from __future__ import annotations

import importlib
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any, Literal, get_args

from ccmtl_client.errors import MissingLibrary, StrangeAnswer

Kind = Literal["polars", "pandas", "arrow"]
KINDS: tuple[Kind, ...] = get_args(Kind)
ARROW = "application/vnd.apache.arrow.stream"
BYTES_AT_A_TIME = 8 * 1024**2


def library(name: str, needed_by: str) -> Any:
    """Import a library, or raise MissingLibrary that says what needs it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        top = name.partition(".")[0]
        raise MissingLibrary(f"{needed_by} needs {top}: pip install {top}") from error


def as_polars(table: Any) -> Any:
    """Return a table of any of the libraries, or a mapping of columns, as a DataFrame of polars.

    Raises
    ------
    TypeError
        It is no table, or one of pandas with times in a zone, which need pyarrow.
    """
    polars = library("polars", "a table")
    if isinstance(table, polars.DataFrame):
        return table
    if isinstance(table, Mapping):
        return polars.DataFrame(dict(table))
    if hasattr(table, "columns") and hasattr(table, "to_numpy"):  # pandas, which may lack Arrow
        return polars.DataFrame([_series(polars, str(name), table[name]) for name in table.columns])
    if hasattr(table, "__arrow_c_stream__"):
        return polars.DataFrame(table)
    raise TypeError(f"a table of polars, pandas or Arrow is needed, not a {type(table).__name__}")


def as_kind(frame: Any, kind: Kind) -> Any:
    """Return a DataFrame of polars as a table of the library that is asked for."""
    if kind == "polars":
        return frame
    if kind == "arrow":
        library("pyarrow", 'tables="arrow"')
        return frame.to_arrow()
    pandas = library("pandas", 'tables="pandas"')
    return pandas.DataFrame({name: frame[name].to_numpy() for name in frame.columns})


def read_arrow(content: bytes) -> Any:
    """Return what an Arrow stream holds as a DataFrame of polars."""
    polars = library("polars", "a table")
    try:
        return polars.read_ipc_stream(io.BytesIO(content))
    except (polars.exceptions.PolarsError, OSError) as error:
        raise StrangeAnswer(f"The answer is no Arrow stream: {error}") from error


def arrow_parts(frame: Any) -> Iterator[bytes]:
    """Yield Arrow streams of some rows of a DataFrame of polars each, so many that a request may be long."""
    rows = max(1, BYTES_AT_A_TIME // (8 * frame.width + 64))
    for first in range(0, max(1, frame.height), rows):
        frame.slice(first, rows).write_ipc_stream(part := io.BytesIO())
        yield part.getvalue()


def forecasts_frame(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Return rows of forecasts as a DataFrame of polars with the types that the stream of all has."""
    polars = library("polars", "a table")
    frame = polars.DataFrame(rows, infer_schema_length=None)
    known = next((row["ds"] for row in rows if row["ds"] is not None), "2000-01-01")
    ds = polars.col("ds").cast(polars.String)
    if "T" in known:
        ds = ds.str.to_datetime("%Y-%m-%dT%H:%M:%S", time_unit="us")
    else:
        ds = ds.str.to_date("%Y-%m-%d") if "-" in known[1:] else ds.cast(polars.Int64)
    numbers = [name for name in frame.columns if name.startswith("yhat")]
    return frame.with_columns(ds, polars.col(numbers).cast(polars.Float64))


def cells(table: Any) -> dict[str, list[Any]] | None:
    """Return columns as lists that JSON can hold: dates as text, None in place of NaN."""
    if table is None:
        return None
    columns = table if isinstance(table, Mapping) else as_polars(table).to_dict(as_series=False)
    return {str(name): [_cell(value) for value in column] for name, column in columns.items()}


def _cell(value: Any) -> Any:
    if isinstance(value, datetime | date):
        return value.isoformat()
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _series(polars: Any, name: str, column: Any) -> Any:
    """Return a column of pandas, None in place of what equals nothing, as NaN, NaT and NA do."""
    if getattr(column.dtype, "tz", None) is not None:
        raise TypeError(
            f"column {name!r} has times in a zone; give it as the clock shows them there, by "
            ".dt.tz_localize(None), or as text"
        )
    values = column.to_numpy()
    if values.dtype.kind == "M":
        values = values.astype("M8[us]")
    if values.dtype != object:
        return polars.Series(name, values, nan_to_null=True)
    return polars.Series(name, [v if (v == v) is True else None for v in values.tolist()])
