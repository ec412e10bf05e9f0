"""Read sufficient statistics from a table with one row for each task, and lay them out as one.

One ``GROUP BY`` computes it where the rows are (``ccmtl statistics-sql`` writes the query), so that training
needs no row. p and q count the features from 1:

=============== ============== =====================================================================
column          type           meaning
=============== ============== =====================================================================
``task_id``     text
``fold``        whole number   only where the rows were split; counts from 0
``features``    text           JSON list of the P feature names, the same in each row of the table
``n_samples``   whole number   rows
``n_null``      whole number   rows of these in which a value was missing; must be 0
``weight``      number         rows as they count, where some were forgotten; otherwise left out
``gram_p_q``    number         Σ x_p x_q for p ≤ q; ``gram_q_p``, where there is one, must agree
``xty_p``       number         Σ x_p y
``yty``         number         Σ y²
``x_sum_p``     number         Σ x_p
``y_sum``       number         Σ y
=============== ============== =====================================================================
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import combinations_with_replacement
from operator import add
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import polars as pl

from ccmtl_core.base.arguments import check_kind
from ccmtl_core.base.arrays import EXACT_BELOW, checked_names, locked, refuse_each
from ccmtl_core.base.exceptions import DataError
from ccmtl_core.base.file_path import checked_path
from ccmtl_core.base.id_codes import id_codes
from ccmtl_core.base.types import FloatArray, IntArray
from ccmtl_core.statistics.sufficient_statistics import SufficientStatistics
from ccmtl_core.tables.cells import ROW, read_cells
from ccmtl_core.tables.faults import MAX_LISTED, Fault, FaultList
from ccmtl_core.tables.header import Kind, Role, check_header
from ccmtl_core.tables.table import Table, refusing_unreadable
from ccmtl_core.tables.table_file import open_table

TASK, FOLD, FEATURES, N_SAMPLES, N_NULL = "task_id", "fold", "features", "n_samples", "n_null"
WEIGHT, YTY, Y_SUM = "weight", "yty", "y_sum"


class ArrowStream(Protocol):
    """Any table that hands out its columns as an Arrow C stream (of DuckDB, PyArrow, pandas, …)."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the stream, in a capsule."""


Source = str | Path | pl.DataFrame | ArrowStream


def gram_column(p: int, q: int) -> str:
    """Return the name of the column of Σ x_p x_q; p and q count from 0."""
    return f"gram_{p + 1}_{q + 1}"


def xty_column(p: int) -> str:
    """Return the name of the column of Σ x_p y; p counts from 0."""
    return f"xty_{p + 1}"


def x_sum_column(p: int) -> str:
    """Return the name of the column of Σ x_p; p counts from 0."""
    return f"x_sum_{p + 1}"


def features_value(feature_names: tuple[str, ...]) -> str:
    """Return the text of the column ``features``."""
    return json.dumps(feature_names, ensure_ascii=False)


def triangle(n_features: int) -> Iterator[tuple[int, int]]:
    """Return the pairs (p, q), p ≤ q, of the upper triangle of the Gram matrix; they count from 0."""
    return combinations_with_replacement(range(n_features), 2)


def read_statistics(source: Source) -> SufficientStatistics:
    """Read statistics that were computed elsewhere; folds, where there are any, are added up.

    Parameters
    ----------
    source : str, Path, polars DataFrame or Arrow stream
        A table as the module describes it; a file may be CSV, Parquet or Arrow, told apart by content.

    Returns
    -------
    SufficientStatistics
        Tasks in the order of their text, whatever the order of the rows.

    Raises
    ------
    DataError
        Missing columns, a task twice, rows with missing values in the warehouse, numbers that no rows can
        have as their statistics.
    OSError
        The file cannot be read.

    Examples
    --------
    >>> table = pl.DataFrame({"task_id": ["b", "a"], "features": '["x"]', "n_samples": [1, 2], "n_null": 0,
    ...     "gram_1_1": [4.0, 5.0], "xty_1": [2.0, 3.0], "yty": [1.0, 2.0], "x_sum_1": [2.0, 3.0],
    ...     "y_sum": [1.0, 2.0]})
    >>> statistics = read_statistics(table)
    >>> statistics.task_ids, statistics.xty.ravel()
    (('a', 'b'), array([3., 2.]))
    """
    return reduce(add, read_statistics_folds(source))


def read_statistics_folds(source: Source) -> list[SufficientStatistics]:
    """Read statistics of each fold, as :meth:`SufficientStatistics.by_fold` computes them from rows.

    Parameters
    ----------
    source : str, Path, polars DataFrame or Arrow stream
        As in :func:`read_statistics`, also for the errors.

    Returns
    -------
    list of SufficientStatistics
        One for each fold, all with the same tasks; a single one for a table without folds.
    """
    if not isinstance(source, str | Path):
        frame = source if isinstance(source, pl.DataFrame) else pl.DataFrame(source)
        return _statistics(Table.of_frame(frame), FaultList("the table of statistics"))
    faults = FaultList(str(source))
    with open_table(checked_path(source), [TASK, FEATURES, N_SAMPLES], faults) as table:
        return _statistics(table, faults)


def _statistics(table: Table, faults: FaultList) -> list[SufficientStatistics]:
    check_header(table.columns, [TASK, FEATURES, N_NULL], faults)
    if not (faults or table.n_rows):
        faults.add("no_rows", "the table has no rows")
    if faults or table.rows is None:
        raise faults.refusal()
    with refusing_unreadable(table.unreadable, faults):
        raw = table.rows.collect().rename(dict(zip(table.names, table.columns, strict=True)))
    table = Table.of_frame(raw)  # which is read several times
    names = _feature_names(raw)
    _refuse_null(table, raw[TASK], faults)
    features, pairs = range(len(names)), list(triangle(len(names)))
    gram = [gram_column(p, q) for p, q in pairs]
    needed = [N_SAMPLES, N_NULL, *gram, *map(xty_column, features), YTY, *map(x_sum_column, features), Y_SUM]
    optional = {FOLD, WEIGHT, *(gram_column(q, p) for p, q in pairs if p != q)}
    numbers = [*needed, *(name for name in raw.columns if name in optional)]
    roles = [Role(TASK, TASK, Kind.ID), *(Role(name, name, Kind.SUM) for name in numbers)]
    frame = read_cells(table, roles, faults).frame
    fold = _folds(frame, faults)
    if faults:
        raise faults.refusal()
    task_ids, task = id_codes(frame[TASK], ordered=True)
    n_folds = int(fold.max()) + 1
    count = np.bincount(task * n_folds + fold)
    refuse_each(
        np.flatnonzero(count > 1),
        lambda i: f"task {task_ids[i // n_folds]!r} has {count[i]} rows; read parts one by one and merge",
    )
    return _assemble(frame, task_ids, names, (fold, task), n_folds, faults)


def statistics_frame(statistics: SufficientStatistics) -> pl.DataFrame:
    """Lay statistics out as a table that :func:`read_statistics` reads.

    Returns
    -------
    polars DataFrame
        One row for each task.

    Raises
    ------
    DataError
        Statistics that were made without ``x_sum`` and ``y_sum``.
    ParameterError
        What is no such statistics.

    Examples
    --------
    >>> from ccmtl_core import TaskDataset
    >>> data = TaskDataset.from_arrays([[[2.0], [1.0]]], [[3.0, 1.0]], task_ids=["a"])
    >>> statistics_frame(SufficientStatistics.from_dataset(data)).row(0, named=True)["xty_1"]
    7.0
    """
    check_kind(statistics, "statistics", SufficientStatistics)
    P = statistics.n_features
    if statistics.x_sum is None or statistics.y_sum is None:
        raise DataError("these statistics lack the sums of x and y, which the table holds")
    columns: dict[str, Any] = {
        TASK: pl.Series(statistics.task_ids, dtype=pl.String),
        FEATURES: features_value(statistics.feature_names),
        N_SAMPLES: statistics.n_samples,
        N_NULL: 0,
        WEIGHT: statistics.weight,
        YTY: statistics.yty,
        Y_SUM: statistics.y_sum,
    }
    columns |= {gram_column(p, q): statistics.gram[:, p, q] for p, q in triangle(P)}
    columns |= {xty_column(p): statistics.xty[:, p] for p in range(P)}
    columns |= {x_sum_column(p): statistics.x_sum[:, p] for p in range(P)}
    return pl.DataFrame(columns)


def _feature_names(raw: pl.DataFrame) -> tuple[str, ...]:
    values = raw[FEATURES].unique()
    if len(values) > 1:
        raise DataError(f"column {FEATURES!r} must be the same in each row; there are {len(values)} values")
    try:
        names = json.loads(values[0])
    except (TypeError, ValueError):
        names = None
    if not (isinstance(names, list) and names and all(isinstance(name, str) for name in names)):
        raise DataError(f"column {FEATURES!r} must hold a JSON list of names, not {values[0]!r}")
    return checked_names(names, "feature name")


def _whole_numbers(frame: pl.DataFrame, name: str, faults: FaultList) -> IntArray:
    numbers = frame[name].to_numpy()
    bad = (numbers != np.floor(numbers)) | (numbers < 0) | (numbers > EXACT_BELOW)
    samples = (
        Fault("not_a_count", f"{numbers[i]:g} is not a count", int(frame[ROW][int(i)]), name)
        for i in np.flatnonzero(bad)[:MAX_LISTED]
    )
    if bad.any():
        faults.add_all("not_a_count", int(bad.sum()), samples)
    return np.where(bad, 0.0, numbers).astype(np.int64)


def _folds(frame: pl.DataFrame, faults: FaultList) -> IntArray:
    n_rows = frame.height
    if FOLD not in frame.columns:
        return np.zeros(n_rows, dtype=np.int64)
    fold = _whole_numbers(frame, FOLD, faults)
    if fold.max() >= n_rows:
        message = f"column {FOLD!r} must count from 0; it reaches {fold.max()} in {n_rows} rows"
        faults.add("not_a_count", message, column=FOLD)
    return fold


def _refuse_null(table: Table, ids: pl.Series, faults: FaultList) -> None:
    """Refuse rows with missing values: sums skip them product by product, and no longer fit together."""
    n_null = _whole_numbers(read_cells(table, [Role(N_NULL, N_NULL, Kind.SUM)], faults).frame, N_NULL, faults)
    if faults:
        raise faults.refusal()
    bad = np.flatnonzero(n_null)
    if len(bad):
        tasks = ", ".join(f"{ids[int(row)]!r} ({n_null[row]})" for row in bad[:5])
        raise DataError(
            f"{n_null.sum()} rows have NULL in the task, the target, a feature or the time: of task "
            f"{tasks}{', …' if len(bad) > 5 else ''}; fill them or leave them out where the query runs"
        )


def _assemble(
    frame: pl.DataFrame,
    task_ids: tuple[str, ...],
    names: tuple[str, ...],
    place: tuple[IntArray, IntArray],
    n_folds: int,
    faults: FaultList,
) -> list[SufficientStatistics]:
    """Put each number where its fold and task say; tasks without rows in a fold keep zeros there."""
    K, T, P = n_folds, len(task_ids), len(names)
    known = set(frame.columns)

    def placed(columns: Sequence[str], *shape: int) -> FloatArray:
        numbers = np.zeros((K, T, len(columns)))
        for i, column in enumerate(columns):
            numbers[*place, i] = frame[column].to_numpy()
        return locked(numbers.reshape(K, T, *shape))

    square = [(p, q) for p in range(P) for q in range(P)]
    gram_columns = [gram_column(p, q) if gram_column(p, q) in known else gram_column(q, p) for p, q in square]
    gram, yty, y_sum = placed(gram_columns, P, P), placed([YTY]), placed([Y_SUM])
    xty, x_sum = placed([*map(xty_column, range(P))], P), placed([*map(x_sum_column, range(P))], P)
    n_samples = np.zeros((K, T), dtype=np.int64)
    n_samples[place] = _whole_numbers(frame, N_SAMPLES, faults)
    weight = placed([WEIGHT]) if WEIGHT in known else locked(n_samples.astype(np.float64))
    n_samples = locked(n_samples)
    if faults:
        raise faults.refusal()
    return [
        SufficientStatistics(
            gram[f], xty[f], yty[f], n_samples[f], task_ids, names, weight[f], x_sum[f], y_sum[f]
        )
        for f in range(n_folds)
    ]
