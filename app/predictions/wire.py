"""The bodies of predictions and forecasts, which msgspec reads and writes fast.

``app.http.struct_forms`` makes of them what documents them, and what explains a body that cannot be read.
Floats are read with correct rounding and written as the shortest digits that read back as the same float.
"""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache
from typing import Annotated, Any, ClassVar, cast

import msgspec
import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

MAX_HORIZON = 366
MAX_FORECASTS = 1_000_000
MAX_NUMBERS = 10_000_000
"""Forecasts, ends of ranges and quantiles of an answer that is no stream: some 200 MB of JSON."""
MAX_LEVELS, MAX_QUANTILES = 10, 99

Level = Annotated[float, Meta(ge=1, le=99)]
Quantile = Annotated[float, Meta(ge=0.005, le=0.995)]
_Yhat = Annotated[float | None, Meta(description="null unless `status` is `ok`.")]


class RowStatus(StrEnum):
    """Whether a row of a batch has an answer, and why not.

    A product with hardly any history is forecast from those that share its attributes (``from_like``), or
    from all (``from_all``). A forecast that came out more than a million times as large as the values that
    it starts from was cut to that (``cut``): something that is known of the time is not as it was. A product
    that ended so long ago that no period asked for is to come has none where the columns that it needs are
    not known there (``ended``).
    """

    OK = "ok"
    FROM_LIKE = "from_like"
    FROM_ALL = "from_all"
    CUT = "cut"
    UNKNOWN_UNIQUE_ID = "unknown_unique_id"
    HISTORY_TOO_SHORT = "history_too_short"
    ENDED = "ended"
    NOT_FINITE = "not_finite"


class ModelRef(Struct, frozen=True, forbid_unknown_fields=True):
    """The version that answered."""

    name: str
    version: int


class FeatureRow(Struct, forbid_unknown_fields=True):
    """One row of features, for one task."""

    unique_id: Annotated[str, Meta(description="The task, exactly as it was uploaded.")]
    features: Annotated[
        dict[str, float],
        Meta(
            description="A finite number for each feature of the model, by name.",
            examples=[{"lag_1": 3.0, "lag_2": 0.0, "lag_3": 1.0, "lag_4": 0.0, "lag_5": 2.0}],
        ),
    ]


class PredictRows(Struct, forbid_unknown_fields=True):
    """Rows of features."""

    rows: Annotated[list[FeatureRow], Meta(min_length=1)]
    elsewhere: ClassVar[dict[str, str]] = dict.fromkeys(
        ("unique_id", "features"), "goes without `rows`: send rows, or `unique_id` and `features` as columns"
    )


class PredictColumns(Struct, forbid_unknown_fields=True):
    """The same as columns: shorter for many rows."""

    unique_id: Annotated[list[str], Meta(min_length=1)]
    features: Annotated[
        dict[str, list[float]],
        Meta(description="A list for each feature of the model, as long as `unique_id`."),
    ]
    elsewhere: ClassVar[dict[str, str]] = {
        "rows": "goes without `unique_id` and `features`: send rows, or these two as columns"
    }


_H = Annotated[
    Annotated[int, Meta(ge=1, le=MAX_HORIZON)] | None,
    Meta(description="Periods ahead; by default the model's horizon, 1 of lags."),
]
_LEVEL = Annotated[
    Annotated[list[Level], Meta(max_length=MAX_LEVELS)] | None,
    Meta(description="Percentages of values that each range shall hold; for models with a `horizon`."),
]
_QUANTILES = Annotated[
    Annotated[list[Quantile], Meta(max_length=MAX_QUANTILES)] | None,
    Meta(description="Probabilities that a value is not above each quantile; for models with a `horizon`."),
]
_Cells = dict[str, list[str | float | None]]
_FUTURE = Annotated[
    _Cells | None,
    Meta(
        description="What will be known of the periods ahead: lists of one length, `ds`, the columns that "
        "the dataset names in `future`, and `unique_id`, unless a row holds for all products.",
        examples=[{"unique_id": ["0001"], "ds": ["2025-10-27"], "price": [2.5]}],
    ),
]


class ForecastAll(Struct, forbid_unknown_fields=True):
    """How far to forecast, and what will be known."""

    h: _H = None
    level: _LEVEL = None
    quantiles: _QUANTILES = None
    future: _FUTURE = None


class TotalsRequest(Struct, forbid_unknown_fields=True):
    """How far to forecast, what to add up, and what will be known."""

    h: _H = None
    by: Annotated[
        list[str], Meta(max_length=8, description="Attributes whose groups are added up; none: all products.")
    ] = []
    future: _FUTURE = None


class ForecastBatch(Struct, forbid_unknown_fields=True):
    """Products to forecast; one that stands twice is answered twice."""

    unique_id: Annotated[
        list[str], Meta(min_length=1, description="Products, exactly as they were uploaded.")
    ]
    h: _H = None
    level: _LEVEL = None
    quantiles: _QUANTILES = None
    future: _FUTURE = None
    attributes: Annotated[
        _Cells | None,
        Meta(
            description="Products that the model does not know, with their attributes: lists of one length, "
            "`unique_id` and those that the dataset names. They are forecast from their like.",
            examples=[{"unique_id": ["new"], "category": ["tea"]}],
        ),
    ] = None
    history: Annotated[
        _Cells | None,
        Meta(
            description="First values of such products: lists of one length, `unique_id`, `ds` and `y`.",
            examples=[{"unique_id": ["new"], "ds": ["2025-10-26"], "y": [3]}],
        ),
    ] = None


class ContributionsRequest(Struct, forbid_unknown_fields=True):
    """Products whose forecasts shall be explained, of the model or of newer uploads."""

    unique_id: Annotated[
        list[str], Meta(min_length=1, description="Products, exactly as they were uploaded.")
    ]
    h: _H = None
    future: _FUTURE = None
    elsewhere: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("level", "quantiles"), "features add to forecasts, not to ranges: leave it out"),
        **dict.fromkeys(
            ("attributes", "history"), "is of new products, whose forecasts are not explained: leave it out"
        ),
    }


class Prediction(Struct, forbid_unknown_fields=True):
    """The answer for one row."""

    unique_id: str
    yhat: _Yhat
    status: RowStatus = RowStatus.OK


class Predictions(Struct, forbid_unknown_fields=True):
    """Answer to rows, in their order."""

    model: ModelRef
    predictions: list[Prediction]


class PredictionColumns(Struct, forbid_unknown_fields=True):
    """Answer to columns, in their order."""

    model: ModelRef
    unique_id: list[str]
    yhat: list[_Yhat]
    status: list[RowStatus]


class Forecast(Struct, gc=False):
    """The forecast of one product for one period.

    With `level` 80 also `yhat_lo_80` and `yhat_hi_80`, with `quantiles` 0.1 also `yhat_q_10`.
    """

    unique_id: str
    ds: Annotated[
        str | None,
        Meta(
            description="The period's first day (`2001-03-01`); with its hour for hourly data "
            "(`2001-03-01T05:00:00`); null unless `status` is `ok`."
        ),
    ]
    yhat: Annotated[float | None, Meta(description="null where `status` says why.")]
    status: RowStatus = RowStatus.OK


class DataRef(Struct, frozen=True, forbid_unknown_fields=True):
    """The dataset version whose values forecasts start from."""

    dataset: str
    version: int


class Forecasts(Struct, forbid_unknown_fields=True):
    """Forecasts in the order asked for; the periods of each product from the nearest on."""

    model: ModelRef
    data: DataRef | None
    forecasts: list[Forecast]


class Contribution(Struct, forbid_unknown_fields=True):
    """What each feature adds to a forecast; with the intercept and the adjustment they add up to ``yhat``."""

    unique_id: str
    ds: str
    yhat: float
    features: dict[str, float]
    intercept: float
    adjustment: Annotated[
        float,
        Meta(description="What leads from the sum to `yhat`: where it ends at zero, is constant or was cut."),
    ]


class Contributions(Struct, forbid_unknown_fields=True):
    """What forecasts are made of, in the order asked for."""

    model: ModelRef
    data: DataRef | None
    contributions: list[Contribution]


class MissingRow(Struct, forbid_unknown_fields=True):
    """What is not known of a product in a period: at its newest one, or at one that is to be forecast."""

    unique_id: str
    ds: str
    columns: list[str]


class MissingColumns(Struct, forbid_unknown_fields=True):
    """What must be known for forecasts, and is not stored."""

    model: ModelRef
    data: DataRef | None
    missing: list[MissingRow]
    ended: Annotated[
        list[str],
        Meta(
            description="Products that ended so long ago that no period of their forecasts is to come: they "
            "have none, and nothing is missing of them."
        ),
    ]


class Total(Struct, forbid_unknown_fields=True):
    """The sum of the forecasts of a group of products for one period; it has no range."""

    attributes: dict[str, str | None]
    ds: str
    yhat: float
    n_products: Annotated[int, Meta(description="Forecasts that were added up.")]


class Totals(Struct, forbid_unknown_fields=True):
    """Sums of forecasts, by attributes and period."""

    model: ModelRef
    data: DataRef | None
    totals: list[Total]


@lru_cache(maxsize=64)
def forecast_form(ranges: tuple[str, ...]) -> type[Struct]:
    """Return the form of a forecast that has these numbers, such as ``yhat_lo_80``, beside ``yhat``."""
    if not ranges:
        return Forecast
    bounds = {f"bound_{n}": name for n, name in enumerate(ranges)}  # "yhat_lo_97.5" names no attribute
    numbers = [(name, float | None) for name in ("yhat", *bounds)]
    fields = [("unique_id", str), ("ds", str | None), *numbers, ("status", RowStatus, RowStatus.OK)]
    return msgspec.defstruct("Forecast", cast("Any", fields), rename=bounds, gc=False)


def without_nan(numbers: NDArray[np.float64]) -> list[float | None]:
    """Return the numbers as JSON has them: null in place of NaN."""
    values: list[float | None] = numbers.tolist()
    for row in np.flatnonzero(np.isnan(numbers)).tolist():
        values[row] = None
    return values


_UNKNOWN = "Object contains unknown field"
_decode_rows = msgspec.json.Decoder(PredictRows).decode
_decode_columns = msgspec.json.Decoder(PredictColumns).decode
decode_forecast = msgspec.json.Decoder(ForecastBatch).decode
decode_totals = msgspec.json.Decoder(TotalsRequest).decode
decode_contributions = msgspec.json.Decoder(ContributionsRequest).decode
decode_forecast_all = msgspec.json.Decoder(ForecastAll).decode
encode = msgspec.json.Encoder().encode
encode_lines = msgspec.json.Encoder().encode_lines


def decode_predict(body: bytes) -> PredictRows | PredictColumns:
    """Read rows, or the same as columns.

    Raises
    ------
    msgspec.DecodeError, UnicodeDecodeError, RecursionError
        The body is neither; the message is about the form that it is more like.
    """
    try:
        return _decode_rows(body)
    except msgspec.ValidationError as error:
        if str(error) not in (f"{_UNKNOWN} `unique_id`", f"{_UNKNOWN} `features`"):
            raise
    try:
        return _decode_columns(body)
    except msgspec.ValidationError as error:
        if str(error) != f"{_UNKNOWN} `rows`":
            raise
    raise msgspec.ValidationError("give `rows`, or `unique_id` and `features`, not both")
