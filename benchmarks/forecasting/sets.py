"""Folders with data in, series with their last window held out as result: four real sets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.selection.data import WALMART, walmart_sales
from benchmarks.ta_feng import daily_sums, filled, transactions
from ccmtl_core.base.types import FloatArray, IntArray
from ccmtl_core.forecasting import Frequency, SeriesPanel
from examples.ta_feng import COLUMNS

CARPARTS = Path("r_demand_sets") / "expsmooth_carparts.csv"
HOSPITAL = Path("r_demand_sets") / "expsmooth_hospital.csv"


@dataclass(frozen=True, eq=False)
class ForecastSet:
    """T series of the same n periods, the last h of them held out.

    Parameters
    ----------
    panel : SeriesPanel
        The first n - h values of each series.
    held_out : (T, h) float64
        The others.
    season : int
        Periods of the season that seasonal rivals are told.
    group : (T,) int64, optional
        Store or category of each series, over which totals are added up.
    n_periods_in_total : int
        Consecutive periods that a total covers: a week.
    """

    panel: SeriesPanel
    held_out: FloatArray
    season: int
    group: IntArray | None = None
    n_periods_in_total: int = 1

    @property
    def horizon(self) -> int:
        """Periods held out."""
        return int(self.held_out.shape[1])

    @property
    def history(self) -> FloatArray:
        """What is not held out, (T, n - h)."""
        return self.panel.values.reshape(self.panel.n_series, -1)

    def take(self, series: IntArray) -> ForecastSet:
        """Some of the series, without totals."""
        return ForecastSet(self.panel.take(series), self.held_out[series], self.season)


def split(
    panel: SeriesPanel, horizon: int, season: int, group: Sequence[str] | None = None, in_total: int = 1
) -> ForecastSet:
    """Hold out the last periods of a panel whose series all have the same ones."""
    T = panel.n_series
    values, period = panel.values.reshape(T, -1), panel.period.reshape(T, -1)
    n = values.shape[1] - horizon
    training = SeriesPanel(
        panel.unique_ids, np.arange(T + 1) * n, period[:, :n].ravel(), values[:, :n].ravel(), panel.frequency
    )
    codes = None if group is None else np.unique(np.asarray(group), return_inverse=True)[1].reshape(-1)
    return ForecastSet(training, values[:, n:], season, codes, in_total)


def walmart(folder: Path) -> ForecastSet:
    """2,660 departments of stores with a value in each of 143 weeks; totals by store."""
    table = walmart_sales(folder).select(
        unique_id="series", ds=pl.col("Date").str.to_date(), y="Weekly_Sales"
    )
    panel = SeriesPanel.from_frame(table, "W")
    return split(panel, 8, 52, [name.split("/")[0] for name in panel.unique_ids])


def carparts(folder: Path) -> ForecastSet:
    """2,509 parts with a value in each of 51 months."""
    return split(_monthly(folder / CARPARTS, date(1998, 1, 1)), 6, 12)


def hospital(folder: Path) -> ForecastSet:
    """767 products, 84 months."""
    return split(_monthly(folder / HOSPITAL, date(2000, 1, 1)), 12, 12)


def ta_feng(folder: Path) -> ForecastSet:
    """23,812 products, 120 days, zero where nothing was sold; totals of the week by subclass."""
    content = b"".join(transactions(folder).blocks())
    panel = filled(daily_sums(content))
    name = COLUMNS["unique_id"]
    of_product = pl.read_csv(content, columns=[name, "PRODUCT_SUBCLASS"], infer_schema=False)
    subclass = dict(of_product.unique(name, maintain_order=True).iter_rows())
    columns = [subclass[product] for product in panel.unique_ids]
    return split(panel, 7, 7, columns, 7)


FILES = {"walmart": WALMART, "carparts": CARPARTS, "hospital": HOSPITAL}
"""Those of the sets that cannot be fetched."""
SETS: Mapping[str, Callable[[Path], ForecastSet]] = {
    "walmart": walmart,
    "carparts": carparts,
    "ta-feng": ta_feng,
    "hospital": hospital,
}


def _monthly(path: Path, first: date) -> SeriesPanel:
    """Columns of a table as series of months, those without a missing cell; names may repeat."""
    lines = pl.read_csv(path, has_header=False, skip_rows=1, null_values=["NA", ""], infer_schema_length=None)
    values = lines.cast(pl.Float64).to_numpy().T
    values = values[~np.isnan(values).any(axis=1)]
    T, n = values.shape
    months = 12 * (first.year - 1970) + first.month - 1 + np.arange(n)
    ids = tuple(f"{t:04d}" for t in range(T))
    return SeriesPanel(ids, np.arange(T + 1) * n, np.tile(months, T), values.ravel(), Frequency.MONTH)
