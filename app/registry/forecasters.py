"""Keep a forecaster with its version: what is known of series and ranges as matrices, the rest as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ccmtl_core import CCMTLModel
from ccmtl_core.forecasting import ForecastModel, RangeTable, RowFeatures

_BEFORE_TAIL = 6


def series_matrix(forecaster: ForecastModel) -> NDArray[np.float64]:
    """Return (T, 6 + R): last period, unit, whether forecasts end at zero, constant, range, newest values.

    Of the range there are the group and the spread. NaN stands for the constant of a series that changes, and
    for values that are not known.
    """
    of_series = forecaster.last_period, forecaster.scale, forecaster.nonnegative, forecaster.constant
    of_range = forecaster.ranges.group, forecaster.ranges.spread
    return np.column_stack([*(part.astype(np.float64) for part in of_series + of_range), forecaster.tail])


def ranges_matrix(forecaster: ForecastModel) -> NDArray[np.float64]:
    """Return the quantiles of the errors by group (G, h · q), step by step."""
    return forecaster.ranges.quantiles.reshape(len(forecaster.ranges.quantiles), -1)


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
    last_period, scale, nonnegative, constant, group, spread = series[:, :_BEFORE_TAIL].T
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
        ranges=RangeTable(ranges.reshape(len(ranges), horizon, -1), group.astype(np.int64), spread),
    )
