"""Keep a forecaster with its version: what is known of series and ranges as matrices, the rest as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ccmtl_core import CCMTLModel
from ccmtl_core.forecasting import ForecastModel, RangeTable, RowFeatures

_BEFORE_TAIL = 8


def series_matrix(forecaster: ForecastModel) -> NDArray[np.float64]:
    """Return (T, 8 + R): last period, unit, whether forecasts end at zero, constant, ranges, newest values.

    Of the ranges there is what :attr:`RangeTable.of_series` holds. NaN stands for the constant of a
    series that changes, for values that are not known, and for the size of a series that is rarely zero.
    """
    of_series = forecaster.last_period, forecaster.scale, forecaster.nonnegative, forecaster.constant
    columns = (part.astype(np.float64) for part in of_series)
    return np.column_stack([*columns, forecaster.ranges.of_series.T, forecaster.tail])


def ranges_matrix(forecaster: ForecastModel) -> NDArray[np.float64]:
    """Return the tables of the ranges (G, h · q), step by step."""
    tables = forecaster.ranges.tables
    return tables.reshape(len(tables), -1)


def as_configuration(forecaster: ForecastModel) -> dict[str, Any]:
    """Return what :func:`restored` reads in the configuration of a version."""
    return {
        "frequency": forecaster.frequency.value,
        "horizon": forecaster.horizon,
        "rows": forecaster.features.to_dict(),
    }


def restored(
    model: CCMTLModel,
    series: NDArray[np.float64],
    ranges: NDArray[np.float64],
    configuration: Mapping[str, Any],
) -> ForecastModel:
    """Return the forecaster that was stored, without the report of its fit."""
    last_period, scale, nonnegative, constant, *of_ranges = series[:, :_BEFORE_TAIL].T
    horizon = configuration["horizon"]
    return ForecastModel(
        model=model,
        features=RowFeatures.from_dict(configuration["rows"]),
        horizon=horizon,
        frequency=configuration["frequency"],
        scale=scale,
        nonnegative=nonnegative != 0.0,
        constant=constant,
        tail=series[:, _BEFORE_TAIL:],
        last_period=last_period.astype(np.int64),
        ranges=RangeTable.from_parts(ranges.reshape(len(ranges), horizon, -1), np.array(of_ranges)),
    )
