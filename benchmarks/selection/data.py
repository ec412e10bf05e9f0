"""Folders with data in, validation folds and held-out rows as statistics out: four real sets.

Each set is split once into rows for training and rows held out; the rows for training are split again
into folds, and every choice is made on these alone.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from benchmarks.ta_feng import lagged_panel, transactions
from ccmtl_core import SufficientStatistics, TaskDataset, period_factors
from ccmtl_core.reproduce.readers import N_DROPPED, read_sales, read_school

N_FOLDS = 3
SALES_FOLDS = 5  # 21 rows of each product are for training: more of them in each fold's training part
SALES = Path("sales_weekly") / "Sales_Transactions_Dataset_Weekly.csv"
WALMART = Path("walmart_store_sales") / "walmart-recruiting-store-sales-forecasting.zip"
SCHOOL = Path("school") / "school.mat"
WALMART_LAGS = (1, 2, 3, 4, 51, 52, 53)
WALMART_TEST = 8

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PeriodRows:
    """The rows for training, with the fold and the period of each."""

    dataset: TaskDataset
    fold: NDArray[np.int64]
    period: NDArray[np.int64]

    def weighed(self, without: int | None = None) -> SufficientStatistics:
        """Statistics with periods weighed by their noise in these rows, perhaps without those of a fold."""
        kept, all_rows = self.fold != without, self.dataset
        offsets = np.concatenate([[0], np.cumsum(kept)])[all_rows.offsets]
        names = all_rows.task_ids, all_rows.feature_names
        rows = TaskDataset(all_rows.X[kept], all_rows.y[kept], offsets, *names)
        return SufficientStatistics.from_dataset(rows, period_factors(rows, self.period[kept]))


@dataclass(frozen=True, eq=False)
class Split:
    """Statistics of the folds of the rows for training, and of those held out; perhaps rows with periods."""

    folds: Sequence[SufficientStatistics]
    held_out: SufficientStatistics
    rows: PeriodRows | None = None

    @property
    def training(self) -> SufficientStatistics:
        """All rows for training."""
        return reduce(add, self.folds)


def sales(folder: Path, seed: int) -> Split:
    """811 products, lags 1 to 5 in raw quantities, a random half of the last 42 weeks of each product."""
    rows = read_sales(folder)
    n = int(rows.n_samples[0])
    return _random_half(rows, n, SALES_FOLDS, np.random.default_rng(seed))


def ta_feng(folder: Path, seed: int) -> Split:
    """23,812 products, daily sums and five lags, a random half of the last 110 days of each product."""
    lagged = lagged_panel(transactions(folder))
    data = lagged.dataset
    rows = len(data.y) // data.n_tasks
    kept = rows + len(data.feature_names) - N_DROPPED
    return _random_half(_last_rows(data, kept), kept, N_FOLDS, np.random.default_rng(seed))


def walmart_sales(folder: Path) -> pl.DataFrame:
    """The departments with a value in every week, as ``series`` "store/department", week by week."""
    with zipfile.ZipFile(folder / WALMART) as outer:
        inner = zipfile.ZipFile(io.BytesIO(outer.read("train.csv.zip")))
        table = pl.read_csv(inner.read("train.csv"), null_values="NA")
    table = table.with_columns(series=pl.col("Store").cast(pl.String) + "/" + pl.col("Dept").cast(pl.String))
    complete = table.group_by("series").len().filter(pl.col("len") == table["Date"].n_unique())["series"]
    return table.filter(pl.col("series").is_in(complete.implode())).sort("series", "Date")


def walmart(folder: Path) -> Split:
    """2,660 series of 143 weeks, each in units of its own naive error; the last eight weeks are held out.

    Features: the lags of ``WALMART_LAGS``, whether the week has a holiday, and one. A series' unit is the
    root of its mean squared change from week to week before the weeks held out, so that an RMSE is an RMSSE.
    """
    table = walmart_sales(folder)
    n_weeks = table["Date"].n_unique()
    ids = table["series"].unique(maintain_order=True).to_list()
    y = table["Weekly_Sales"].to_numpy().reshape(len(ids), n_weeks)
    holiday = table["IsHoliday"].to_numpy().reshape(y.shape)[0].astype(np.float64)
    y = y / np.sqrt((np.diff(y[:, :-WALMART_TEST], axis=1) ** 2).mean(axis=1, keepdims=True))
    first = max(WALMART_LAGS)
    n = y.shape[1] - first
    columns = [y[:, first - lag : y.shape[1] - lag] for lag in WALMART_LAGS]
    columns += [np.broadcast_to(holiday[first:], (len(y), n)), np.ones((len(y), n))]
    names = [*(f"lag_{lag}" for lag in WALMART_LAGS), "holiday", "one"]
    X = np.stack(columns, axis=2)
    fold = np.minimum(np.arange(n) * N_FOLDS // (n - WALMART_TEST), N_FOLDS)
    split = _split(_dataset(X, y[:, first:], ids, names), np.tile(fold, len(y)), N_FOLDS)
    kept = n - WALMART_TEST
    training = _dataset(X[:, :kept], y[:, first : first + kept], ids, names)
    rows = PeriodRows(training, np.tile(fold[:kept], len(y)), np.tile(np.arange(kept), len(y)))
    return replace(split, rows=rows)


def school(folder: Path, share: float, seed: int) -> Split:
    """139 schools, a random share of the pupils of each for training."""
    data = read_school(folder)
    rng = np.random.default_rng(seed)
    fold = np.full(len(data.y), N_FOLDS)
    for first, last in zip(data.offsets[:-1], data.offsets[1:], strict=True):
        chosen = rng.permutation(np.arange(first, last))[: max(1, round(share * (last - first)))]
        fold[chosen] = np.arange(len(chosen)) % N_FOLDS
    return _split(data, fold, N_FOLDS)


def _dataset(X: Array, y: Array, ids: Sequence[str], names: Sequence[str]) -> TaskDataset:
    """X (T, n, P) and y (T, n) as rows."""
    T, n, P = X.shape
    offsets = np.arange(T + 1) * n
    return TaskDataset(X.reshape(-1, P), y.ravel(), offsets, tuple(ids), tuple(names))


def _last_rows(data: TaskDataset, n: int) -> TaskDataset:
    T, P = data.n_tasks, data.n_features
    X, y = data.X.reshape(T, -1, P)[:, -n:], data.y.reshape(T, -1)[:, -n:]
    return _dataset(np.ascontiguousarray(X), np.ascontiguousarray(y), data.task_ids, data.feature_names)


def _random_half(data: TaskDataset, n: int, n_folds: int, rng: np.random.Generator) -> Split:
    """A random half of the n rows of each task in folds of equal size."""
    rank = rng.permuted(np.tile(np.arange(n), (data.n_tasks, 1)), axis=1)
    fold = np.where(rank < n // 2, rank % n_folds, n_folds)
    return _split(data, fold.ravel(), n_folds)


def _split(data: TaskDataset, fold: NDArray[np.int64], n_folds: int) -> Split:
    *folds, held_out = SufficientStatistics.by_fold(data, fold, n_folds + 1)
    return Split(folds, held_out)
