"""Columns that stand beside the values of series: price, promotion, holiday, for some periods or all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from ccmtl_core.base.arrays import (
    as_float64,
    as_integers,
    checked_index,
    checked_names,
    frozen,
    refuse,
    refuse_each,
)
from ccmtl_core.base.display import counted, named, quoted, shown
from ccmtl_core.base.exceptions import DataError
from ccmtl_core.base.frozen_value import FrozenValue
from ccmtl_core.base.id_codes import id_codes
from ccmtl_core.base.types import BoolArray, FloatArray, IntArray
from ccmtl_core.data.frames import as_polars
from ccmtl_core.series.calendar import Frequency


@dataclass(frozen=True, eq=False)
class SeriesColumns(FrozenValue):
    """C columns of numbers by series and period, or by period alone.

    Parameters
    ----------
    names : tuple of C str
        Distinct, not empty.
    unique_ids : tuple of str
        Series that have values; none where the values of a period are those of all series.
    series : (n,) int64
        Place of each row's series in ``unique_ids``; 0 where there are none.
    period : (n,) int64
        Rising with the series, and in each series.
    values : (n, C) float64
        Finite, or NaN where not known.
    frequency : Frequency
        What a period is.
    ahead : tuple of str, optional
        Those that will be known of periods to come, such as a price that is set before; the others are known
        up to the present. By default those that are known beyond the last value of the series.

    Raises
    ------
    DataError
        Shapes that do not fit, rows out of order or twice, values that are infinite.
    """

    names: tuple[str, ...]
    unique_ids: tuple[str, ...]
    series: IntArray
    period: IntArray
    values: FloatArray
    frequency: Frequency
    ahead: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        names = checked_names(self.names, "column")
        if self.ahead is not None:
            ahead = checked_names(self.ahead, "column")
            refuse(
                [
                    f"there is no column {quoted(name)} to be known ahead"
                    for name in ahead
                    if name not in names
                ]
            )
            object.__setattr__(self, "ahead", ahead)
        ids = checked_names(self.unique_ids, "unique_id")
        frequency = Frequency(self.frequency)
        values, period = as_float64(self.values, "values"), frequency.checked_periods(self.period)
        series = checked_index(as_integers(self.series, "series"), max(len(ids), 1), "series")
        if not names or values.shape != (*period.shape, len(names)) or series.shape != period.shape:
            raise DataError(
                f"values must be (n, {len(names)}), series and period (n,); "
                f"got {values.shape}, {series.shape}, {period.shape}"
            )
        checked = {"series": frozen(series), "period": frozen(period), "values": frozen(values)}
        for name, value in {**checked, "names": names, "unique_ids": ids, "frequency": frequency}.items():
            object.__setattr__(self, name, value)
        refuse_each(np.flatnonzero(np.isinf(values).any(axis=1)), lambda i: f"{self._place(i)}: not finite")
        same, step = np.diff(series) == 0, np.diff(period)
        refuse_each(
            np.flatnonzero((np.diff(series) < 0) | (same & (step <= 0))) + 1,
            lambda i: f"{self._place(i)} appears twice or comes too late",
        )

    @classmethod
    def from_frame(
        cls, frame: Any, frequency: Frequency | str, *, ahead: Sequence[str] | None = None
    ) -> SeriesColumns:
        """Build from a table in any order of rows.

        Parameters
        ----------
        frame : DataFrame of polars or pandas, or an Arrow table
            ``ds`` (Date or Datetime), ``unique_id`` (text or integers) unless a row holds for all series, and
            columns of numbers or of truth values, in which a missing value is one that is not known. ``y`` is
            left out.
        frequency : Frequency
            What a period is.
        ahead : sequence of str, optional
            Columns that will be known of periods to come.

        Returns
        -------
        SeriesColumns

        Raises
        ------
        DataError
            Columns that are missing or of other types, two rows of a series in one period.
        ParameterError
            No such table, or an unknown frequency.

        Examples
        --------
        >>> from datetime import date
        >>> frame = pl.DataFrame({"ds": [date(2024, 12, 25), date(2024, 12, 24)], "holiday": [True, False]})
        >>> SeriesColumns.from_frame(frame, "D").values.ravel()
        array([0., 1.])
        """
        frequency = Frequency(frequency)
        frame = as_polars(frame, "frame", in_utc=frequency is Frequency.HOUR)
        names = tuple(name for name in frame.columns if name not in ("unique_id", "ds", "y"))
        if "ds" not in frame.columns or not names:
            raise DataError(f"the table needs ds and columns of numbers; it has {', '.join(frame.columns)}")
        wrong = [n for n in names if not (frame.schema[n].is_numeric() or frame.schema[n] == pl.Boolean)]
        refuse([f"column {quoted(name)} must hold numbers, not {frame.schema[name]}" for name in wrong])
        period, ids, series = (
            frequency.to_period(frame["ds"]),
            tuple[str, ...](),
            np.zeros(len(frame), np.int64),
        )
        if "unique_id" in frame.columns:
            if frame.schema["unique_id"] != pl.String or frame["unique_id"].has_nulls():
                raise DataError("column 'unique_id' must be text or integers without missing values")
            ids, series = id_codes(frame["unique_id"], ordered=True)
        order = np.lexsort((period, series))
        values = frame.select(pl.col(names).cast(pl.Float64).fill_null(float("nan"))).to_numpy()
        named = None if ahead is None else tuple(ahead)
        return cls(names, ids, series[order], period[order], values[order], frequency, named)

    @classmethod
    def of_rows(
        cls,
        rows: pl.DataFrame,
        names: Sequence[str],
        frequency: Frequency,
        *,
        ahead: Sequence[str] | None = None,
        spread: bool = True,
    ) -> SeriesColumns:
        """Build from rows of series, one for each series and period.

        Parameters
        ----------
        rows : polars DataFrame
            ``unique_id``, ``period`` (Int64), and ``c_0``, ``c_1``, …, the columns, null where not known.
        names : sequence of str
            What the columns are called.
        frequency : Frequency
            What a period is.
        ahead : sequence of str, optional
            Columns that will be known of periods to come.
        spread : bool
            Whether a column that has one value in each period, such as a holiday, holds for all series, also
            for those that have no row in that period.

        Returns
        -------
        SeriesColumns
        """
        cells = [f"c_{i}" for i in range(len(names))]
        by_period = rows.group_by("period").agg(pl.col(cells).drop_nulls().n_unique()).select(cells)
        several = spread and rows["unique_id"].n_unique() > 1
        shared = [name for name in cells if several and by_period[name].max() == 1]
        of_all = rows.group_by("period").agg(pl.col(shared).drop_nulls().first()).sort("period")
        named = None if ahead is None else tuple(ahead)
        if shared and len(shared) == len(cells):
            zeros = np.zeros(len(of_all), np.int64)
            values = of_all.select(pl.col(cells).fill_null(float("nan"))).to_numpy()
            return cls(tuple(names), (), zeros, of_all["period"].to_numpy(), values, frequency, named)
        if shared:
            grid = rows.select(pl.col("unique_id").unique()).join(of_all, how="cross")
            rows = grid.join(rows.drop(shared), on=["unique_id", "period"], how="left")
        ids, series = id_codes(rows["unique_id"], ordered=True)
        period = rows["period"].to_numpy()
        order = np.lexsort((period, series))
        values = rows.select(pl.col(cells).fill_null(float("nan"))).to_numpy()
        return cls(tuple(names), ids, series[order], period[order], values[order], frequency, named)

    def __repr__(self) -> str:
        of = f"{len(self.unique_ids):,} series" if self.unique_ids else "all series"
        return shown(self, named(self.names, "column"), of, counted(len(self.period), "row"))

    def known_ahead(self, last: int) -> BoolArray:
        """Return which columns will be known of periods to come, or are known beyond the period ``last``."""
        if self.ahead is not None:
            return np.array([name in self.ahead for name in self.names])
        return np.asarray(~np.isnan(self.values[self.period > last]).all(axis=0))

    def places(self, unique_ids: Sequence[str]) -> IntArray:
        """Return what :meth:`at` takes for these series, (T,)."""
        if not self.unique_ids:
            return np.zeros(len(unique_ids), dtype=np.int64)
        place = {name: row for row, name in enumerate(self.unique_ids)}
        return np.array([place.get(name, -1) for name in unique_ids], dtype=np.int64)

    def at(self, place: IntArray, period: IntArray) -> FloatArray:
        """Return the values (n, C) of series, by their places (n,), at periods (n,); NaN where not known."""
        found = np.full((len(period), len(self.names)), np.nan)
        if not len(self.period):
            return found
        first, last = int(self.period.min()), int(self.period.max())
        keys = self.series * (last - first + 1) + (self.period - first)
        inside = (place >= 0) & (period >= first) & (period <= last)
        wanted = place[inside] * (last - first + 1) + (period[inside] - first)
        row = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        found[inside] = np.where((keys[row] == wanted)[:, None], self.values[row], np.nan)
        return found

    def _place(self, row: int) -> str:
        moment = self.frequency.text(self.period[row], "s")
        of = f"series {quoted(self.unique_ids[self.series[row]])}, " if self.unique_ids else ""
        return f"{of}period {moment}"
