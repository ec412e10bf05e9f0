"""Forecast with a model in memory, from the newest values that are stored.

A product is forecast by its own history; one that has hardly any, or that the model was not fitted to, by
those like it, which its status says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from app.http.errors import MAX_ERRORS, Conflict, Fault, InvalidContent
from app.predictions import wire
from app.predictions.described_products import described, refusing
from app.predictions.request_tables import Cells, columns_of, future_frame, written
from app.predictions.service import Matrix, Refused, explained, refuse_repeated_keys
from app.registry.service import StoredModel, unknown_product
from ccmtl_core.base.display import counted
from ccmtl_core.forecasting import (
    ForecastModel,
    Frequency,
    NewProducts,
    SeriesColumns,
    range_columns,
    recursive_forecast,
)
from ccmtl_core.forecasting.fitted.latest_rows import are_cut, missing_by_series, not_known

FORECASTS_AT_A_TIME, NUMBERS_AT_A_TIME = 2**14, 2**18
"""Of a stream: so many forecasts are in memory at once, fewer where they have many ranges and quantiles."""


@dataclass(frozen=True)
class Asked:
    """How far a request wants to see, which ranges, what it knows of periods to come, and new products."""

    h: int
    ranges: dict[str, float] = field(default_factory=dict)
    """Columns of the answer beside `yhat`, such as `yhat_lo_80` and `yhat_q_10`, with their probabilities."""
    future: pl.DataFrame | None = None
    added: NewProducts | None = None


@dataclass(frozen=True)
class Numbers:
    """Forecasts of n products, (n, h, 1 + R) with the R ranges: which are answered, and from when on."""

    values: Matrix
    last_period: NDArray[np.int64]
    status: list[wire.RowStatus]


def forecast(model: StoredModel, body: bytes) -> bytes:
    """Answer a batch of forecasts, or raise Refused or AppError."""
    request, asked = batch(model, body)
    check_size(len(request.unique_id), asked.h, 1 + len(asked.ranges))
    return _answer(model, request.unique_id, asked)


def forecast_one(
    model: StoredModel,
    unique_id: str,
    h: int | None,
    level: Sequence[float] = (),
    quantiles: Sequence[float] = (),
) -> bytes:
    """Answer ``h`` periods ahead of one product, or say why that cannot be."""
    return _answer(model, [unique_id], asked_of(model, h, "query", level, quantiles))


def forecast_all(model: StoredModel, asked: Asked) -> Iterator[tuple[Sequence[str], Numbers]]:
    """Yield the forecasts of all products, for some at a time; what is missing is said before the first."""
    unique_ids = all_products(model)
    n_forecasts = min(FORECASTS_AT_A_TIME, NUMBERS_AT_A_TIME // (1 + len(asked.ranges)))
    n = max(1, n_forecasts // asked.h)
    refuse_missing(model, unique_ids, asked)
    return (
        (some, _numbers(model, some, asked))
        for some in (unique_ids[first : first + n] for first in range(0, len(unique_ids), n))
    )


def all_products(model: StoredModel) -> Sequence[str]:
    """Return the products of a model, and those of newer data that it can forecast from their like."""
    added = model.new_products
    new = () if added is None else added.forecaster.unique_ids
    return tuple(dict.fromkeys([*model.unique_ids, *new]))


def asked_of(
    model: StoredModel,
    h: int | None,
    where: Literal["query", "body"],
    level: Sequence[float] | None = None,
    quantiles: Sequence[float] | None = None,
    future: Cells | None = None,
) -> Asked:
    """Return what a request wants; refuse ranges of a model without, and models that cannot forecast."""
    if model.frequency is None:
        raise Conflict(
            "model_cannot_forecast",
            f"The model {model.name!r} was trained on regression data, which has no history to forecast "
            "from; send its features to `predict`.",
        )
    if (level or quantiles or future) and model.forecaster is None:
        has_ranges = bool(level or quantiles)
        what = "ranges" if has_ranges else "columns beside its values"
        message = f"the model {model.name!r} was trained on lags and has no {what}; train it with a `horizon`"
        name = "level" if level else "quantiles" if quantiles else "future"
        fault = Fault(message=message, location=f"{where}.{name}")
        raise InvalidContent(
            "model_has_no_ranges" if has_ranges else "model_has_no_columns",
            f"There are no {what}: {message}.",
            errors=[fault],
        )
    ranges = {name.replace("-", "_"): p for name, p in range_columns(level or (), quantiles or ()).items()}
    return Asked(h or model.horizon, ranges, future_frame(model, future))


def decoded(body: bytes, form: type[msgspec.Struct], decode: Callable[[bytes], Any]) -> Any:
    """Read a body of this form; raise Refused for one that has faults."""
    try:
        request = decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(partial(explained, body, form, error)) from None
    given = [value for name in request.__struct_fields__ if (value := getattr(request, name)) is not None]
    refuse_repeated_keys(body, len(given) + sum(len(value) for value in given if isinstance(value, dict)))
    return request


def about(model: StoredModel) -> tuple[wire.ModelRef, wire.DataRef | None]:
    """Return which version answers, and from which data."""
    data = None if model.data is None else wire.DataRef(model.data.dataset, model.data.version)
    return wire.ModelRef(model.name, model.version), data


def batch(model: StoredModel, body: bytes) -> tuple[wire.ForecastBatch, Asked]:
    """Return a request for some products as it was sent, and what it wants."""
    request: wire.ForecastBatch = decoded(body, wire.ForecastBatch, wire.decode_forecast)
    asked = asked_of(model, request.h, "body", request.level, request.quantiles, request.future)
    if request.attributes is None and request.history is None:
        return request, asked
    return request, replace(asked, added=described(model, forecaster_of(model), request))


def _answer(model: StoredModel, unique_ids: Sequence[str], asked: Asked) -> bytes:
    refuse_missing(model, unique_ids, asked)
    numbers = _numbers(model, unique_ids, asked)
    if len(unique_ids) == 1 and numbers.status[0] is wire.RowStatus.UNKNOWN_UNIQUE_ID:
        raise Refused(partial(unknown_product, model, unique_ids[0]))
    if len(unique_ids) == 1 and numbers.status[0] is wire.RowStatus.HISTORY_TOO_SHORT:
        raise _history_too_short(model, unique_ids[0])
    if len(unique_ids) == 1 and numbers.status[0] is wire.RowStatus.ENDED:
        raise has_ended(model, unique_ids[0], asked)
    assert model.frequency is not None
    return wire.encode(wire.Forecasts(*about(model), rows_of(unique_ids, numbers, asked, model.frequency)))


def rows_of(unique_ids: Sequence[str], numbers: Numbers, asked: Asked, frequency: Frequency) -> list[Any]:
    """Return the forecasts of products as they are written, one for each period."""
    form, nothing = wire.forecast_form(tuple(asked.ranges)), [None] * (1 + len(asked.ranges))
    without = wire.RowStatus.UNKNOWN_UNIQUE_ID, wire.RowStatus.HISTORY_TOO_SHORT, wire.RowStatus.ENDED
    starts, place = np.unique(numbers.last_period, return_inverse=True)
    ordinals = starts[:, None] + np.arange(1, asked.h + 1)
    days = np.array(written(pl.Series(frequency.to_datetime(ordinals.ravel())), frequency), dtype=object)
    dates = days.reshape(len(starts), -1).tolist()
    finite = np.asarray(np.isfinite(numbers.values).all(axis=(1, 2))).tolist()
    found: list[Any] = []
    every = zip(unique_ids, numbers.status, place.tolist(), finite, numbers.values, strict=True)
    for unique_id, status, start, is_finite, values in every:
        if status in without:
            found.append(form(unique_id, None, *nothing, status))
        elif is_finite:
            own = zip(dates[start], values.tolist(), strict=True)
            found += [form(unique_id, t, *v, status) for t, v in own]
        else:
            found += _periods(form, unique_id, dates[start], values.tolist(), status)
    return found


def _numbers(model: StoredModel, unique_ids: Sequence[str], asked: Asked) -> Numbers:
    """Forecasts of products: by their own history, or by their like."""
    n = len(unique_ids)
    values = np.full((n, asked.h, 1 + len(asked.ranges)), np.nan)
    last_period, status = np.zeros(n, dtype=np.int64), [wire.RowStatus.UNKNOWN_UNIQUE_ID] * n
    rows = np.array([model.rows.get(name, -1) for name in unique_ids], dtype=np.int64)
    ended = are_ended(model, unique_ids, asked)
    rows[ended] = -1
    for i in np.flatnonzero(ended).tolist():
        status[i] = wire.RowStatus.ENDED
    for added, at, own in by_like(model, unique_ids, asked, ended):
        columns = columns_of_new(model, added.forecaster, own, asked)
        values[at] = _of_forecaster(added.forecaster, own, asked, columns)
        last_period[at], rows[at] = added.forecaster.last_period[own], -1
        cut = _are_cut(added.forecaster, own, values[at])
        for i, place, is_cut in zip(at, own.tolist(), cut.tolist(), strict=True):
            status[i] = wire.RowStatus.CUT if is_cut else wire.RowStatus(added.status[place])
    known = np.flatnonzero(rows >= 0)
    has_history, continued, last = _continued(model, rows[known], asked)
    values[known[has_history]], last_period[known[has_history]] = continued, last
    for i, has in zip(known.tolist(), has_history.tolist(), strict=True):
        status[i] = wire.RowStatus.OK if has else wire.RowStatus.HISTORY_TOO_SHORT
    if model.forecaster is not None:
        answered = known[has_history]
        for i in answered[_are_cut(model.forecaster, rows[answered], continued)].tolist():
            status[i] = wire.RowStatus.CUT
    return Numbers(values, last_period, status)


def are_ended(model: StoredModel, unique_ids: Sequence[str], asked: Asked) -> NDArray[np.bool_]:
    """Return which products ended so long ago that no period of their forecasts is to come, (n,).

    That is if what stands beside their values in these periods is not known, as of discontinued products.
    """
    rows = np.array([model.rows.get(name, -1) for name in unique_ids], dtype=np.int64)
    ended = np.zeros(len(rows), dtype=np.bool_)
    forecaster = model.forecaster
    if forecaster is not None and (forecaster.features.past or forecaster.features.future):
        newest = forecaster.last_period.max()
        late = np.flatnonzero((rows >= 0) & (forecaster.last_period[rows] + asked.h <= newest))
        if len(late):
            distinct = np.unique(rows[late])
            columns = columns_of(forecaster, model.newest_past, distinct, asked.future)
            ids = [forecaster.unique_ids[row] for row in distinct.tolist()]
            found = set(forecaster.ended(asked.h, unique_ids=ids, columns=columns))
            ended[late] = [unique_ids[i] in found for i in late.tolist()]
    if ended.any():  # forecasts from the like start after the newest period, whatever the own last one
        for added, at, own in by_like(model, unique_ids, asked, ~ended):
            columns = columns_of_new(model, added.forecaster, own, asked)
            needed = set(_missing(added.forecaster, own, columns, asked.h)["unique_id"])
            ended[at] = [unique_ids[i] in needed for i in at]
    return ended


def by_like(
    model: StoredModel, unique_ids: Sequence[str], asked: Asked, ended: NDArray[np.bool_]
) -> Iterator[tuple[NewProducts, list[int], NDArray[np.int64]]]:
    """Yield who forecasts products from their like: their places in a request, and rows of the forecaster."""
    for added in (model.new_products, asked.added):
        if added is None:
            continue
        place_of = {name: place for place, name in enumerate(added.forecaster.unique_ids)}
        if not model.attributes:  # what the model knows of thin products is all that is known
            place_of = {name: place for name, place in place_of.items() if name not in model.rows}
        at = [i for i, name in enumerate(unique_ids) if name in place_of and not ended[i]]
        if at:
            yield added, at, np.array([place_of[unique_ids[i]] for i in at], dtype=np.int64)


def _are_cut(forecaster: ForecastModel, rows: NDArray[np.int64], values: Matrix) -> NDArray[np.bool_]:
    return are_cut(values[:, :, 0], forecaster.tail[rows], forecaster.scale[rows], forecaster.horizon)


def _continued(
    model: StoredModel, rows: NDArray[np.int64], asked: Asked
) -> tuple[NDArray[np.bool_], Matrix, NDArray[np.int64]]:
    """Which of these rows have a history, their forecasts, and their last periods."""
    if model.forecaster is not None:
        has = np.asarray(~np.isnan(model.forecaster.tail[rows]).all(axis=1))
        columns = columns_of(model.forecaster, model.newest_past, rows[has], asked.future)
        found = _of_forecaster(model.forecaster, rows[has], asked, columns)
        return has, found, model.forecaster.last_period[rows[has]]
    assert model.history is not None
    lags = model.history.lags[rows]
    has = ~np.isnan(lags[:, 0])
    chosen = rows[has]
    yhat = recursive_forecast(model.weights[chosen], lags[has], asked.h, model.intercept[chosen])
    return has, yhat[:, :, None], model.history.last_period[chosen]


def _of_forecaster(
    forecaster: ForecastModel, rows: NDArray[np.int64], asked: Asked, columns: SeriesColumns | None
) -> Matrix:
    """Forecasts (n, h, 1 + R) of some series of a forecaster."""
    ids = [forecaster.unique_ids[row] for row in rows.tolist()]
    if not ids:
        return np.empty((0, asked.h, 1 + len(asked.ranges)))

    def found() -> Matrix:
        yhat = forecaster.point_forecasts(asked.h, unique_ids=ids, columns=columns)[:, :, None]
        if not asked.ranges:
            return yhat
        quantiles = list(asked.ranges.values())
        ranges = forecaster.quantile_forecasts(quantiles, asked.h, unique_ids=ids, columns=columns)
        return np.concatenate([yhat, ranges], axis=2)

    values: Matrix = refusing(found)
    return values


def columns_of_new(
    model: StoredModel, forecaster: ForecastModel, rows: NDArray[np.int64], asked: Asked
) -> SeriesColumns | None:
    """What is known beside the values of new products: of the past nothing but what was stored with them."""
    past = None
    if model.newest_past is not None:
        # A new product has no past columns of its own: the mean of those of all.
        past = np.repeat(np.nanmean(model.newest_past, axis=0)[None], len(forecaster.unique_ids), axis=0)
    return columns_of(forecaster, past, rows, asked.future)


def forecaster_of(model: StoredModel) -> ForecastModel:
    """Return the forecaster of a model; refuse one that was trained on lags."""
    if model.forecaster is None:
        raise Conflict(
            "model_without_horizon",
            f"The model {model.name!r} was not trained with a `horizon`, which this needs: train it so.",
        )
    return model.forecaster


def check_size(n: int, h: int, n_numbers: int = 1) -> None:
    """Refuse a request whose answer would be too long: n products times h forecasts of so many numbers."""
    if n * h <= wire.MAX_FORECASTS and n * h * n_numbers > wire.MAX_NUMBERS:
        raise InvalidContent(
            "too_many_forecasts",
            f"{n} products times {h} periods times {n_numbers} numbers (the forecast, ends of ranges and "
            f"quantiles) is over the limit of {wire.MAX_NUMBERS} for one request. `forecasts` streams "
            "all products.",
        )
    if n * h > wire.MAX_FORECASTS:
        raise InvalidContent(
            "too_many_forecasts",
            f"{n} products times {h} periods is over the limit of {wire.MAX_FORECASTS} forecasts for one "
            "request.",
        )


def missing(model: StoredModel, unique_ids: Sequence[str], asked: Asked) -> pl.DataFrame | None:
    """Return what is not known beside the values of these products; None where nothing has to be.

    Nothing has to be known of products that ended.
    """
    forecaster = model.forecaster
    if forecaster is None or not (forecaster.features.past or forecaster.features.future):
        return None
    rows = np.array([model.rows.get(name, -1) for name in unique_ids], dtype=np.int64)
    ended, parts = are_ended(model, unique_ids, asked), []
    rows[ended] = -1
    for added, at, own in by_like(model, unique_ids, asked, ended):
        columns = columns_of_new(model, added.forecaster, own, asked)
        parts.append(_missing(added.forecaster, own, columns, asked.h))
        rows[at] = -1
    own = rows[rows >= 0]
    columns = columns_of(forecaster, model.newest_past, np.unique(own), asked.future)
    return pl.concat([_missing(forecaster, own, columns, asked.h), *parts]).sort("unique_id", "ds", "column")


def _missing(
    forecaster: ForecastModel, rows: NDArray[np.int64], columns: SeriesColumns | None, h: int
) -> pl.DataFrame:
    """What is not known for the series of these rows that have values."""
    some = np.unique(rows)
    some = some[~np.isnan(forecaster.tail[some]).all(axis=1)]
    ids = [forecaster.unique_ids[row] for row in some.tolist()]
    return forecaster.missing_columns(h, unique_ids=ids, columns=columns)


def refuse_missing(model: StoredModel, unique_ids: Sequence[str], asked: Asked) -> None:
    """Refuse forecasts for which something must be known, and name the products that need most of it."""
    unknown = missing(model, unique_ids, asked)
    if unknown is None or not unknown.height or model.frequency is None:
        return
    found = missing_by_series(unknown)
    shown = found.head(MAX_ERRORS)
    ends = [written(shown[name], model.frequency) for name in ("first", "last")]
    faults = [
        Fault(
            message=f"product {unique_id!r}: {not_known(names, n_periods, first, last)}",
            location=f"body.future.{names[0]}" if len(names) == 1 else "body.future",
        )
        for unique_id, names, n_periods, first, last in zip(
            shown["unique_id"], shown["columns"].to_list(), shown["n_periods"], *ends, strict=True
        )
    ]
    raise InvalidContent(
        "missing_columns",
        f"{counted(unknown.height, 'number')} of {counted(len(found), 'product')} must be known for these "
        "forecasts; see `errors`. Send them as `future` of a POST request; `missing-columns` lists them all.",
        errors=faults,
        error_count=len(found),
    )


def has_ended(model: StoredModel, unique_id: str, asked: Asked) -> Conflict:
    """Return the refusal of a product that ended."""
    forecaster = forecaster_of(model)
    last = forecaster.last_period[model.rows[unique_id]]
    periods = forecaster.frequency.to_datetime(np.array([last, forecaster.last_period.max()]))
    end, newest = written(pl.Series(periods), forecaster.frequency)
    names = ", ".join(map(repr, dict.fromkeys((*forecaster.features.future, *forecaster.features.past))))
    return Conflict(
        "product_ended",
        f"The product {unique_id!r} ended at {end}: the {counted(asked.h, 'period')} after that are all over "
        f"by the newest one, {newest}, and nothing says {names} of them. Leave it out, upload its newer "
        "values, or send these columns as `future`.",
    )


def _periods(
    form: Callable[..., Any],
    unique_id: str,
    ds: Sequence[str],
    numbers: Sequence[Sequence[float]],
    status: wire.RowStatus,
) -> Iterator[Any]:
    for period, values in zip(ds, numbers, strict=True):
        if all(map(math.isfinite, values)):
            yield form(unique_id, period, *values, status)
        else:
            yield form(unique_id, period, *[None] * len(values), wire.RowStatus.NOT_FINITE)


def _history_too_short(model: StoredModel, unique_id: str) -> Conflict:
    if model.forecaster is not None:
        return Conflict("history_too_short", f"The product {unique_id!r} has no value to forecast from.")
    return Conflict(
        "history_too_short",
        f"The model needs the last {len(model.feature_names)} consecutive periods of {unique_id!r}, and they "
        "are not all there. Upload them and train again, or train on a dataset that counts absent periods as "
        'zero, those before the product\'s first too: `fill` {"method": "zero", "start": "dataset"}.',
    )
