"""Endpoints for forecasts: of one product, of many, of all as a stream; what they are made of, and sums."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Annotated, Any

import numpy as np
import polars as pl
from fastapi import APIRouter, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse
from pydantic import Field

from app.http.access import Scope, requires
from app.http.arrow import arrow_pieces
from app.http.errors import NotAcceptable, refusals
from app.http.names import ARROW_STREAM
from app.http.parameters import PLAIN_DIGITS, ModelPath
from app.http.request_body import BODY_REFUSALS, documented_body, read_json_body, without_references
from app.http.struct_forms import form_of
from app.predictions import forecast_details, forecasts, wire
from app.predictions.cache import loaded
from app.predictions.endpoints import REFUSALS, respond
from app.predictions.forecasts import Asked, Numbers
from app.predictions.histories import Histories
from app.predictions.service import Refused
from app.registry.service import StoredModel

router = APIRouter(
    prefix="/v1/models/{model:model}", tags=["forecasts"], dependencies=[requires(Scope.PREDICT)]
)

LINES = "application/x-ndjson"
LINE = without_references(form_of(wire.Forecast).model_json_schema(mode="serialization"))
NO_NUMBERS: list[float] = []
NO_NAMES: list[str] = []

UniqueId = Annotated[str, Query(min_length=1, description="The product, exactly as it was uploaded.")]
Horizon = Annotated[
    int | None,
    PLAIN_DIGITS,
    Query(ge=1, le=wire.MAX_HORIZON, description="Periods ahead; by default the model's horizon, 1 of lags."),
]
Levels = Annotated[
    list[Annotated[float, Field(ge=1, le=99)]],
    Query(
        max_length=wire.MAX_LEVELS,
        description="Percentages, each as a parameter of its own: the share of values that each range shall "
        "hold. Of models with a `horizon`.",
    ),
]
Quantiles = Annotated[
    list[Annotated[float, Field(ge=0.005, le=0.995)]],
    Query(
        max_length=wire.MAX_QUANTILES,
        description="Probabilities, each as a parameter of its own: that a value is not above each quantile. "
        "Of models with a `horizon`.",
    ),
]
SomeIds = Annotated[
    list[str], Query(max_length=100, description="Products, each as a parameter of its own; by default all.")
]
EXAMPLES: dict[str, Any] = {
    "A week of two products": {"unique_id": ["0001", "0002"], "h": 7},
    "With prices that are known": {
        "unique_id": ["0001"],
        "h": 1,
        "future": {"unique_id": ["0001"], "ds": ["2025-10-27"], "price": [2.5]},
    },
    "A new product": {
        "unique_id": ["new"],
        "attributes": {"unique_id": ["new"], "category": ["tea"]},
        "history": {"unique_id": ["new"], "ds": ["2025-10-26"], "y": [3]},
    },
}
PARTS_EXAMPLES: dict[str, Any] = {
    name: EXAMPLES[name] for name in ("A week of two products", "With prices that are known")
}
ALL_EXAMPLES: dict[str, Any] = {"Four weeks, with a range": {"h": 28, "level": [80]}}
TOTALS_EXAMPLES: dict[str, Any] = {"All products together": {"h": 7}, "By an attribute": {"by": ["category"]}}
NO_FORECAST = refusals({409: "The model, or the one product asked for, has no history to forecast from."})
ONE: dict[str, Any] = {"responses": {200: {"model": form_of(wire.Forecasts)}, **REFUSALS, **NO_FORECAST}}
SEVERAL: dict[str, Any] = {
    "responses": {**ONE["responses"], **BODY_REFUSALS},
    "openapi_extra": documented_body(form_of(wire.ForecastBatch), examples=EXAMPLES),
}
PARTS: dict[str, Any] = {
    "responses": {**SEVERAL["responses"], 200: {"model": form_of(wire.Contributions)}},
    "openapi_extra": documented_body(form_of(wire.ContributionsRequest), examples=PARTS_EXAMPLES),
}
SUMS: dict[str, Any] = {
    "responses": {**SEVERAL["responses"], 200: {"model": form_of(wire.Totals)}},
    "openapi_extra": documented_body(form_of(wire.TotalsRequest), examples=TOTALS_EXAMPLES),
}
MISSING: dict[str, Any] = {"responses": {**ONE["responses"], 200: {"model": form_of(wire.MissingColumns)}}}
STREAM: dict[str, Any] = {
    "response_class": StreamingResponse,
    "responses": {
        200: {
            "description": "By `Accept` lines of JSON, each the forecast of one product for one period, or "
            "an Arrow stream of the same columns. `Content-Location` names the version of the model, `Link` "
            "with `rel=via` that of the dataset whose values forecasts start from.",
            "content": {
                LINES: {"schema": LINE},
                ARROW_STREAM: {"schema": {"type": "string", "format": "binary"}},
            },
        },
        **REFUSALS,
        **NO_FORECAST,
        **refusals({406: "`Accept` names neither lines of JSON nor an Arrow stream."}),
    },
}
STREAM_BODY: dict[str, Any] = {
    **STREAM,
    "responses": {**STREAM["responses"], **BODY_REFUSALS},
    "openapi_extra": documented_body(form_of(wire.ForecastAll), examples=ALL_EXAMPLES),
}


@router.get("/forecast", **ONE)
async def forecast(
    model: ModelPath,
    request: Request,
    unique_id: UniqueId,
    h: Horizon = None,
    level: Levels = NO_NUMBERS,
    quantiles: Quantiles = NO_NUMBERS,
) -> Response:
    """Forecast one product from its newest values that are stored."""
    found = await _current(request, model)
    return await respond(partial(forecasts.forecast_one, found, unique_id, h, level, quantiles), small=True)


@router.post("/forecast", **SEVERAL)
async def forecast_batch(model: ModelPath, request: Request) -> Response:
    """Forecast many products from their newest values that are stored, and new ones from their like."""
    body = await _body(request)
    return await respond(partial(forecasts.forecast, await _current(request, model), body), small=False)


@router.get("/forecasts", **STREAM)
async def forecast_all(
    model: ModelPath,
    request: Request,
    h: Horizon = None,
    level: Levels = NO_NUMBERS,
    quantiles: Quantiles = NO_NUMBERS,
) -> Response:
    """Forecast all products from their newest values that are stored, as a stream."""
    found = await _current(request, model)
    asked = await run_in_threadpool(forecasts.asked_of, found, h, "query", level, quantiles)
    return await _stream(request, found, asked)


@router.post("/forecasts", **STREAM_BODY)
async def forecast_all_knowing(model: ModelPath, request: Request) -> Response:
    """Forecast all products with what will be known of the periods ahead, as a stream."""
    body = await _body(request)
    found = await _current(request, model)

    def asked_for() -> Asked:
        sent = forecasts.decoded(body, wire.ForecastAll, wire.decode_forecast_all)
        return forecasts.asked_of(found, sent.h, "body", sent.level, sent.quantiles, sent.future)

    try:
        asked = await run_in_threadpool(asked_for)
    except Refused as refused:
        raise await run_in_threadpool(refused.explain) from None
    return await _stream(request, found, asked)


@router.post("/contributions", **PARTS)
async def explain_forecasts(model: ModelPath, request: Request) -> Response:
    """Say what each feature adds to the forecasts of some products, which a model with a horizon makes."""
    body = await _body(request)
    return await respond(
        partial(forecast_details.contributions, await _current(request, model), body), small=False
    )


@router.post("/totals", **SUMS)
async def total_forecasts(model: ModelPath, request: Request) -> Response:
    """Add up the forecasts of all products, or by attributes; the sums have no ranges."""
    body = await _body(request)
    return await respond(partial(forecast_details.totals, await _current(request, model), body), small=False)


@router.get("/missing-columns", **MISSING)
async def forecast_needs(
    model: ModelPath, request: Request, h: Horizon = None, unique_id: SomeIds = NO_NAMES
) -> Response:
    """List what must be known of which product and period to forecast so far ahead, and is not stored."""
    found = await _current(request, model)
    return await respond(partial(forecast_details.missing_columns, found, unique_id or None, h), small=False)


async def _current(request: Request, model: str) -> StoredModel:
    """The version that the path refers to, with the newest values of its dataset."""
    found = await loaded(request, model)
    histories: Histories = request.app.state.histories
    current = histories.peek(found)
    return await run_in_threadpool(histories.get, found) if current is None else current


async def _body(request: Request) -> bytes:
    return await read_json_body(request, request.app.state.settings.max_request_bytes)


async def _stream(request: Request, model: StoredModel, asked: Asked) -> Response:
    kind = _accepted(", ".join(request.headers.getlist("accept")) or "*/*")
    parts = await run_in_threadpool(forecasts.forecast_all, model, asked)
    path = request.app.url_path_for("forecast_all", model=f"{model.name}/versions/{model.version}")
    headers = {"Content-Location": path, "Vary": "Accept"}
    if model.data is not None:
        headers["Link"] = f'</v1/datasets/{model.data.dataset}/versions/{model.data.version}>; rel="via"'
    pieces = _lines(model, asked, parts) if kind == LINES else arrow_pieces(_frames(model, asked, parts))
    return StreamingResponse(pieces, media_type=kind, headers=headers)


def _accepted(accept: str) -> str:
    """The kind of stream that a client takes, lines of JSON where it takes any."""
    named = [part.partition(";")[0].strip().lower() for part in accept.split(",")]
    for kind in named:
        if kind in (LINES, ARROW_STREAM):
            return kind
    if {"*/*", "application/*", "application/json"} & set(named):
        return LINES
    raise NotAcceptable("not_acceptable", f"Forecasts of all products are sent as {LINES} or {ARROW_STREAM}.")


def _lines(
    model: StoredModel, asked: Asked, parts: Iterator[tuple[Sequence[str], Numbers]]
) -> Iterator[bytes]:
    assert model.frequency is not None
    for ids, numbers in parts:
        yield wire.encode_lines(forecasts.rows_of(ids, numbers, asked, model.frequency))


def _frames(
    model: StoredModel, asked: Asked, parts: Iterator[tuple[Sequence[str], Numbers]]
) -> Iterator[pl.DataFrame]:
    """Tables of forecasts, without rows for products that have none."""
    assert model.frequency is not None
    names = ["yhat", *asked.ranges]
    for ids, numbers in parts:
        each = np.repeat(np.arange(len(ids)), asked.h)
        periods = (numbers.last_period[:, None] + np.arange(1, asked.h + 1)).ravel()
        values = numbers.values.reshape(len(each), -1)
        columns = {name: values[:, c] for c, name in enumerate(names)}
        frame = pl.DataFrame(
            {
                "unique_id": pl.Series(ids, dtype=pl.String).gather(each),
                "ds": model.frequency.dated(periods),
                **columns,
                "status": pl.Series(numbers.status, dtype=pl.String).gather(each),
            }
        )
        yield frame.filter(pl.all_horizontal(pl.col(names).is_finite()))
