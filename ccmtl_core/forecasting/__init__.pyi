from ccmtl_core.forecasting.backtesting.backtest import Backtest, backtest
from ccmtl_core.forecasting.calibration.range_table import RangeTable
from ccmtl_core.forecasting.features import RowFeatures
from ccmtl_core.forecasting.fitted.forecast_model import ForecastModel
from ccmtl_core.forecasting.fitted.forecast_request import range_columns
from ccmtl_core.forecasting.fitted.latest_rows import latest_rows, latest_tails
from ccmtl_core.forecasting.forecaster import fit_forecaster
from ccmtl_core.forecasting.lone_values import LoneValues, without_lone_values
from ccmtl_core.forecasting.new import MOST_ATTRIBUTES
from ccmtl_core.forecasting.new.all_products import forecast_all
from ccmtl_core.forecasting.new.new_products import NewProducts, new_products, with_attributes
from ccmtl_core.forecasting.row_choice import RowChoice, TriedRows, choose_rows
from ccmtl_core.forecasting.row_maker import series_scale
from ccmtl_core.forecasting.series_file import SeriesTable, read_series, read_series_table
from ccmtl_core.forecasting.series_rows import (
    DirectRows,
    direct_rows,
    direct_statistics,
    rolling_origins,
)
from ccmtl_core.forecasting.totals import total_forecasts
from ccmtl_core.series.calendar import Frequency
from ccmtl_core.series.columns import SeriesColumns
from ccmtl_core.series.lags import (
    LaggedPanel,
    lag_dataset,
    latest_lags,
    n_periods_held_out,
    split_by_time,
)
from ccmtl_core.series.panel import MAX_DENSE_ROWS, SeriesPanel
from ccmtl_core.series.recursion import recursive_forecast

__all__ = [
    "MAX_DENSE_ROWS",
    "MOST_ATTRIBUTES",
    "Backtest",
    "DirectRows",
    "ForecastModel",
    "Frequency",
    "LaggedPanel",
    "LoneValues",
    "NewProducts",
    "RangeTable",
    "RowChoice",
    "RowFeatures",
    "SeriesColumns",
    "SeriesPanel",
    "SeriesTable",
    "TriedRows",
    "backtest",
    "choose_rows",
    "direct_rows",
    "direct_statistics",
    "fit_forecaster",
    "forecast_all",
    "lag_dataset",
    "latest_lags",
    "latest_rows",
    "latest_tails",
    "n_periods_held_out",
    "new_products",
    "range_columns",
    "read_series",
    "read_series_table",
    "recursive_forecast",
    "rolling_origins",
    "series_scale",
    "split_by_time",
    "total_forecasts",
    "with_attributes",
    "without_lone_values",
]
