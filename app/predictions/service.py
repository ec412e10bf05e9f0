"""Answer requests for predictions and forecasts with a model that is in memory.

The arithmetic is :func:`ccmtl_core.model.ccmtl_model.predict_rows`, the same as in ``CCMTLModel.predict``, so
that numbers over HTTP are those of the library to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from app.http.errors import MAX_ERRORS, AppError, Conflict, Fault, InvalidContent
from app.http.request_body import EXPLAINED_BYTES, explain, first_fault, parse_json_object
from app.http.struct_forms import form_of
from app.predictions import wire
from app.registry.service import StoredModel, unknown_product
from ccmtl_core.base.display import counted
from ccmtl_core.forecasting import Frequency, range_columns, recursive_forecast
from ccmtl_core.model.ccmtl_model import predict_rows

FORECASTS_AT_A_TIME = 2**14
"""Of a stream: so many are in memory at once."""

Matrix = NDArray[np.float64]


class Refused(Exception):
    """The request cannot be answered; ``explain`` finds out why, which may take long: call it in a thread."""

    def __init__(self, explain: Callable[[], AppError]) -> None:
        super().__init__()
        self.explain = explain


def predict(model: StoredModel, body: bytes) -> bytes:
    """Answer a predict request in the form, rows or columns, that it came in; raise Refused or AppError."""
    try:
        request = wire.decode_predict(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(partial(_explain_predict, body, error)) from None
    name = wire.ModelRef(model.name, model.version)
    if isinstance(request, wire.PredictRows):
        _refuse_repeated_keys(body, 1 + sum(2 + len(row.features) for row in request.rows))
        unique_ids = [row.unique_id for row in request.rows]
        yhat, status = _predict(model, unique_ids, _features_of_rows(request.rows, model.feature_names))
        return wire.encode(wire.Predictions(name, list(map(wire.Prediction, unique_ids, yhat, status))))
    _refuse_repeated_keys(body, 2 + len(request.features))
    X = _features_of_columns(request.features, len(request.unique_id), model.feature_names)
    yhat, status = _predict(model, request.unique_id, X)
    return wire.encode(wire.PredictionColumns(name, request.unique_id, yhat, status))


def forecast(model: StoredModel, body: bytes) -> bytes:
    """Answer a batch of forecasts, or raise Refused or AppError."""
    try:
        request = wire.decode_forecast(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(partial(_explain, body, wire.ForecastBatch, error)) from None
    h, level = model.horizon if request.h is None else request.h, request.level or []
    _refuse_repeated_keys(body, 1 + (request.h is not None) + (request.level is not None))
    if len(request.unique_id) * h > wire.MAX_FORECASTS:
        raise InvalidContent(
            "too_many_forecasts",
            f"{len(request.unique_id)} products times {h} periods is over the limit of "
            f"{wire.MAX_FORECASTS} forecasts for one request.",
        )
    return forecast_products(model, request.unique_id, h, level, "body.level")


def forecast_products(
    model: StoredModel,
    unique_ids: Sequence[str],
    h: int | None,
    level: Sequence[float] = (),
    where: str = "query.level",
) -> bytes:
    """Answer ``h`` periods ahead for each product, from the history stored with the model.

    A single product that cannot be forecast is an error; among several it has a status.
    """
    _require_history(model)
    levels = _levels(model, level, where)
    rows = _rows_of(model, unique_ids)
    forecasts = _forecasts(model, unique_ids, rows, h or model.horizon, levels)
    if len(rows) == 1 and forecasts[0].status is wire.RowStatus.HISTORY_TOO_SHORT:
        raise _history_too_short(model, unique_ids[0])
    return wire.encode(wire.Forecasts(wire.ModelRef(model.name, model.version), forecasts))


def forecast_all(model: StoredModel, h: int | None, level: Sequence[float] = ()) -> Iterator[bytes]:
    """Answer ``h`` periods ahead for all products, as lines of JSON for some products at a time."""
    _require_history(model)
    return _lines(model, h or model.horizon, _levels(model, level, "query.level"))


def _lines(model: StoredModel, h: int, level: tuple[float, ...]) -> Iterator[bytes]:
    unique_ids, n = list(model.rows), max(1, FORECASTS_AT_A_TIME // h)
    for first in range(0, len(unique_ids), n):
        some = unique_ids[first : first + n]
        yield wire.encode_lines(_forecasts(model, some, np.arange(first, first + len(some)), h, level))


def _levels(model: StoredModel, level: Sequence[float], where: str) -> tuple[float, ...]:
    """Return the different levels; refuse any of a model that has no ranges."""
    if level and model.forecaster is None:
        message = f"the model {model.name!r} was trained on lags and has no ranges; train it with a `horizon`"
        fault = Fault(message=message, location=where)
        raise InvalidContent("model_has_no_ranges", f"There are no ranges: {message}.", errors=[fault])
    return tuple(dict.fromkeys(level))


def _require_history(model: StoredModel) -> None:
    if model.frequency is None:
        raise Conflict(
            "model_cannot_forecast",
            f"The model {model.name!r} was trained on regression data, which has no history to forecast "
            "from; send its features to `predict`.",
        )


def _forecasts(
    model: StoredModel,
    unique_ids: Sequence[str],
    rows: NDArray[np.int64],
    h: int,
    level: tuple[float, ...],
) -> list[Any]:
    """Return the answers for these products, whose rows are -1 where unknown."""
    answered, last_period, numbers = _continued(model, rows, h, level)
    assert model.frequency is not None
    answers = zip(_periods_after(last_period, model.frequency, h), numbers, strict=True)
    forecasts: list[Any] = []
    form, nothing = wire.forecast_form(level), [None] * (1 + 2 * len(level))
    for unique_id, row, known in zip(unique_ids, rows.tolist(), answered.tolist(), strict=True):
        if known:
            ds, of_product = next(answers)
            if np.isfinite(of_product).all():
                rows_of_numbers = of_product.tolist()
                forecasts += [form(unique_id, t, *v) for t, v in zip(ds, rows_of_numbers, strict=True)]
            else:
                forecasts += _periods(form, unique_id, ds, of_product.tolist())
        else:
            status = wire.RowStatus.UNKNOWN_UNIQUE_ID if row < 0 else wire.RowStatus.HISTORY_TOO_SHORT
            forecasts.append(form(unique_id, None, *nothing, status))
    return forecasts


def _continued(
    model: StoredModel, rows: NDArray[np.int64], h: int, level: tuple[float, ...]
) -> tuple[NDArray[np.bool_], NDArray[np.int64], Matrix]:
    """Return which rows have a forecast, and of these the last period and the numbers (m, h, 1 + 2L)."""
    if model.forecaster is not None:
        answered = (rows >= 0) & ~np.isnan(model.forecaster.tail[rows]).all(axis=1)
        chosen = rows[answered]
        ids = [model.forecaster.unique_ids[row] for row in chosen]
        yhat = model.forecaster.point_forecasts(h, unique_ids=ids)[:, :, None]
        if level:
            quantiles = list(range_columns(level).values())
            ranges = model.forecaster.quantile_forecasts(quantiles, h, unique_ids=ids)
            yhat = np.concatenate([yhat, ranges], axis=2)
        return answered, model.forecaster.last_period[chosen], yhat
    assert model.history is not None
    lags = model.history.lags[rows]
    answered = (rows >= 0) & ~np.isnan(lags[:, 0])
    chosen = rows[answered]
    yhat = recursive_forecast(model.weights[chosen], lags[answered], h, model.intercept[chosen])
    return answered, model.history.last_period[chosen], yhat[:, :, None]


def _explain_predict(body: bytes, reason: Exception) -> AppError:
    """List the faults of a body of the form, rows or columns, that it is most like."""
    form: type[msgspec.Struct] = wire.PredictRows
    if len(body) <= EXPLAINED_BYTES:
        try:
            form = wire.PredictColumns if "unique_id" in parse_json_object(body) else form
        except AppError as refusal:
            return refusal
    return _explain(body, form, reason)


def _explain(body: bytes, form: type[msgspec.Struct], reason: Exception) -> AppError:
    """List every fault of the body with its position; of a long body only the first."""
    if len(body) > EXPLAINED_BYTES:
        return first_fault(str(reason), malformed=not isinstance(reason, msgspec.ValidationError))
    return explain(body, form_of(form), str(reason))


def _predict(
    model: StoredModel, unique_ids: Sequence[str], X: Matrix
) -> tuple[list[float | None], list[wire.RowStatus]]:
    yhat, status = numbers(model, _rows_of(model, unique_ids), X)
    return wire.without_nan(yhat), status


def numbers(
    model: StoredModel, rows: NDArray[np.int64], X: Matrix
) -> tuple[NDArray[np.float64], list[wire.RowStatus]]:
    """Return the predictions for rows of weights, -1 where unknown; NaN where the status is not ok."""
    unknown = rows < 0
    yhat = predict_rows(model.weights, np.where(unknown, 0, rows), X, model.intercept)
    finite = np.isfinite(yhat)
    if not unknown.any() and finite.all():
        return yhat, [wire.RowStatus.OK] * len(rows)
    yhat[unknown | ~finite] = np.nan
    status = [
        wire.RowStatus.UNKNOWN_UNIQUE_ID if lost else wire.RowStatus.OK if good else wire.RowStatus.NOT_FINITE
        for lost, good in zip(unknown.tolist(), finite.tolist(), strict=True)
    ]
    return yhat, status


def _refuse_repeated_keys(body: bytes, n_keys: int) -> None:
    """Refuse a body that has a key twice, since the fast reader takes the last one and says nothing.

    A body with no more colons than keys cannot have one; only others are parsed again.
    """
    if body.count(b":") > n_keys:
        parse_json_object(body)


def _rows_of(model: StoredModel, unique_ids: Sequence[str]) -> NDArray[np.int64]:
    """Return the rows of the products, -1 where unknown; a single unknown product is refused."""
    find = model.rows.get
    rows = np.array([find(unique_id, -1) for unique_id in unique_ids], dtype=np.int64)
    if len(rows) == 1 and rows[0] < 0:
        raise Refused(partial(unknown_product, model, unique_ids[0]))
    return rows


def _features_of_rows(rows: Sequence[wire.FeatureRow], names: Sequence[str]) -> Matrix:
    n_features = len(names)
    try:
        table = [[row.features[name] for name in names] for row in rows if len(row.features) == n_features]
    except KeyError:
        table = []
    if len(table) != len(rows):
        faults = (
            fault
            for position, row in enumerate(rows)
            for fault in _wrong_names(row.features, names, f"body.rows.{position}.features")
        )
        known = set(names)
        raise _wrong_features(faults, sum(len(known ^ row.features.keys()) for row in rows))
    return np.array(table, dtype=np.float64)


def _features_of_columns(columns: Mapping[str, list[float]], n_rows: int, names: Sequence[str]) -> Matrix:
    wrong_lengths = {name: len(values) for name, values in columns.items() if len(values) != n_rows}
    n_faults = len(set(names) ^ columns.keys()) + len(wrong_lengths)
    if n_faults:
        of_lengths = (
            Fault(message=f"{length} values for {n_rows} unique_ids", location=f"body.features.{name}")
            for name, length in wrong_lengths.items()
        )
        raise _wrong_features(chain(_wrong_names(columns, names, "body.features"), of_lengths), n_faults)
    return np.array([columns[name] for name in names], dtype=np.float64).T.copy()


def refuse_wrong_names(given: Iterable[str], names: Sequence[str], where: str) -> None:
    """Refuse columns that are missing or that there are not."""
    columns = dict.fromkeys(given)
    n_faults = len(set(names) ^ columns.keys())
    if n_faults:
        raise _wrong_features(_wrong_names(columns, names, where), n_faults)


def _wrong_features(faults: Iterable[Fault], n_faults: int) -> InvalidContent:
    return InvalidContent(
        "wrong_features",
        f"The features have {counted(n_faults, 'fault')}; see `errors`.",
        errors=list(islice(faults, MAX_ERRORS)),
        error_count=n_faults,
    )


def _wrong_names(given: Mapping[str, object], names: Sequence[str], where: str) -> Iterator[Fault]:
    for name in names:
        if name not in given:
            yield Fault(message="this feature of the model is missing", location=f"{where}.{name}")
    for name in given.keys() - set(names):
        message = f"the model has no such feature; it has {', '.join(names[:20])}"
        yield Fault(message=message, location=f"{where}.{name}")


def _periods_after(last_period: NDArray[np.int64], frequency: Frequency, h: int) -> list[list[str]]:
    """Return the ``h`` periods after each of m last ones as text, (m, h)."""
    ordinals = last_period[:, None] + np.arange(1, h + 1)
    names: NDArray[Any] = ordinals
    if frequency is not Frequency.INTEGER:
        names = frequency.to_datetime(ordinals).astype(f"M8[{'s' if frequency is Frequency.HOUR else 'D'}]")
    written: list[list[str]] = names.astype(str).tolist()
    return written


def _periods(
    form: Callable[..., Any], unique_id: str, ds: Sequence[str], numbers: Sequence[Sequence[float]]
) -> Iterator[Any]:
    for period, values in zip(ds, numbers, strict=True):
        if all(map(math.isfinite, values)):
            yield form(unique_id, period, *values)
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
