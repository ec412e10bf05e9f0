"""The bodies of predictions as pydantic models: for the OpenAPI document, and to explain faults in requests.

``wire`` reads and writes the same bodies faster.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

from app.predictions.wire import RowStatus

MAX_HORIZON = 366
MAX_FORECASTS = 1_000_000
MAX_LEVELS = 10
Level = Annotated[float, Field(ge=1, le=99)]


class Wire(BaseModel):
    """Types are not converted, and unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class FeatureRow(Wire):
    """One row of features, for one task."""

    unique_id: str = Field(description="The task, exactly as it was uploaded.")
    features: dict[str, FiniteFloat] = Field(
        description="A finite number for each feature of the model, by name.",
        examples=[{"lag_1": 3.0, "lag_2": 0.0, "lag_3": 1.0, "lag_4": 0.0, "lag_5": 2.0}],
    )


class PredictRows(Wire):
    """Rows of features."""

    rows: list[FeatureRow] = Field(min_length=1)


class PredictColumns(Wire):
    """The same as columns: shorter for many rows."""

    unique_id: list[str] = Field(min_length=1)
    features: dict[str, list[FiniteFloat]] = Field(
        description="A list for each feature of the model, as long as `unique_id`."
    )


class ForecastBatch(Wire):
    """Products to forecast."""

    unique_id: list[str] = Field(min_length=1, description="Products, exactly as they were uploaded.")
    h: int | None = Field(
        None, ge=1, le=MAX_HORIZON, description="Periods ahead; by default the model's horizon, 1 of lags."
    )
    level: list[Level] | None = Field(
        None,
        max_length=MAX_LEVELS,
        description="Percentages of values that each range shall hold; for models with a `horizon`.",
    )


class ModelRef(Wire):
    """The version that answered."""

    name: str
    version: int


_Yhat = Annotated[FiniteFloat | None, Field(description="null unless `status` is `ok`.")]


class Prediction(Wire):
    """The answer for one row."""

    unique_id: str
    yhat: _Yhat
    status: RowStatus


class Predictions(Wire):
    """Answer to rows, in their order."""

    model: ModelRef
    predictions: list[Prediction]


class PredictionColumns(Wire):
    """Answer to columns, in their order."""

    model: ModelRef
    unique_id: list[str]
    yhat: list[_Yhat]
    status: list[RowStatus]


class Forecast(Wire):
    """The forecast of one product for one period; with `level` 80 also `yhat_lo_80` and `yhat_hi_80`."""

    model_config = ConfigDict(extra="allow")

    unique_id: str
    ds: str | None = Field(
        description="The period's first day (`2001-03-01`); with its hour for hourly data "
        "(`2001-03-01T05:00:00`); null unless `status` is `ok`."
    )
    yhat: _Yhat
    status: RowStatus


class Forecasts(Wire):
    """Forecasts in the order asked for; the periods of each product from the nearest on."""

    model: ModelRef
    forecasts: list[Forecast]
