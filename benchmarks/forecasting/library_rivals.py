"""Rivals of statsforecast, mlforecast and LightGBM, as rivals.toml sets them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import polars as pl
from lightgbm import LGBMRegressor  # type: ignore[import-not-found]
from mlforecast import MLForecast  # type: ignore[import-not-found]
from mlforecast.lag_transforms import RollingMean  # type: ignore[import-not-found]
from statsforecast import StatsForecast  # type: ignore[import-not-found]
from statsforecast.models import AutoETS, CrostonSBA  # type: ignore[import-not-found]

from benchmarks.forecasting.rivals import SETTINGS, Attempt, Case
from benchmarks.stopwatch import Seconds, Stopwatch
from ccmtl_core.base.types import FloatArray, IntArray
from ccmtl_core.forecasting import Frequency, direct_rows, latest_rows, rolling_origins

INTERVALS = {Frequency.DAY: "1d", Frequency.WEEK: "1w", Frequency.MONTH: "1mo"}
"""Periods of the sets, as these libraries call them."""


def croston_sba(case: Case) -> Attempt:
    """Croston's method with the correction of Syntetos and Boylan."""
    return _by_statsforecast(case, CrostonSBA(), np.arange(case.data.panel.n_series))


def auto_ets(case: Case) -> Attempt:
    """Exponential smoothing, its form chosen by the corrected Akaike criterion."""
    T = case.data.panel.n_series
    most = T if case.on_all_series else SETTINGS["auto_ets"]["most_series"]
    drawn = np.unique(np.linspace(0, T - 1, min(T, most)).round().astype(np.int64))
    return _by_statsforecast(case, AutoETS(season_length=case.data.season), drawn)


def lightgbm_lags(case: Case) -> Attempt:
    """Boosted trees on lags, rolling means and the date, forecasts fed back as lags."""
    data, settings = case.data, SETTINGS["lightgbm_lags"][case.name]
    frame = _long(case, np.arange(data.panel.n_series))
    fitting, all_of_it = Stopwatch(), Stopwatch()
    with all_of_it.running():
        model = MLForecast(
            models={"yhat": _trees()},
            freq=INTERVALS[data.panel.frequency],
            lags=settings["lags"],
            lag_transforms={1: [RollingMean(window) for window in settings["rolling_means"]]},
            date_features=settings["date_features"],
            num_threads=SETTINGS["threads"],
        )
        with fitting.running():
            model.fit(frame)
        yhat = model.predict(data.horizon)["yhat"].to_numpy().reshape(data.held_out.shape)
    return Attempt(yhat, all_of_it.seconds, fitting.seconds)


def lightgbm_rows(case: Case) -> Attempt:
    """Boosted trees on the rows that were chosen for ours; forecasts end as ours do."""
    forecaster, panel, h = case.forecaster, case.data.panel, case.data.horizon
    most = SETTINGS["lightgbm_rows"]["most_rows"] // (panel.n_series * h)
    n_origins = min(int(forecaster.report["n_origins"]), most)
    origins = rolling_origins(panel, forecaster.features, h, n_origins)
    fitting, all_of_it = Stopwatch(), Stopwatch()
    with all_of_it.running():
        with fitting.running():
            rows = direct_rows(panel, forecaster.features, h, origins=origins, scale=forecaster.scale).dataset
            trees = _trees().fit(rows.X, rows.y)
        of_series = forecaster.scale, range(1, h + 1), forecaster.last_period, panel.frequency
        X, _ = latest_rows(forecaster.tail, forecaster.features, *of_series)
        yhat = trees.predict(X.reshape(-1, X.shape[2])).reshape(X.shape[:2]) * forecaster.scale[:, None]
        yhat[forecaster.nonnegative] = np.maximum(yhat[forecaster.nonnegative], 0.0)
        constant = ~np.isnan(forecaster.constant)
        yhat[constant] = forecaster.constant[constant, None]
    return Attempt(yhat, all_of_it.seconds, fitting.seconds)


def _trees() -> Any:
    warnings.filterwarnings("ignore", message="X does not have valid feature names")
    settings = SETTINGS["lightgbm"]
    return LGBMRegressor(**settings, n_jobs=SETTINGS["threads"], random_state=SETTINGS["seed"], verbosity=-1)


def _by_statsforecast(case: Case, model: Any, series: IntArray) -> Attempt:
    """Forecast some series, in one process; the seconds are scaled up to all of them."""
    h, T = case.data.horizon, case.data.panel.n_series
    frame = _long(case, series)
    _forecast(model, frame.head(2 * case.data.history.shape[1]), case, 1)  # loads what is compiled
    watch = Stopwatch()
    with watch.running():
        yhat = _forecast(model, frame, case, h).reshape(-1, h)
    seconds = Seconds(*(part * T / len(series) for part in watch.seconds))
    return Attempt(yhat, seconds, series=None if len(series) == T else series)


def _forecast(model: Any, frame: pl.DataFrame, case: Case, h: int) -> FloatArray:
    forecasts = StatsForecast(models=[model], freq=INTERVALS[case.data.panel.frequency], n_jobs=1)
    yhat: FloatArray = forecasts.forecast(df=frame, h=h).to_series(2).to_numpy()
    return yhat


def _long(case: Case, series: IntArray) -> pl.DataFrame:
    """The history as these libraries take it."""
    panel = case.data.panel if len(series) == case.data.panel.n_series else case.data.panel.take(series)
    dates = pl.Series(panel.frequency.to_datetime(panel.period)).cast(pl.Date)
    ids = pl.Series(panel.unique_ids, dtype=pl.String)[panel.series_index]
    return pl.DataFrame({"unique_id": ids, "ds": dates, "y": panel.values})
