"""Many series as one panel: read from a long table, grouped by series, gaps filled on request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from ccmtl_core.base.arguments import check_integer
from ccmtl_core.base.arrays import (
    all_finite,
    as_float64,
    as_integers,
    checked_names,
    read_only,
    refuse,
    refuse_each,
)
from ccmtl_core.base.display import counted, shown
from ccmtl_core.base.exceptions import DataError, ParameterError
from ccmtl_core.base.frozen_value import FrozenValue
from ccmtl_core.base.id_codes import id_codes
from ccmtl_core.base.types import FloatArray, IntArray
from ccmtl_core.data.frames import as_polars
from ccmtl_core.series.calendar import Frequency

_COLUMNS = ("unique_id", "ds", "y")
MAX_DENSE_ROWS = 2**28
"""Rows that filling may create: one mistyped year in hourly data would ask for billions."""


@dataclass(frozen=True, eq=False)
class SeriesPanel(FrozenValue):
    """Values of T series at numbered periods.

    Parameters
    ----------
    unique_ids : tuple of T str
        Distinct, not empty.
    offsets : (T + 1,) int64
        Series t owns the entries ``offsets[t]:offsets[t + 1]``.
    period : (n,) int64
        Number of each entry's period, strictly increasing inside a series.
    values : (n,) float64
        Finite.
    frequency : Frequency
        What a period is.

    Raises
    ------
    DataError
        Shapes that do not fit, offsets or periods that are not integers, repeated or unordered
        periods, periods beyond the calendar, values that are not finite.
    ParameterError
        An unknown frequency.
    """

    unique_ids: tuple[str, ...]
    offsets: IntArray
    period: IntArray
    values: FloatArray
    frequency: Frequency

    def __post_init__(self) -> None:
        ids = checked_names(self.unique_ids, "unique_id")
        values = as_float64(self.values, "values")
        frequency = Frequency(self.frequency)
        period = frequency.checked_periods(self.period)
        offsets = as_integers(self.offsets, "offsets")
        if values.ndim != 1 or period.shape != values.shape or offsets.shape != (len(ids) + 1,):
            raise DataError(
                f"values and period must be (n,), offsets ({len(ids) + 1},); "
                f"got {values.shape}, {period.shape}, {offsets.shape}"
            )
        if offsets[0] != 0 or offsets[-1] != len(values) or (np.diff(offsets) < 0).any():
            raise DataError(f"offsets must rise from 0 to {len(values)}")
        object.__setattr__(self, "unique_ids", ids)
        for name, array in {"offsets": offsets, "period": period, "values": values}.items():
            object.__setattr__(self, name, read_only(array))
        object.__setattr__(self, "frequency", frequency)
        self._refuse_bad_entries()

    @classmethod
    def from_frame(cls, frame: Any, frequency: Frequency | str) -> SeriesPanel:
        """Build from a long frame; the series come in the order of their ids as text.

        Parameters
        ----------
        frame : DataFrame of polars or pandas, or an Arrow table
            Columns ``unique_id`` (text or integers), ``ds`` (Date or Datetime) and ``y`` (numbers); one row
            per series and period, in any order. Of times with a zone, hours are converted to UTC;
            days, weeks and months are those of the local date.
        frequency : Frequency
            What a period is.

        Returns
        -------
        SeriesPanel

        Raises
        ------
        DataError
            Missing columns, wrong types, missing values, two rows in one period.
        ParameterError
            No such table, or an unknown frequency.

        Examples
        --------
        >>> from datetime import date
        >>> days = [date(2000, 11, 2), date(2000, 11, 1), date(2000, 11, 1)]
        >>> frame = pl.DataFrame({"unique_id": ["b", "b", "a"], "ds": days, "y": [1.0, 2.0, 3.0]})
        >>> panel = SeriesPanel.from_frame(frame, Frequency.DAY)
        >>> panel.unique_ids, panel.values
        (('a', 'b'), array([3., 2., 1.]))
        """
        frequency = Frequency(frequency)
        frame = as_polars(frame, "frame", in_utc=frequency is Frequency.HOUR)
        _check_columns(frame, frequency)
        ids, index = id_codes(frame["unique_id"], ordered=True)
        period = frequency.to_period(frame["ds"])
        order = np.lexsort((period, index))
        offsets = np.zeros(len(ids) + 1, dtype=np.int64)
        np.cumsum(np.bincount(index, minlength=len(ids)), out=offsets[1:])
        values = frame["y"].cast(pl.Float64).to_numpy()[order]
        return cls(ids, offsets, period[order], values, frequency)

    def __repr__(self) -> str:
        ends = [self.period.min(), self.period.max()] if len(self.period) else []
        span = " to ".join(self.frequency.text(period, "m") for period in ends)
        length = f"frequency {self.frequency.value}"
        return shown(self, f"{self.n_series:,} series", counted(len(self.values), "value"), length, span)

    @property
    def n_series(self) -> int:
        """T, the number of series."""
        return len(self.unique_ids)

    @cached_property
    def series_index(self) -> IntArray:
        """The series of each entry, (n,) int64."""
        return read_only(np.repeat(np.arange(self.n_series), np.diff(self.offsets)))

    def take(self, series: IntArray) -> SeriesPanel:
        """Return some of the series.

        Parameters
        ----------
        series : (S,) int64
            Their places, rising.

        Returns
        -------
        SeriesPanel

        Examples
        --------
        >>> panel = SeriesPanel(("a", "b"), [0, 1, 3], [3, 3, 4], [1.0, 2.0, 5.0], Frequency.DAY)
        >>> panel.take(np.array([1])).values
        array([2., 5.])
        """
        wanted = np.zeros(self.n_series, dtype=np.bool_)
        wanted[series] = True
        kept = wanted[self.series_index]
        offsets = np.concatenate([[0], np.cumsum(np.diff(self.offsets)[wanted])])
        ids = tuple(self.unique_ids[s] for s in np.flatnonzero(wanted))
        return SeriesPanel(ids, offsets, self.period[kept], self.values[kept], self.frequency)

    def until(self, last: int) -> SeriesPanel:
        """Return all series with their values up to a period, that one included.

        Parameters
        ----------
        last : int
            Number of the period.

        Returns
        -------
        SeriesPanel
            Series that begin later are there, without values.

        Examples
        --------
        >>> panel = SeriesPanel(("a", "b"), [0, 1, 3], [4, 3, 4], [1.0, 2.0, 5.0], Frequency.DAY)
        >>> panel.until(3).values
        array([2.])
        """
        kept = self.period <= last
        counts = np.bincount(self.series_index[kept], minlength=self.n_series)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        return SeriesPanel(self.unique_ids, offsets, self.period[kept], self.values[kept], self.frequency)

    def filled(
        self, method: str, start: str = "dataset", *, max_rows: int = MAX_DENSE_ROWS
    ) -> tuple[SeriesPanel, int]:
        """Give every series a value in every period up to the panel's last one.

        Parameters
        ----------
        method : "zero" or "forward"
            Absent periods become 0, as nothing was sold, or repeat the value before them.
        start : "dataset" or "series"
            Begin each series at the panel's first period, or at its own; with "forward" at its own alone.
        max_rows : int
            Most entries that the filled panel may have.

        Returns
        -------
        panel : SeriesPanel
            Without gaps.
        n_filled : int
            Entries that were added.

        Raises
        ------
        ParameterError
            An unknown method or start, or a ``max_rows`` that is no integer.
        DataError
            The filled panel would exceed ``max_rows``.

        Examples
        --------
        >>> panel = SeriesPanel(("a",), [0, 2], [3, 5], [1.0, 2.0], Frequency.DAY)
        >>> dense, n_filled = panel.filled("zero")
        >>> dense.values, n_filled
        (array([1., 0., 2.]), 1)
        """
        if method not in ("zero", "forward"):
            raise ParameterError(f"fill method must be 'zero' or 'forward', not {method!r}")
        if start not in ("dataset", "series"):
            raise ParameterError(f"start must be 'dataset' or 'series', not {start!r}")
        if method == "forward" and start == "dataset":
            raise ParameterError(
                "the fill 'forward' has no value before the first of a series: start='series'"
            )
        check_integer(max_rows, "max_rows")
        if not len(self.values):
            return self, 0
        first = self._first_periods(start)
        lengths = self.period.max() + 1 - first
        n_rows = int(lengths.sum())
        if n_rows > max_rows:
            raise DataError(self._too_long(first, n_rows, max_rows))
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        shift = first - offsets[:-1]
        places = self.period - shift[self.series_index]
        if method == "zero":
            values = np.zeros(n_rows)
            values[places] = self.values
        else:
            values = np.repeat(self.values, np.diff(places, append=n_rows))
        period = np.arange(n_rows) + np.repeat(shift, lengths)
        panel = SeriesPanel(self.unique_ids, offsets, period, values, self.frequency)
        return panel, n_rows - len(self.values)

    def _first_periods(self, start: str) -> IntArray:
        if start == "dataset":
            return np.full(self.n_series, self.period.min())
        first = np.full(self.n_series, self.period.max() + 1)  # a series without entries stays without
        has_rows = np.diff(self.offsets) > 0
        first[has_rows] = self.period[self.offsets[:-1][has_rows]]
        return first

    def _too_long(self, first: IntArray, n_rows: int, max_rows: int) -> str:
        earliest, latest = (self.frequency.text(period, "s") for period in (first.min(), self.period.max()))
        return (
            f"filling {self.n_series} series from {earliest} to {latest} makes {n_rows} rows, "
            f"more than {max_rows}: is one of the times mistyped?"
        )

    def _refuse_bad_entries(self) -> None:
        if not all_finite(self.values):
            bad = np.flatnonzero(~np.isfinite(self.values))
            refuse_each(bad, lambda i: f"{self._place(i)}: the value is {self.values[i]}")
        same = self.series_index[1:] == self.series_index[:-1]
        step = np.diff(self.period)
        bad = np.flatnonzero(same & (step <= 0)) + 1
        twice = "appears twice: a series has one value in a period"
        refuse_each(bad, lambda i: f"{self._place(i)} {twice if step[i - 1] == 0 else 'comes too late'}")

    def _place(self, entry: int) -> str:
        moment = self.frequency.text(self.period[entry], "s")
        return f"series {self.unique_ids[self.series_index[entry]]!r}, period {moment}"


def _refuse_missing(columns: Sequence[str]) -> None:
    missing = [name for name in _COLUMNS if name not in columns]
    refuse([f"column {name!r} is missing; there are {list(columns)}" for name in missing])


def _check_columns(frame: pl.DataFrame, frequency: Frequency) -> None:
    _refuse_missing(frame.columns)
    schema = frame.schema
    is_numbered = frequency is Frequency.INTEGER and schema["ds"].is_integer()
    faults = []
    if schema["unique_id"] != pl.String:
        faults.append(f"column 'unique_id' must be text or integers, not {schema['unique_id']}")
    if not (schema["ds"] == pl.Date or isinstance(schema["ds"], pl.Datetime) or is_numbered):
        advice = {
            pl.String: ": str.to_datetime() of polars or to_datetime() of pandas reads them",
            pl.Object: ": of periods of pandas, dt.to_timestamp() makes them",
        }.get(schema["ds"].base_type(), "")
        faults.append(f"column 'ds' must hold times, not {schema['ds']}{advice}")
    if not schema["y"].is_numeric():
        faults.append(f"column 'y' must hold numbers, not {schema['y']}")
    for name in _COLUMNS:
        column = frame[name]
        missing = (
            column.is_null() | column.is_nan() if column.dtype.is_float() else column.is_null()
        ).arg_true()
        if len(missing):
            number = counted(len(missing), "missing value")
            faults.append(f"column {name!r} has {number}, the first in row {missing[0] + 1}")
    refuse(faults)
