"""A CSV or Parquet file in, a task dataset out; every unusable cell is named by row and column.

Ids are read as text: "0471" stays "0471". Rows are counted from 1, the header not included.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
from polars.exceptions import PanicException, PolarsError

from ccmtl_core._types import FloatArray
from ccmtl_core.arrays import MAX_FAULTS, Faults, checked_names, refuse
from ccmtl_core.exceptions import DataError, ParameterError
from ccmtl_core.id_codes import id_codes
from ccmtl_core.near_matches import NearMatches
from ccmtl_core.task_dataset import TaskDataset

PARQUET_MAGIC = b"PAR1"
UNREADABLE = (PolarsError, PanicException, UnicodeError, OSError)
"""What polars raises for damaged files; a panic is no ``Exception`` and would end the process."""

COMPRESSED_MAGIC = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")  # gzip, zstd


def read_task_dataset(path: str | Path, *, task: str, target: str, features: Sequence[str]) -> TaskDataset:
    """Read a dataset from a file with one sample per row.

    Parameters
    ----------
    path : str or Path
        CSV with a header (comma, UTF-8, also gzip or zstd compressed), or Parquet; told apart by
        content, not by name.
    task : str
        Column with the id of each row's task: text, or integers in Parquet.
    target : str
        Column of y.
    features : sequence of str
        Columns of X, in this order.

    Returns
    -------
    TaskDataset
        Tasks in order of first appearance.

    Raises
    ------
    DataError
        A file that is neither, missing columns, empty cells, cells that are not finite numbers.
    ParameterError
        No features, or a column used twice.
    OSError
        The file cannot be read.
    """
    names = checked_names(tuple(features), "feature")
    if not names:
        raise ParameterError("at least one feature column is needed")
    used = [task, target, *names]
    repeated = sorted({name for name in used if used.count(name) > 1})
    if repeated:
        raise ParameterError(f"column {repeated[0]!r} is used twice")
    frame = _read_columns(Path(path), used)
    faults = Faults()
    ids = _id_column(frame[task], faults)
    y = _number_column(frame[target], faults)
    columns = [_number_column(frame[name], faults) for name in names]
    faults.refuse()
    task_ids, codes = id_codes(ids, ordered=False)
    return TaskDataset.from_codes(np.column_stack(columns), y, codes, task_ids, feature_names=names)


def _read_columns(path: Path, columns: list[str]) -> pl.DataFrame:
    with path.open("rb") as stream:
        start = stream.read(2**16)
    if not start:
        raise DataError(f"{path} is empty")
    kind = "Parquet" if start.startswith(PARQUET_MAGIC) else "CSV"
    if kind == "CSV" and b"\0" in start and not start.startswith(COMPRESSED_MAGIC):
        raise DataError(f"{path} is neither CSV nor Parquet")
    try:
        if kind == "Parquet":
            present = list(pl.read_parquet_schema(path))
        else:
            present = pl.read_csv(path, n_rows=0, infer_schema=False).columns
        _refuse_missing(path, columns, present)
        if kind == "Parquet":
            frame = pl.read_parquet(path, columns=columns)
        else:
            frame = pl.read_csv(path, columns=columns, infer_schema=False)
    except UNREADABLE as error:
        raise DataError(f"{path} cannot be read as {kind}: {_first_line(error)}") from error
    if frame.is_empty():
        raise DataError(f"{path} has a header and no rows")
    return frame


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


def _refuse_missing(path: Path, columns: list[str], present: list[str]) -> None:
    faults = []
    for name in columns:
        if name not in present:
            near = NearMatches(present).find(name)
            hint = (
                f"did you mean {near[0]!r}?"
                if near
                else f"there are {', '.join(repr(other[:60]) for other in present[:20])}"
            )
            faults.append(f"{path} has no column {name!r}; {hint}")
    refuse(faults)


def _id_column(column: pl.Series, faults: Faults) -> pl.Series:
    if not (column.dtype == pl.String or column.dtype.is_integer() or _is_enumeration(column.dtype)):
        faults.add(f"column {column.name!r} must hold text or integers, not {column.dtype}")
        return column
    ids = column.cast(pl.String)
    _describe(ids.is_null() | (ids == ""), column, "is empty", faults)
    return ids


def _is_enumeration(dtype: pl.DataType) -> bool:
    return isinstance(dtype, pl.Categorical | pl.Enum)


def _number_column(column: pl.Series, faults: Faults) -> FloatArray:
    if column.dtype == pl.String:
        text = column.str.strip_chars()
        numbers = text.cast(pl.Float64, strict=False)
        _describe(numbers.is_null() & column.is_not_null() & (text != ""), column, "is not a number", faults)
        empty = column.is_null() | (text == "").fill_null(True)
    elif column.dtype.is_numeric() or column.dtype == pl.Boolean:
        numbers = column.cast(pl.Float64)
        empty = column.is_null()
    else:
        faults.add(f"column {column.name!r} must hold numbers, not {column.dtype}")
        return np.empty(len(column))
    _describe(empty, column, "is empty", faults)
    _describe(numbers.is_not_null() & ~numbers.is_finite(), column, "is not finite", faults)
    return numbers.to_numpy()


def _describe(bad: pl.Series, column: pl.Series, fault: str, faults: Faults) -> None:
    rows = bad.fill_null(False).arg_true()
    for row in rows[:MAX_FAULTS]:
        shown = "" if column[row] is None else f" {column[row]!r}"
        faults.add(f"row {row + 1}, column {column.name!r}:{shown} {fault}")
    faults.n += max(0, len(rows) - MAX_FAULTS)
