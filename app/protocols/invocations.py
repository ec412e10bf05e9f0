"""Read what MLflow's clients send to ``/invocations``: a table as JSON in one of four forms, or as CSV."""

from __future__ import annotations

import csv
from io import BytesIO, StringIO
from typing import Any

import msgspec
import numpy as np
import polars as pl

from app.http.errors import BadRequest, Fault, InvalidContent
from app.http.request_body import parse_json_object
from app.predictions.service import Matrix, refuse_wrong_names
from app.predictions.tables import UNIQUE_ID
from app.registry.service import StoredModel
from ccmtl_core.base.display import counted

FORMS = ("dataframe_split", "dataframe_records", "instances", "inputs")
_NEEDED = f"The body needs exactly one of {', '.join(FORMS)}"
_TRUTH = {"true": 1.0, "false": 0.0}


def table_of_json(body: bytes, model: StoredModel) -> tuple[list[str], Matrix]:
    """Return the ids (n,) and the features (n, P) of a JSON body; true is 1 and false 0."""
    document = parse_json_object(body)
    given = [form for form in FORMS if form in document]
    if len(given) != 1 or document.keys() - {given[0], "params"}:
        raise InvalidContent("invalid_request", f"{_NEEDED}; it has {', '.join(document)[:200] or 'none'}.")
    form = given[0]
    columns = _columns(document[form], form)
    refuse_wrong_names(columns, (UNIQUE_ID, *model.feature_names), f"body.{form}")
    ids = _converted(columns[UNIQUE_ID], str, f"body.{form}.{UNIQUE_ID}")
    features = [
        _converted(columns[name], float | bool, f"body.{form}.{name}") for name in model.feature_names
    ]
    if not ids or any(len(values) != len(ids) for values in features):
        raise _unreadable("it must have a row, and all columns as many values", form)
    return ids, np.array(features, dtype=np.float64).T


def table_of_csv(body: bytes, model: StoredModel) -> tuple[list[str], Matrix]:
    """Return the ids (n,) and the features (n, P) of a CSV with a header, as pandas writes it.

    As in JSON, true is 1 and false 0, here in any case.
    """
    try:
        frame = pl.read_csv(BytesIO(body), infer_schema=False)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        raise _malformed(body) from None
    if frame.columns and not frame.columns[0]:
        frame = frame.drop("")  # the index that pandas writes
    refuse_wrong_names(frame.columns, (UNIQUE_ID, *model.feature_names), "body")
    if frame[UNIQUE_ID].null_count() or not len(frame):
        raise _unreadable("every row needs a unique_id, and there must be a row", "the CSV")
    numbers = frame.select(map(_number, model.feature_names))
    return frame[UNIQUE_ID].to_list(), numbers.fill_null(float("nan")).to_numpy()


def _number(name: str) -> pl.Expr:
    truth = pl.col(name).str.to_lowercase().replace_strict(_TRUTH, default=None, return_dtype=pl.Float64)
    return pl.coalesce(pl.col(name).cast(pl.Float64, strict=False), truth)


def _malformed(body: bytes) -> BadRequest:
    """Return the refusal of a CSV; of rows, the first after the header is 1."""
    return BadRequest("malformed_csv", f"The body cannot be read as CSV: {_reason(body)}.")


def _reason(body: bytes) -> str:
    if not body.strip():
        return "it is empty; send a line of names and a line for each row"
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        n_before = body[: error.start].count(b"\n")
        return f"{_place(n_before)} has bytes that are no UTF-8"
    n_read = n_names = 0
    try:
        for values in csv.reader(StringIO(text, newline=""), strict=True):
            n_names = n_names or len(values)
            if len(values) > n_names:
                return f"{_place(n_read)} has {counted(len(values), 'value')}; the header names {n_names}"
            n_read += 1
    except csv.Error:
        broken = 'has a quote that is not closed, or text after one (a quote within a text is doubled: "")'
        return f"{_place(n_read)} {broken}"
    return "it needs a line of names and a line for each row, with commas between the values"


def _place(n_before: int) -> str:
    return f"row {n_before}" if n_before else "the header"


def _columns(table: Any, form: str) -> dict[str, list[Any]]:
    """Return the table as columns; rows must all have the same ones."""
    if form == "dataframe_split":
        return _split(table, form)
    if form == "inputs" and isinstance(table, dict) and all(isinstance(v, list) for v in table.values()):
        return table
    if not isinstance(table, list) or not all(isinstance(row, dict) for row in table):
        raise _unreadable('it needs rows with the names of their columns, such as {"unique_id": …}', form)
    names = dict.fromkeys(name for row in table for name in row)
    if any(len(row) != len(names) for row in table):
        raise _unreadable("all rows must have the same columns", form)
    return {name: [row[name] for row in table] for name in names}


def _split(table: Any, form: str) -> dict[str, list[Any]]:
    names, rows = (table.get("columns"), table.get("data")) if isinstance(table, dict) else (None, None)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise _unreadable("it needs `columns`, a list of names, and `data`, a list of rows", form)
    if len(set(names)) != len(names):
        raise _unreadable("a column stands twice", form)
    if not isinstance(rows, list) or not all(isinstance(r, list) and len(r) == len(names) for r in rows):
        raise _unreadable(f"`data` must be a list of rows, each a list of {len(names)} values", form)
    return {name: [row[p] for row in rows] for p, name in enumerate(names)}


def _converted(values: list[Any], kind: Any, where: str) -> Any:
    try:
        return msgspec.convert(values, list[kind])
    except msgspec.ValidationError as error:
        place = str(error).rstrip("`").partition(" - at `$")[2]
        location = where + place.replace("[", ".").replace("]", "")
        message = "must be text" if kind is str else "must be a finite number, true or false"
        fault = Fault(message=message, location=location)
        raise InvalidContent(
            "invalid_request", "The request has a fault; see `errors`.", errors=[fault]
        ) from None


def _unreadable(message: str, form: str) -> InvalidContent:
    fault = Fault(message=message, location=f"body.{form}")
    return InvalidContent("invalid_request", f"{form} cannot be read: {message}.", errors=[fault])
