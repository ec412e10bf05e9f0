"""Keep a forecaster with its version: what is known of series and ranges as matrices, the rest as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ccmtl_core import CCMTLModel
from ccmtl_core.forecasting import ForecastModel, RangeTable, RowFeatures, SeriesColumns

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


def attribute_matrix(forecaster: ForecastModel) -> NDArray[np.float64] | None:
    """Return the attributes as places in what the configuration lists, (T, A); NaN where not known."""
    stored = forecaster.model.metadata.get("attributes")
    if not stored:
        return None
    codes = [[float(places.get(v, "nan")) for v in own] for own, places in _with_places(stored)]
    return np.array(codes).T


def _with_places(stored: Mapping[str, list[str | None]]) -> list[tuple[list[str | None], dict[Any, int]]]:
    """The values of each attribute, and the place of each value in the order of their names."""
    return [
        (own, {v: place for place, v in enumerate(sorted({v for v in own if v is not None}))})
        for own in stored.values()
    ]


def newest_past(forecaster: ForecastModel, columns: SeriesColumns | None) -> NDArray[np.float64] | None:
    """Return what ``past`` features read of the columns at the newest period of each series, (T, C)."""
    names = forecaster.features.past
    if columns is None or not names:
        return None
    found = columns.at(columns.places(forecaster.unique_ids), forecaster.last_period)
    return found[:, [columns.names.index(name) for name in names]]


def nothing_known(forecaster: ForecastModel) -> SeriesColumns | None:
    """Return the columns that the features of a forecaster name, without any value; None if it names none."""
    names = (*forecaster.features.past, *forecaster.features.future)
    if not names:
        return None
    nothing = np.empty(0, dtype=np.int64)
    return SeriesColumns(names, (), nothing, nothing, np.empty((0, len(names))), forecaster.frequency)


def as_configuration(forecaster: ForecastModel) -> dict[str, Any]:
    """Return what :func:`restored` reads in the configuration of a version."""
    stored = forecaster.model.metadata.get("attributes", {})
    values = zip(stored, _with_places(stored), strict=True)
    return {
        "frequency": forecaster.frequency.value,
        "horizon": forecaster.horizon,
        "rows": forecaster.features.to_dict(),
        "attributes": {name: list(places) for name, (_, places) in values},
    }


def restored(
    model: CCMTLModel,
    series: NDArray[np.float64],
    ranges: NDArray[np.float64],
    attributes: NDArray[np.float64] | None,
    configuration: Mapping[str, Any],
    error: float | None,
) -> ForecastModel:
    """Return the forecaster that was stored; of the report of its fit it has the error alone."""
    if attributes is not None:
        named = zip(configuration["attributes"].items(), attributes.T, strict=True)
        table = {
            name: [None if np.isnan(code) else values[int(code)] for code in codes]
            for (name, values), codes in named
        }
        model = replace(model, metadata={**model.metadata, "attributes": table})
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
        report={} if error is None else {"error": error},
    )
