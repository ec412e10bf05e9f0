"""Read requests and write answers of predictions fast, with msgspec.

``schemas`` describes the same bodies; it says what is wrong with one that cannot be read here.
Floats are read with correct rounding and written as the shortest digits that read back as the same float.
"""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache
from typing import Any, cast

import msgspec
from msgspec import UNSET, Struct, UnsetType


class RowStatus(StrEnum):
    """Whether a row of a batch has an answer, and why not."""

    OK = "ok"
    UNKNOWN_UNIQUE_ID = "unknown_unique_id"
    HISTORY_TOO_SHORT = "history_too_short"
    NOT_FINITE = "not_finite"


class ModelRef(Struct, frozen=True):
    """The version that answered."""

    name: str
    version: int


class FeatureRow(Struct, forbid_unknown_fields=True):
    """One row of features, for one task."""

    unique_id: str
    features: dict[str, float]


class PredictRequest(Struct, forbid_unknown_fields=True):
    """Either rows, or the same as columns."""

    rows: list[FeatureRow] | UnsetType = UNSET
    unique_id: list[str] | UnsetType = UNSET
    features: dict[str, list[float]] | UnsetType = UNSET


class ForecastRequest(Struct, forbid_unknown_fields=True):
    """Products, and how many periods ahead."""

    unique_id: list[str]
    h: int | None = None
    level: list[float] | None = None


class Prediction(Struct):
    """The answer for one row."""

    unique_id: str
    yhat: float | None
    status: RowStatus = RowStatus.OK


class Predictions(Struct):
    """The answer to rows."""

    model: ModelRef
    predictions: list[Prediction]


class PredictionColumns(Struct):
    """The answer to columns."""

    model: ModelRef
    unique_id: list[str]
    yhat: list[float | None]
    status: list[RowStatus]


class Forecast(Struct):
    """The forecast of one product for one period."""

    unique_id: str
    ds: str | None
    yhat: float | None
    status: RowStatus = RowStatus.OK


@lru_cache(maxsize=64)
def forecast_form(level: tuple[float, ...]) -> type[Struct]:
    """Return the form of a forecast with ``yhat_lo_80`` and ``yhat_hi_80`` for each level, as for 80."""
    if not level:
        return Forecast
    names = [f"yhat_{side}_{value:g}" for value in level for side in ("lo", "hi")]
    bounds = {f"bound_{n}": name for n, name in enumerate(names)}  # a level of 97.5 names no attribute
    numbers = [(name, float | None) for name in ("yhat", *bounds)]
    fields = [("unique_id", str), ("ds", str | None), *numbers, ("status", RowStatus, RowStatus.OK)]
    return msgspec.defstruct("Forecast", cast("Any", fields), rename=bounds)


class Forecasts(Struct):
    """Forecasts, product by product; the periods of each from the nearest on."""

    model: ModelRef
    forecasts: list[Any]


decode_predict = msgspec.json.Decoder(PredictRequest).decode
decode_forecast = msgspec.json.Decoder(ForecastRequest).decode
encode = msgspec.json.Encoder().encode
encode_lines = msgspec.json.Encoder().encode_lines
