"""Read a CSV, Parquet or Arrow file, whole or in batches of bounded memory.

Kinds are told apart by content, not by name. CSV columns are text; ``columns.py`` makes ids and numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import polars as pl
from polars.exceptions import PanicException, PolarsError

from ccmtl_core.base.arrays import refuse
from ccmtl_core.base.display import quoted
from ccmtl_core.base.exceptions import DataError
from ccmtl_core.base.near_matches import NearMatches

_UNREADABLE = (PolarsError, PanicException, UnicodeError, OSError)
"""What polars raises for damaged files; a panic is no ``Exception`` and would end the process."""

_MAGIC = {b"PAR1": "Parquet", b"ARROW1": "Arrow"}
_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
_COMPRESSED_MAGIC = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")  # gzip, zstd


def read_table(path: Path, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """Read a file as a whole.

    Parameters
    ----------
    path : Path
        CSV with a header (comma, UTF-8, also gzip or zstd compressed), Parquet, or an Arrow file.
    columns : sequence of str, optional
        The columns to read; default all.

    Returns
    -------
    DataFrame

    Raises
    ------
    DataError
        A file that is none of these, damaged or without rows; a column named twice; columns that it does not
        have.
    OSError
        The file cannot be opened.
    """
    with _table(path, columns) as table:
        frame = table.collect()
    if frame.is_empty():
        raise DataError(f"{path} has a header and no rows")
    return frame


def table_batches(path: Path, columns: Sequence[str], batch_rows: int) -> Iterator[pl.DataFrame]:
    """Read a file piece by piece, in the order of its rows.

    Parameters
    ----------
    path : Path
        As :func:`read_table`.
    columns : sequence of str
        The columns to read.
    batch_rows : int
        Rows of a piece, at most.

    Returns
    -------
    iterator of DataFrame
        At most ``batch_rows`` rows each.

    Raises
    ------
    DataError, OSError
        As :func:`read_table`; damage in the middle of a file shows when it is reached.
    """
    empty = True
    with _table(path, columns) as table:
        for batch in table.collect_batches(chunk_size=batch_rows, lazy=True, engine="streaming"):
            empty = empty and batch.is_empty()
            yield from batch.iter_slices(batch_rows)
    if empty:
        raise DataError(f"{path} has a header and no rows")


@contextmanager
def _table(path: Path, columns: Sequence[str] | None) -> Iterator[pl.LazyFrame]:
    """Open a file; what goes wrong inside the block, because of the file, becomes a DataError."""
    kind = _kind(path)
    try:
        table = _scan(path, kind)
        if columns is not None:
            refuse_missing(str(path), columns, table.collect_schema().names())
            table = table.select(columns)
        yield table
    except _UNREADABLE as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        advice = "; save it as UTF-8" if "utf-8" in reason.lower() else ""
        raise DataError(f"{path} cannot be read as {kind}: {reason}{advice}") from error


def _kind(path: Path) -> str:
    with path.open("rb") as stream:
        start = stream.read(2**16)
    if not start:
        raise DataError(f"{path} is empty")
    kind = next((kind for magic, kind in _MAGIC.items() if start.startswith(magic)), "CSV")
    if kind == "CSV" and b"\0" in start and not start.startswith(_COMPRESSED_MAGIC):
        raise DataError(f"{path} is neither CSV nor Parquet nor an Arrow file")
    return kind


def _scan(path: Path, kind: str) -> pl.LazyFrame:
    if kind == "Parquet":
        return pl.scan_parquet(path, glob=False, hive_partitioning=False)
    if kind == "Arrow":
        return pl.scan_ipc(path, glob=False, hive_partitioning=False)
    return _scan_csv(path)


def _scan_csv(path: Path) -> pl.LazyFrame:
    """With the names of RFC 4180: polars leaves doubled quotes, and renames a column that comes twice."""
    table = pl.scan_csv(path, glob=False, infer_schema=False)
    given = table.collect_schema().names()
    names = {name: name.replace('""', '"') for name in given}
    written = (
        _first_row(path, len(given)) if any("_duplicated_" in name for name in given) else names.values()
    )
    counts = Counter(written)
    refuse([f"the header of {path} names {name!r} {n} times" for name, n in counts.items() if n > 1])
    return table.rename({name: own for name, own in names.items() if name != own})


def _first_row(path: Path, n_columns: int) -> list[str]:
    schema = {str(i): pl.String for i in range(n_columns)}
    table = pl.scan_csv(
        path,
        glob=False,
        has_header=False,
        schema=schema,
        n_rows=1,
        truncate_ragged_lines=True,  # the rows below are not the matter here
        encoding="utf8-lossy",
    )
    return [name or "" for name in table.collect().row(0)]


def refuse_missing(what: str, columns: Sequence[str], present: Sequence[str]) -> None:
    """Raise one DataError that names each column which is not there, with those like it."""
    missing = sorted(set(columns) - set(present), key=list(columns).index)
    separators = [name for mark, name in _SEPARATORS.items() if len(present) == 1 and mark in present[0]]
    if missing and separators:
        raise DataError(
            f"{what} is separated by {separators[0]}, and only commas do here; polars can convert it: "
            "read_csv(FILE, separator=…, infer_schema=False).write_csv(NEW); where numbers have commas, "
            "with decimal_comma=True, schema_overrides={TASK: polars.String} in place of infer_schema=False"
        )
    refuse([f"{what} has no column {quoted(name)}; {_hint(name, present)}" for name in missing])


def _hint(name: str, present: Sequence[str]) -> str:
    near = NearMatches(tuple(present)).find(name)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"there are {', '.join(repr(other[:60]) for other in present[:20])}"
