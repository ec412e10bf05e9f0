"""Forecasts of one window by a forecaster that was fitted to what lay before it, and by its rivals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import polars as pl

from ccmtl_core.base.types import BoolArray, FloatArray
from ccmtl_core.choices.model_choices import ModelChoices
from ccmtl_core.fitting.rivals import SAME_CHOICES, rival_models
from ccmtl_core.forecasting import metrics
from ccmtl_core.forecasting.calibration.held_out import WINDOW
from ccmtl_core.forecasting.calibration.residuals import rolling_residuals
from ccmtl_core.forecasting.calibration.value_ranges import ranges_of
from ccmtl_core.forecasting.features import RowFeatures
from ccmtl_core.forecasting.fitted.forecast_model import ForecastModel
from ccmtl_core.forecasting.fitted.latest_rows import latest_tails
from ccmtl_core.forecasting.lone_values import without_lone_values
from ccmtl_core.forecasting.row_maker import RowMaker
from ccmtl_core.forecasting.series_rows import direct_statistics, rolling_origins
from ccmtl_core.model.ccmtl_model import CCMTLModel
from ccmtl_core.series.columns import SeriesColumns
from ccmtl_core.series.panel import SeriesPanel

OURS = "ccmtl"
NAIVE = ("zero", "seasonal_naive", "window_average")
SAME_ROWS = ("pooled", "single_task", "shrunk")
RIVALS = NAIVE + SAME_ROWS
"""Always zero, the value one season before, the mean of the last values; then on the rows of the model one
model for all series, each series alone, and each shrunk to the one."""
WITH_RANGES = (OURS, "seasonal_naive")
PIT_QUANTILES = tuple(i / 200 for i in range(1, 200))
"""Quantiles that the PIT is told by: of whole numbers many are alike, and where they part must be told."""
_NUMBERS = 2**22


class QuantileScores(NamedTuple):
    """How right Q quantiles of one method were in a window.

    Parameters
    ----------
    loss : (T, h) float64
        Sum over the quantiles of the pinball loss of each value; NaN where it is not known.
    totals : (4, Q) float64
        Of each quantile over all values: the pinball loss in units of the series, how many values are below
        or at it, how many have a randomised PIT that is, and how many are known.
    n_in_units : int
        Values of series that have a unit.
    """

    loss: FloatArray
    totals: FloatArray
    n_in_units: int


class Window:
    """Values of one window (T, h), forecasts and ranges of each method, and the units of each series.

    Forecasts are by fits to ``before`` without its lone values; units are those of the values as they are.
    """

    def __init__(
        self,
        panel: SeriesPanel,
        before: SeriesPanel,
        origin: int,
        forecaster: ForecastModel,
        names: Sequence[str],
        wanted: Mapping[str, float],
        quantiles: Sequence[float] = (),
        columns: SeriesColumns | None = None,
    ) -> None:
        self.origin, self.rows, T, h = origin, forecaster.features, panel.n_series, forecaster.horizon
        self.y = np.full((T, h), np.nan)
        inside = (panel.period > origin) & (panel.period <= origin + h)
        self.y[panel.series_index[inside], panel.period[inside] - origin - 1] = panel.values[inside]
        scored = ~np.isnan(self.y)
        if columns is not None:
            columns = _known_where_scored(columns, scored, panel.unique_ids, origin)
        self.units = [np.repeat(unit[:, None], h, axis=1) for unit in metrics.changes(before)]
        n = np.maximum(np.diff(before.offsets), 1)
        self.volume = np.bincount(before.series_index, np.abs(before.values), T) / n
        known = ~np.isnan(forecaster.tail)
        mean = np.where(known, forecaster.tail, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
        mean[~known.any(axis=1)] = np.nan
        learned = without_lone_values(before).panel
        models = {OURS: forecaster, **_rival_forecasters(learned, forecaster, names, columns)}
        self.yhat: dict[str, FloatArray] = {}
        self.ends: dict[str, FloatArray] = {}
        self.pit: dict[str, FloatArray] = {}
        self.quantiles: dict[str, QuantileScores] = {}
        for name in names:
            if name == "zero":
                self.yhat[name] = np.where(np.isnan(mean)[:, None], np.nan, np.zeros((T, h)))
                continue
            model = _from_origin(models[name], origin)
            if columns is not None:  # nor need those of a series be known that ended before
                tail = np.where(scored.any(axis=1)[:, None], model.tail, np.nan)
                model = replace(model, tail=tail)
            found = model.point_forecasts(columns=columns)
            # A series whose last value is older than its features reach is forecast by its mean.
            self.yhat[name] = np.where(np.isnan(found), mean[:, None], found)
            if name in WITH_RANGES and (wanted or quantiles):
                self.ends[name] = model.quantile_forecasts(list(wanted.values()), columns=columns)
                self.pit[name] = self._pit(model, columns)
            if name in WITH_RANGES and quantiles:
                self.quantiles[name] = self._of_quantiles(model, quantiles, self.pit[name], columns)

    def _pit(self, model: ForecastModel, columns: SeriesColumns | None) -> FloatArray:
        """The randomised PIT of the values, (T, h), for some series at a time."""
        parts = [
            metrics.randomised_pit(self.y[some], found, PIT_QUANTILES, seed=some.start)
            for some, found in _quantiles(model, PIT_QUANTILES, columns)
        ]
        return np.concatenate(parts)

    def _of_quantiles(
        self, model: ForecastModel, quantiles: Sequence[float], pit: FloatArray, columns: SeriesColumns | None
    ) -> QuantileScores:
        """Score quantiles, for some series at a time."""
        p, loss = np.asarray(quantiles), np.empty(self.y.shape)
        totals, n_in_units = np.zeros((4, len(p))), 0
        unit = np.where(self.units[1] > 0.0, self.units[1], np.nan)
        for some, found in _quantiles(model, quantiles, columns):
            error = found - self.y[some][:, :, None]
            each = np.maximum(-p * error, (1.0 - p) * error)
            loss[some] = each.sum(axis=2)
            known = ~np.isnan(loss[some])
            in_units = (each / unit[some][:, :, None])[known & ~np.isnan(unit[some])]
            n_in_units += len(in_units)
            reached, mass = error[known] >= 0.0, pit[some][known][:, None] <= p
            totals += (
                in_units.sum(axis=0),
                reached.sum(axis=0),
                mass.sum(axis=0),
                np.full(len(p), len(reached)),
            )
        return QuantileScores(loss, totals, n_in_units)


def _quantiles(
    model: ForecastModel, quantiles: Sequence[float], columns: SeriesColumns | None
) -> Iterator[tuple[slice, FloatArray]]:
    """Quantiles (n, h, Q) of n series at a time, so many that memory does not grow with their number."""
    n = max(1, _NUMBERS // (model.horizon * len(quantiles)))
    for start in range(0, len(model.unique_ids), n):
        ids = model.unique_ids[start : start + n]
        yield slice(start, start + n), model.quantile_forecasts(quantiles, unique_ids=ids, columns=columns)


def _known_where_scored(
    columns: SeriesColumns, scored: BoolArray, unique_ids: Sequence[str], origin: int
) -> SeriesColumns:
    """The columns, with zero where they need not be known: in periods of the window that are not scored.

    So a product that ended within the window does not stop the others.
    """
    t, step = np.nonzero(~scored)
    place, period = columns.places(unique_ids)[t], origin + 1 + step
    values = columns.at(place, period)
    lacks = np.isnan(values).any(axis=1) & (place >= 0)
    if not columns.unique_ids or not lacks.any():
        return columns
    series, period = place[lacks], period[lacks]
    before = pl.DataFrame({"series": columns.series, "period": columns.period})
    added = before.clear().vstack(pl.DataFrame({"series": series, "period": period}))
    kept = before.with_row_index().join(added, on=["series", "period"], how="anti")["index"].to_numpy()
    series, period = np.append(columns.series[kept], series), np.append(columns.period[kept], period)
    values = np.concatenate([columns.values[kept], np.nan_to_num(values[lacks])])
    order = np.lexsort((period, series))
    return replace(columns, series=series[order], period=period[order], values=values[order])


def _from_origin(model: ForecastModel, origin: int) -> ForecastModel:
    """The model with all series forecast from one period on; NaN at the end of tails that stop before."""
    R = model.tail.shape[1]
    place = np.arange(R) + (origin - model.last_period)[:, None]
    moved = np.take_along_axis(model.tail, np.minimum(place, R - 1), axis=1)
    return replace(
        model, tail=np.where(place < R, moved, np.nan), last_period=np.full(len(model.tail), origin)
    )


def _rival_forecasters(
    before: SeriesPanel, forecaster: ForecastModel, names: Sequence[str], columns: SeriesColumns | None
) -> dict[str, ForecastModel]:
    """The rivals that have a model: weight 1 for one feature, or fitted to the rows of the forecaster."""
    rivals = {}
    season = forecaster.frequency.season
    single = {
        "seasonal_naive": RowFeatures(seasons=((season, 1),)),
        "window_average": RowFeatures(windows=(WINDOW,)),
    }
    for name, features in single.items():
        if name in names:
            rivals[name] = of_one_feature(before, forecaster, features)
    if not set(names) & set(SAME_ROWS):
        return rivals
    report = forecaster.report
    if "choices" not in report:  # no series ever changed: each method forecasts its constant
        return rivals | dict.fromkeys(SAME_ROWS, forecaster)
    n_origins = report["n_origins"]
    total = direct_statistics(
        before, forecaster.features, forecaster.horizon, n_blocks=1, n_origins=n_origins, columns=columns
    )
    choices = ModelChoices(**report["choices"])
    tried = [one["shrinkages"] for one in report["tried"] if one["choices"] == report["choices"]]
    shrinkages = tried[0] if tried else {"shrunk": 1.0, f"shrunk{SAME_CHOICES}": 1.0}
    models = rival_models(total[0], choices, shrinkages)
    return rivals | {name: replace(forecaster, model=models[name + SAME_CHOICES]) for name in SAME_ROWS}


def of_one_feature(before: SeriesPanel, forecaster: ForecastModel, features: RowFeatures) -> ForecastModel:
    """Return a forecaster whose forecast is its only feature, with ranges calibrated as those of all."""
    T, h = before.n_series, forecaster.horizon
    model = CCMTLModel(np.ones((T, 1)), before.unique_ids, features.names)
    origins = rolling_origins(before, features, h, forecaster.report["n_origins"])
    maker = RowMaker(before, features, h, origins, forecaster.scale, forecaster.constant, n_blocks=2)
    residuals, first = rolling_residuals(maker, T, len(maker.bounds), lambda block: model)
    ranges = ranges_of(before, forecaster.scale, residuals, first, np.zeros(T, dtype=np.int64))
    tail, last = latest_tails(before, features.reach)
    return replace(forecaster, model=model, features=features, tail=tail, last_period=last, ranges=ranges)
