"""Answer requests for predictions with a model that is in memory.

The arithmetic is :func:`ccmtl_core.model.ccmtl_model.predict_rows`, the same as in ``CCMTLModel.predict``, so
that numbers over HTTP are those of the library to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice

import msgspec
import numpy as np
from numpy.typing import NDArray

from app.http.errors import MAX_ERRORS, AppError, Fault, InvalidContent
from app.http.request_body import EXPLAINED_BYTES, explain, first_fault, parse_json_object
from app.http.struct_forms import form_of
from app.predictions import wire
from app.registry.service import StoredModel, unknown_product
from ccmtl_core.base.display import counted
from ccmtl_core.model.ccmtl_model import predict_row, predict_rows

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
        refuse_repeated_keys(body, 1 + sum(2 + len(row.features) for row in request.rows))
        unique_ids = [row.unique_id for row in request.rows]
        if len(request.rows) == 1:
            return wire.encode(wire.Predictions(name, [_predict_one(model, request.rows[0])]))
        yhat, status = _predict(model, unique_ids, _features_of_rows(request.rows, model.feature_names))
        return wire.encode(wire.Predictions(name, list(map(wire.Prediction, unique_ids, yhat, status))))
    refuse_repeated_keys(body, 2 + len(request.features))
    X = _features_of_columns(request.features, len(request.unique_id), model.feature_names)
    yhat, status = _predict(model, request.unique_id, X)
    return wire.encode(wire.PredictionColumns(name, request.unique_id, yhat, status))


def _explain_predict(body: bytes, reason: Exception) -> AppError:
    """List the faults of a body of the form, rows or columns, that it is most like."""
    form: type[msgspec.Struct] = wire.PredictRows
    if len(body) <= EXPLAINED_BYTES:
        try:
            form = wire.PredictColumns if "unique_id" in parse_json_object(body) else form
        except AppError as refusal:
            return refusal
    return explained(body, form, reason)


def explained(body: bytes, form: type[msgspec.Struct], reason: Exception) -> AppError:
    """List every fault of the body with its position; of a long body only the first."""
    if len(body) > EXPLAINED_BYTES:
        return first_fault(str(reason), malformed=not isinstance(reason, msgspec.ValidationError))
    return explain(body, form_of(form), str(reason))


def _predict(
    model: StoredModel, unique_ids: Sequence[str], X: Matrix
) -> tuple[list[float | None], list[wire.RowStatus]]:
    yhat, status = numbers(model, _rows_of(model, unique_ids), X)
    return wire.without_nan(yhat), status


def _predict_one(model: StoredModel, row: wire.FeatureRow) -> wire.Prediction:
    """Answer a single row, as most requests have, without arrays."""
    names = model.feature_names
    if len(row.features) != len(names) or any(name not in row.features for name in names):
        _features_of_rows([row], names)  # raises
    position = model.rows.get(row.unique_id, -1)
    if position < 0:
        raise Refused(partial(unknown_product, model, row.unique_id))
    x = [row.features[name] for name in names]
    yhat = predict_row(model.weights[position], x, float(model.intercept[position]))
    if math.isfinite(yhat):
        return wire.Prediction(row.unique_id, yhat)
    return wire.Prediction(row.unique_id, None, wire.RowStatus.NOT_FINITE)


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


def refuse_repeated_keys(body: bytes, n_keys: int) -> None:
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
