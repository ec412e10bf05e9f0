"""Bring rows to one value per series and period, summed or averaged in the order of the rows.

The order makes the result the same to the last bit whatever the number of threads, so that the same upload
always makes the same segment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from app.datasets.definition import Aggregation
from ccmtl_core.forecasting import Frequency
from ccmtl_core.series.runs import runs_of, series_order
from ccmtl_core.tables.cells import ROW

COUNT = "n"


@dataclass(frozen=True)
class PeriodValues:
    """Values sorted by series and period, each pair once: T series, n values."""

    unique_ids: pl.Series  # (T,), sorted by their UTF-8 bytes
    series: NDArray[np.int64]  # (n,), index into unique_ids
    period: NDArray[np.int64]  # (n,), number of the period at this frequency
    y: NDArray[np.float64]  # (n,), not finite where a sum overflows
    count: NDArray[np.int64]  # (n,), rows behind the value
    row: NDArray[np.int64]  # (n,), the first of them
    repeated: NDArray[np.int64]  # (m, 3), without aggregation: a row whose pair an earlier row had, that one,
    # and the place of the row in the table
    frequency: Frequency
    beside: NDArray[np.float64]  # (n, C), columns of numbers, the mean of the rows; NaN where not known
    attributes: pl.DataFrame  # (T, A), the newest that is known of each series

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Where each series begins, and the end, (T + 1,)."""
        return np.searchsorted(self.series, np.arange(len(self.unique_ids) + 1)).astype(np.int64)

    def to_frame(self) -> pl.DataFrame:
        """Return a segment's columns: ``unique_id``, ``ds`` (the period's start), ``y``, ``n``."""
        values = segment_frame(self.unique_ids, self.series, self.period, self.y, self.count, self.frequency)
        beside = [*self.columns(), *(one.gather(self.series) for one in self.attributes)]
        return values.with_columns(beside)

    def columns(self) -> list[pl.Series]:
        """Return the columns of numbers, ``c_0``, …; null where not known."""
        return [pl.Series(f"c_{i}", column).fill_nan(None) for i, column in enumerate(self.beside.T)]

    def differing(self, names: Sequence[str]) -> list[str]:
        """Return the columns of numbers that a period alone does not tell, as it tells a holiday."""
        rows = pl.DataFrame([pl.Series("period", self.period), *self.columns()])
        most = rows.group_by("period").agg(pl.exclude("period").drop_nulls().n_unique()).max()
        is_lone = len(self.unique_ids) == 1
        return [name for i, name in enumerate(names) if is_lone or most[f"c_{i}"].item() > 1]

    def unique_id(self, i: int) -> str:
        """Return the series of value ``i``."""
        return str(self.unique_ids[int(self.series[i])])

    def period_text(self, i: int) -> str:
        """Return the start of the period of value ``i``."""
        return period_text(self.frequency, self.period[i])

    def runs(self, where: NDArray[np.bool_] | None = None) -> pl.DataFrame:
        """Return the runs of all values, or of those named (see :mod:`ccmtl_core.series.runs`)."""
        kept = slice(None) if where is None else where
        return runs_of(self.unique_ids, self.series[kept], self.period[kept])


def segment_frame(
    unique_ids: pl.Series,
    series: NDArray[np.int64],
    period: NDArray[np.int64],
    y: NDArray[np.float64],
    count: NDArray[np.int64],
    frequency: Frequency,
) -> pl.DataFrame:
    """Return a segment of values, told as in :class:`PeriodValues`, without columns beside them."""
    ids = unique_ids.gather(series).alias("unique_id")
    ds = pl.Series("ds", frequency.to_datetime(period))
    return pl.DataFrame([ids, ds, pl.Series("y", y), pl.Series(COUNT, count)])


def period_text(frequency: Frequency, period: int) -> str:
    """Return what names a period: a date, for hours with the time."""
    return frequency.text(period)


def by_period(frame: pl.DataFrame, frequency: Frequency, aggregation: Aggregation | None) -> PeriodValues:
    """Bring the rows of ``frame`` (``unique_id``, ``ds``, ``y``; one at least) to one per series and period.

    With a column ``n``, y stands for that many rows; with ``row``, rows are numbered so and not by position.
    Without an aggregation the first of several rows is kept, and the others are listed in ``repeated``. There
    may be columns of numbers, ``c_0``, …, and of text, ``s_0``, …, which stand beside the values.
    """
    ids = frame["unique_id"].unique().sort()
    code = frame["unique_id"].cast(pl.Enum(ids)).to_physical().to_numpy().astype(np.int64)
    period = frequency.to_period(frame["ds"].to_numpy())
    order = series_order(code, period)
    is_first = (np.diff(code[order], prepend=-1) != 0) | (np.diff(period[order], prepend=period[:1] - 1) != 0)
    starts = np.flatnonzero(is_first)
    rows = frame[ROW].to_numpy().astype(np.int64) if ROW in frame.columns else np.arange(len(frame))
    count = frame[COUNT].to_numpy() if COUNT in frame.columns else np.ones(len(frame), dtype=np.int64)
    rows_behind = count[order]
    y, count = _reduce(frame["y"].to_numpy()[order], count[order], starts, aggregation)
    first_row = rows[order[starts]]
    beside = [frame[name].fill_null(float("nan")).to_numpy() for name in frame.columns if name[:2] == "c_"]
    cells = np.array(beside).reshape(len(beside), len(frame)).T
    texts = [name for name in frame.columns if name[:2] == "s_"]
    attributes = pl.DataFrame({"unique_id": ids})
    if texts:
        attributes = frame.group_by("unique_id").agg(pl.col(texts).drop_nulls().last()).sort("unique_id")
    repeated = np.empty((0, 3), dtype=np.int64)
    if aggregation is None:
        earlier = np.repeat(first_row, np.diff(starts, append=len(order)))
        repeated = np.stack([rows[order], earlier, order], axis=1)[~is_first]
    return PeriodValues(
        unique_ids=ids,
        series=code[order[starts]],
        period=period[order[starts]],
        y=y,
        count=count,
        row=first_row,
        repeated=repeated,
        frequency=frequency,
        beside=_means(cells[order], rows_behind, starts, aggregation),
        attributes=attributes.select(texts),
    )


def _means(
    cells: NDArray[np.float64],
    count: NDArray[np.int64],
    starts: NDArray[np.int64],
    aggregation: Aggregation | None,
) -> NDArray[np.float64]:
    """The mean of each column over the rows of a period in which it is known."""
    if aggregation is None or not cells.shape[1]:
        return cells[starts]
    known = ~np.isnan(cells)
    n = np.add.reduceat(known * count[:, None], starts)
    total = np.add.reduceat(np.where(known, cells, 0.0) * count[:, None], starts)
    mean: NDArray[np.float64] = np.divide(total, n, out=np.full(n.shape, np.nan), where=n > 0)
    return mean


def _reduce(
    y: NDArray[np.float64],
    count: NDArray[np.int64],
    starts: NDArray[np.int64],
    aggregation: Aggregation | None,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    if aggregation is None:
        return y[starts], count[starts]
    total = np.add.reduceat(count, starts)
    if aggregation is Aggregation.LAST:
        return y[np.append(starts[1:], len(y)) - 1], total
    with np.errstate(over="ignore", invalid="ignore"):
        if aggregation is Aggregation.SUM:
            return np.add.reduceat(y, starts), total
        return np.add.reduceat(y * count, starts) / total, total
