"""The fitted forecaster: a linear model of the rows of each series, and what dates and scales forecasts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Unpack

import numpy as np
import polars as pl

from ccmtl_core.base.arguments import check_integer, check_kind
from ccmtl_core.base.arrays import MAX_FAULTS, as_integers, as_shape, frozen
from ccmtl_core.base.display import counted, named, quoted, shown
from ccmtl_core.base.exceptions import DataError
from ccmtl_core.base.frozen_value import FrozenValue
from ccmtl_core.base.types import BoolArray, FloatArray, IntArray
from ccmtl_core.forecasting.calibration.range_table import RangeTable
from ccmtl_core.forecasting.features import RowFeatures
from ccmtl_core.forecasting.fitted.forecast_request import Newest, Start, range_columns
from ccmtl_core.forecasting.fitted.forecaster_file import read_forecaster, write_forecaster
from ccmtl_core.forecasting.fitted.latest_rows import (
    bounds_beyond,
    columns_beside,
    dated,
    farthest,
    latest_rows,
    latest_tails,
    missing_by_series,
    missing_columns,
    not_known,
    refuse_missing,
)
from ccmtl_core.forecasting.lone_values import without_lone_values
from ccmtl_core.forecasting.row_maker import (
    MAX_HORIZON,
    check_panel,
    checked_scale,
    constant_values,
    never_negative,
    unit_of_ranges,
)
from ccmtl_core.graph.knn_graph import TaskGraph
from ccmtl_core.model.ccmtl_model import CCMTLModel, predict_rows
from ccmtl_core.series.calendar import Frequency
from ccmtl_core.series.columns import SeriesColumns
from ccmtl_core.series.panel import SeriesPanel

_ROUNDING = 1e-12
"""Of the sizes of what is added: their sum is no nearer to the forecast."""
_NUMBERS = 2**22
"""Numbers in the rows of the forecasts that are made at a time."""


@dataclass(frozen=True, eq=False)
class ForecastModel(FrozenValue):
    """Forecasts T series ``horizon`` periods ahead of the values that it was fitted to, or of newer ones.

    Parameters
    ----------
    model : CCMTLModel
        Weights of the features, for values in units of ``scale``; its tasks are the series.
    features : RowFeatures
        P features.
    horizon : int
        Steps that it was fitted to.
    frequency : Frequency
        What a period is.
    scale : (T,) float64
        The unit of each series.
    nonnegative : (T,) bool
        Whether forecasts end at zero, as no value was negative; nor may one of newer values be.
    constant : (T,) float64
        The value of a series that never changed, which is its forecast; NaN for others.
    tail : (T, R) float64
        Newest values, newest last; NaN where not known.
    last_period : (T,) int64
        The period of the newest value.
    ranges : RangeTable
        Quantiles of its errors in units of ``scale``, from forecasts of past blocks of time.
    report : mapping
        What was tried and chosen, as JSON can hold it.
    graph : TaskGraph, optional
        What the series were fused along; None of a forecaster from a file.

    Raises
    ------
    DataError
        Shapes that do not fit.
    """

    model: CCMTLModel
    features: RowFeatures
    horizon: int
    frequency: Frequency
    scale: FloatArray
    nonnegative: BoolArray
    constant: FloatArray
    tail: FloatArray
    last_period: IntArray
    ranges: RangeTable
    report: Mapping[str, Any] = field(default_factory=dict)
    graph: TaskGraph | None = None

    def __post_init__(self) -> None:
        T = len(self.model.task_ids)
        if self.model.feature_names != self.features.names:
            raise DataError(f"the model's features must be {', '.join(self.features.names)}")
        check_integer(self.horizon, "horizon", 1, MAX_HORIZON)
        check_kind(self.ranges, "ranges", RangeTable)
        if len(self.ranges.group) != T:
            raise DataError(f"ranges must be of {T} series; got {len(self.ranges.group)}")
        checked = {
            "frequency": Frequency(self.frequency),
            "scale": checked_scale(self.scale, T),
            "nonnegative": frozen(np.asarray(self.nonnegative, dtype=np.bool_)),
            "constant": as_shape(self.constant, (T,), "constant"),
            "tail": as_shape(self.tail, (T, np.shape(self.tail)[-1]), "tail"),
            "last_period": frozen(as_integers(self.last_period, "last_period")),
            "report": MappingProxyType(json.loads(json.dumps(dict(self.report), allow_nan=False))),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        for name in ("nonnegative", "last_period"):
            if getattr(self, name).shape != (T,):
                raise DataError(f"{name} must be ({T},); got {getattr(self, name).shape}")

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "report": dict(self.report)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({**state, "report": MappingProxyType(state["report"])})

    def __repr__(self) -> str:
        ahead = f"{counted(self.horizon, 'period')} ahead, frequency {self.frequency.value}"
        return shown(self, f"{len(self.unique_ids):,} series", named(self.features.names, "feature"), ahead)

    @property
    def unique_ids(self) -> tuple[str, ...]:
        """Ids of the T series."""
        return self.model.task_ids

    def forecast(
        self,
        h: int | None = None,
        *,
        level: Sequence[float] = (),
        quantiles: Sequence[float] = (),
        **newest: Unpack[Newest],
    ) -> pl.DataFrame:
        """Forecast each series from its newest value on.

        Parameters
        ----------
        h : int, optional
            Periods; by default the horizon. Those beyond it feed on the forecasts before them, and go no
            farther than a series drifts whose changes all have its usual size and one direction.
        level : sequence of float
            Percentages, from 1 to 99: what share of values each range shall hold.
        quantiles : sequence of float
            From 0.005 to 0.995.
        **newest
            ``panel``: newer values to forecast from, of all or some of the series; by default those of the
            fit. Nothing is fitted again; lone values are cut as :func:`without_lone_values` does.
            ``unique_ids``: series to forecast, in this order; by default all. ``columns``: what the ``past``
            and ``future`` features name, at the newest period and at each target.

        Returns
        -------
        DataFrame
            Columns ``unique_id``, ``ds`` (the date of the period; hours as times in UTC) and ``yhat``; for
            each level ``yhat-lo-80`` and ``yhat-hi-80``, for each quantile ``yhat-q-10``. A series without
            any value has no rows; nor has, where no ``unique_ids`` are named, one that :meth:`ended`.

        Raises
        ------
        UnknownTaskError
            A series that it was not fitted to.
        ParameterError, DataError
            Arguments out of their range, a panel of another frequency, or columns that are not known: a
            fault for each series, with its periods.
        """
        wanted = range_columns(level, quantiles)
        start, h = self._asked(h, **newest)
        yhat = self._values(start, h)
        frame = self._dated(start, yhat.shape[1]).with_columns(yhat=yhat.ravel())
        found = self._quantiles(start, yhat, list(wanted.values()))
        ranges = {name: found[:, :, q].ravel() for q, name in enumerate(wanted)}
        return frame.with_columns(**{name: pl.Series(v) for name, v in ranges.items()}).drop_nans("yhat")

    def with_newest(self, panel: SeriesPanel) -> ForecastModel:
        """Return the forecaster with newer values to forecast from; nothing is fitted again.

        Parameters
        ----------
        panel : SeriesPanel
            Of some of the series; the others keep the values that they have.

        Returns
        -------
        ForecastModel

        Raises
        ------
        UnknownTaskError, ParameterError, DataError
            A series that it was not fitted to, no panel, or one of another frequency.
        """
        own, newer, last, constant, nonnegative = self._newest(panel)
        R = max(newer.shape[1], self.tail.shape[1])
        tail = np.full((len(self.tail), R), np.nan)
        tail[:, R - self.tail.shape[1] :] = self.tail
        tail[own] = np.nan
        tail[own, R - newer.shape[1] :] = newer
        ends, constants, signs = self.last_period.copy(), self.constant.copy(), self.nonnegative.copy()
        ends[own], constants[own], signs[own] = last, constant, nonnegative
        return replace(self, tail=tail, last_period=ends, constant=constants, nonnegative=signs)

    def point_forecasts(self, h: int | None = None, **newest: Unpack[Newest]) -> FloatArray:
        """Return the values of :meth:`forecast` as an array (n, h); NaN for a series without a forecast."""
        return self._values(*self._asked(h, **newest))

    def quantile_forecasts(
        self, quantiles: Sequence[float], h: int | None = None, **newest: Unpack[Newest]
    ) -> FloatArray:
        """Return quantiles as :meth:`forecast` does, in an array (n, h, q)."""
        start, h = self._asked(h, **newest)
        return self._quantiles(start, self._values(start, h), quantiles)

    def contributions(self, h: int | None = None, **newest: Unpack[Newest]) -> pl.DataFrame:
        """Return what each feature adds to each forecast.

        Parameters
        ----------
        h, **newest
            As in :meth:`forecast`.

        Returns
        -------
        DataFrame
            Columns ``unique_id``, ``ds``, ``yhat``, one for each feature, ``intercept``, and ``adjustment``:
            what leads from their sum to ``yhat`` where that ends at zero, was cut, or is a series' constant.
        """
        start, h = self._asked(h, **newest)
        n, names = len(start.rows), self.features.names
        parts = np.empty((n, h, len(names)))
        yhat, done = np.empty((n, h)), 0
        unit = np.where(np.isnan(start.constant), self.scale[start.rows], 0.0)
        for X, forecast in self._walk(start, h):
            ahead = slice(done, done + X.shape[1])
            parts[:, ahead] = X * (self.model.weights[start.rows] * unit[:, None])[:, None, :]
            yhat[:, ahead], done = forecast, ahead.stop
        intercept = np.repeat(self.model.intercept[start.rows] * unit, h)
        added = {name: pl.Series(parts[:, :, p].ravel()) for p, name in enumerate(names)}
        each = parts.reshape(n * h, -1)
        adjustment = yhat.ravel() - each.sum(axis=1) - intercept
        adjustment[np.abs(adjustment) <= _ROUNDING * (np.abs(each).sum(axis=1) + np.abs(intercept))] = 0.0
        frame = self._dated(start, h).with_columns(yhat=yhat.ravel())
        added |= {"intercept": pl.Series(intercept), "adjustment": pl.Series(adjustment)}
        return frame.with_columns(**added).drop_nans("yhat")

    def ended(self, h: int | None = None, **newest: Unpack[Newest]) -> tuple[str, ...]:
        """Return the series that ended long ago, whose columns beside the values are not known since.

        No forecast of theirs is of the future: all ``h`` periods after their last value lie at or before the
        newest one of all series. So nobody is asked for the prices of those periods. Forecasts of all series
        leave them out, and those of ``unique_ids`` refuse them.

        Parameters
        ----------
        h, **newest
            As in :meth:`forecast`; without ``columns`` nothing is known of their periods.

        Returns
        -------
        tuple of str
            Their ids; none where the features name no columns.

        Examples
        --------
        >>> from ccmtl_core.forecasting import RowFeatures, SeriesPanel, fit_forecaster
        >>> panel = SeriesPanel(("old", "sold"), [0, 9, 29], [*range(9), *range(20)], range(29), "D")
        >>> series, period = [0] * 9 + [1] * 22, [*range(9), *range(22)]
        >>> price = np.where(np.arange(31) % 3, 2.0, 3.0)[:, None]
        >>> prices = SeriesColumns(("price",), panel.unique_ids, series, period, price, "D")
        >>> model = fit_forecaster(panel, 2, rows=RowFeatures(lags=(1,), future=("price",)), columns=prices)
        >>> model.ended(columns=prices)
        ('old',)
        """
        start, steps = self._start(**newest), self._checked_steps(h)
        return self._ids(start.rows[self._are_ended(start, steps)])

    def missing_columns(self, h: int | None = None, **newest: Unpack[Newest]) -> pl.DataFrame:
        """Return what a forecast still needs to know beside the values.

        Parameters
        ----------
        h, **newest
            As in :meth:`forecast`; without ``columns`` nothing is known yet.

        Returns
        -------
        DataFrame
            A row with ``unique_id``, ``ds`` and ``column`` for each number that is missing; none of series
            that :meth:`ended`, unless ``unique_ids`` names them.
        """
        start, h = self._start(**newest), self._checked_steps(h)
        if newest.get("unique_ids") is None:
            start = start.part(np.flatnonzero(~self._are_ended(start, h)))
        return self._missing(start, h)

    def save(self, path: str | Path) -> None:
        """Write it to one ``.npz`` file without pickle, whole or not at all.

        Raises
        ------
        ParameterError
            The path is a folder, a pipe or a device, or its folder does not exist.
        OSError
            The file cannot be written.
        """
        write_forecaster(path, {part.name: getattr(self, part.name) for part in fields(self)})

    @classmethod
    def load(cls, path: str | Path) -> ForecastModel:
        """Read a file that :meth:`save` wrote; nothing in it can run code.

        Raises
        ------
        ModelFileError
            The file is damaged or is not one of a forecaster.
        ParameterError
            The path is not a path.
        OSError
            The file cannot be read.
        """
        return read_forecaster(path, cls)

    def _checked_steps(self, h: int | None) -> int:
        if h is None:
            return self.horizon
        check_integer(h, "h", 1, MAX_HORIZON)
        return int(h)

    def _asked(self, h: int | None, **newest: Unpack[Newest]) -> tuple[Start, int]:
        """Where forecasts begin, without a value of series that ended, and how far they go."""
        h, start = self._checked_steps(h), self._start(**newest)
        if not (self.features.past or self.features.future) or start.columns is None:
            return start, h
        ended = self._are_ended(start, h)
        if ended.any() and newest.get("unique_ids") is not None:
            self._refuse_ended(start.part(np.flatnonzero(ended)), h)
        start = start._replace(tail=np.where(ended[:, None], np.nan, start.tail))
        if h > self.horizon:  # else the rows find what is missing
            refuse_missing(self._missing(start.part(np.flatnonzero(_have_values(start))), h))
        return start, h

    def _are_ended(self, start: Start, h: int) -> BoolArray:
        """Which series ended, (n,), as :meth:`ended` describes it."""
        ended = np.zeros(len(start.rows), dtype=np.bool_)
        late = np.flatnonzero(_have_values(start) & (start.last + h <= self._newest_period(start)))
        if len(late) and (self.features.past or self.features.future):
            past, future = self._beside(start.part(late), h)
            ended[late] = np.isnan(past).any(axis=1) | np.isnan(future).any(axis=(1, 2))
        return ended

    def _newest_period(self, start: Start) -> int:
        return int(np.concatenate([self.last_period, start.last]).max())

    def _refuse_ended(self, ended: Start, h: int) -> None:
        """Refuse series that were asked for by name."""
        missing = missing_by_series(self._missing(ended, h))
        *days, newest = dated(np.array([*ended.last, self._newest_period(ended)]), self.frequency)
        end_of = dict(zip(ended.ids, days, strict=True))
        faults = [
            f"series {quoted(unique_id)} ended at {end_of[unique_id]}, {counted(h, 'period')} or more before "
            f"the newest one, {newest}, and {not_known(*needed)}: leave it out, or add rows without a value "
            "that say it"
            for unique_id, *needed in missing.head(MAX_FAULTS).iter_rows()
        ]
        raise DataError(faults, len(missing))

    def _missing(self, start: Start, h: int) -> pl.DataFrame:
        """What is not known of the columns."""
        steps = np.arange(1, h + 1)
        return missing_columns(
            *self._beside(start, h), self.features, start.ids, start.last, steps, self.frequency
        )

    def _beside(self, start: Start, h: int) -> tuple[FloatArray, FloatArray]:
        """The columns at the last periods (n, C) and ahead (n, h, C'); NaN where not known."""
        if start.columns is None:
            n, n_past, n_future = len(start.rows), len(self.features.past), len(self.features.future)
            return np.full((n, n_past), np.nan), np.full((n, h, n_future), np.nan)
        steps = np.arange(1, h + 1)
        return columns_beside(start.columns, self.features, start.ids, start.last, steps, self.frequency)

    def _start(
        self,
        panel: SeriesPanel | None = None,
        unique_ids: Sequence[str] | None = None,
        columns: SeriesColumns | None = None,
    ) -> Start:
        """Where the forecasts of the series asked for begin."""
        rows = None if unique_ids is None else self.model.rows(unique_ids)
        if panel is None:
            rows = np.arange(len(self.unique_ids)) if rows is None else rows
            newest = self.tail[rows], self.last_period[rows], self.constant[rows], self.nonnegative[rows]
            return Start(rows, *newest, self._ids(rows), columns)
        own, tail, last, constant, nonnegative = self._newest(panel)
        place = np.arange(len(own))
        if rows is not None:
            place_of = np.full(len(self.unique_ids), -1)
            place_of[own] = place
            place = place_of[rows]
            if (place < 0).any():
                missing = self.unique_ids[rows[np.argmin(place)]]
                raise DataError(f"the panel does not hold the series {missing!r}")
        newest = tail[place], last[place], constant[place], nonnegative[place]
        return Start(own[place], *newest, self._ids(own[place]), columns)

    def _newest(self, panel: SeriesPanel) -> tuple[IntArray, FloatArray, IntArray, FloatArray, BoolArray]:
        """Of a panel: rows, newest values, last periods, constants, and which series are never negative."""
        if check_panel(panel).frequency is not self.frequency:
            raise DataError(
                f"the panel's frequency is {panel.frequency.value!r}, the model's {self.frequency.value!r}"
            )
        panel = without_lone_values(panel).panel
        own = self.model.rows(panel.unique_ids)
        constant = np.where(constant_values(panel) == self.constant[own], self.constant[own], np.nan)
        return (
            own,
            *latest_tails(panel, self.features.reach),
            constant,
            self.nonnegative[own] & never_negative(panel),
        )

    def _ids(self, rows: IntArray) -> tuple[str, ...]:
        """The ids of rows of the model."""
        return tuple(map(self.unique_ids.__getitem__, rows.tolist()))

    def _values(self, start: Start, h: int) -> FloatArray:
        """Forecasts (n, h), made for some series at a time."""
        numbers = len(self.features.names) * min(h, self.horizon) + min(self.features.reach, h)
        n = max(1, _NUMBERS // numbers)
        parts = [
            np.concatenate([yhat for _, yhat in self._walk(start.part(slice(first, first + n)), h)], axis=1)
            for first in range(0, len(start.rows), n)
        ]
        return np.concatenate([np.empty((0, h)), *parts])

    def _quantiles(self, start: Start, yhat: FloatArray, quantiles: Sequence[float]) -> FloatArray:
        """Quantiles (n, h, q) around forecasts (n, h); those of a constant series are its constant."""
        unit = unit_of_ranges(self.scale[start.rows], start.constant)
        found = np.empty((*yhat.shape, len(quantiles)))
        n = max(1, _NUMBERS // max(found[:1].size, 1))
        for first in range(0, len(found), n):
            some = slice(first, first + n)
            each = start.rows[some], unit[some], start.nonnegative[some]
            found[some] = self.ranges.around(yhat[some], *each, quantiles)
        return found

    def _walk(self, start: Start, h: int) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Rows (n, H, P) and forecasts (n, H) of one horizon after the other, h steps in all."""
        rows, tail, done = start.rows, start.tail, 0
        scale, constant = self.scale[rows], start.constant[:, None]
        most, near = farthest(tail, scale), np.empty((len(rows), 0))
        while done < h:
            steps = range(1, min(self.horizon, h - done) + 1)
            X, known = latest_rows(
                tail, self.features, scale, steps, start.last + done, self.frequency,
                unique_ids=start.ids, columns=start.columns,
            )  # fmt: skip
            each = np.repeat(rows, len(steps))
            flat = predict_rows(self.model.weights, each, X.reshape(len(each), -1), self.model.intercept)
            yhat = np.clip(flat.reshape(len(rows), -1), -most, most) * scale[:, None]
            if done:
                ahead = range(done + 1, done + 1 + len(steps))
                yhat = np.clip(yhat, *bounds_beyond(start.tail, near, scale, ahead))
            yhat = np.where(start.nonnegative[:, None] & (yhat <= 0.0), 0.0, yhat)
            yhat = np.where(np.isnan(constant), yhat, constant)
            yhat[~known] = np.nan
            yield X, yhat
            near = near if done else yhat
            tail = np.concatenate([tail, yhat], axis=1)[:, -self.features.reach :]
            done += len(steps)

    def _dated(self, start: Start, h: int) -> pl.DataFrame:
        """The ids and dates of forecasts."""
        periods = start.last[:, None] + np.arange(1, h + 1)
        ids = pl.Series(self.unique_ids, dtype=pl.String)[np.repeat(start.rows, h)]
        return pl.DataFrame({"unique_id": ids, "ds": dated(periods.ravel(), self.frequency)})


def _have_values(start: Start) -> BoolArray:
    return np.asarray(~np.isnan(start.tail).all(axis=1))
