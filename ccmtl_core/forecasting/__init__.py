"""Time series: their calendar and panel, lags as features, and forecasts over several periods."""

from ccmtl_core.forecasting.calendar import Frequency
from ccmtl_core.forecasting.lags import (
    LaggedPanel,
    lag_dataset,
    latest_lags,
    n_periods_held_out,
    split_by_time,
)
from ccmtl_core.forecasting.panel import MAX_DENSE_ROWS, SeriesPanel
from ccmtl_core.forecasting.recursion import recursive_forecast
from ccmtl_core.forecasting.series_file import read_series

__all__ = [
    "MAX_DENSE_ROWS",
    "Frequency",
    "LaggedPanel",
    "SeriesPanel",
    "lag_dataset",
    "latest_lags",
    "n_periods_held_out",
    "read_series",
    "recursive_forecast",
    "split_by_time",
]
