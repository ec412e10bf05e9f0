"""Predict rows that come as columns of arrays: an Arrow stream, or what other protocols send."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from io import BytesIO

import numpy as np
import polars as pl

from app.http.errors import MAX_ERRORS, BadRequest, Fault, InvalidContent, UnsupportedMediaType
from app.predictions import wire
from app.predictions.service import Matrix, numbers, refuse_wrong_names
from app.registry.service import MAX_ID_BYTES, StoredModel
from ccmtl_core.base.display import counted

UNIQUE_ID = "unique_id"
_OK = pl.Series("status", [wire.RowStatus.OK], pl.String)
_MALFORMED = "The body is no Arrow stream"


def predict_table(
    model: StoredModel, unique_ids: Sequence[str], X: Matrix
) -> tuple[Matrix, list[wire.RowStatus]]:
    """Return the predictions (n,) of rows ``X`` (n, P), NaN where the status of the row is not ok.

    A number of ``X`` that is not finite is refused with its position.
    """
    if not np.isfinite(X).all():
        rows, columns = np.nonzero(~np.isfinite(X))
        names = [model.feature_names[p] for p in columns[:MAX_ERRORS]]
        raise InvalidContent(
            "not_finite",
            f"The features have {counted(len(rows), 'missing or infinite number')}; see `errors`.",
            errors=[
                Fault(message="is missing or not finite", location=f"body.{name}.{row}")
                for row, name in zip(rows[:MAX_ERRORS].tolist(), names, strict=True)
            ],
            error_count=len(rows),
        )
    find = model.rows.get
    known = np.array([find(unique_id, -1) for unique_id in unique_ids], dtype=np.int64)
    return numbers(model, known, X)


def predict_arrow(model: StoredModel, body: bytes) -> bytes:
    """Answer an Arrow stream with the columns ``unique_id`` and the features by ``yhat`` and ``status``."""
    frame = _read(body)
    names = model.feature_names
    refuse_wrong_names(frame.columns, (UNIQUE_ID, *names), "body")
    wrong = [Fault(message="must be text", location=f"body.{UNIQUE_ID}")]
    if frame.schema[UNIQUE_ID] == pl.String:
        wrong = [
            Fault(message=f"must be numbers, not {frame.schema[name]}", location=f"body.{name}")
            for name in names
            if not (frame.schema[name].is_numeric() or frame.schema[name] == pl.Boolean)
        ]
    if wrong:
        raise InvalidContent(
            "wrong_features", f"{counted(len(wrong), 'column')} cannot be read.", errors=wrong
        )
    ids = frame[UNIQUE_ID]
    longest = ids.str.len_bytes().max()
    if ids.null_count() or not isinstance(longest, int) or longest > MAX_ID_BYTES:
        text = f"every row needs an id of up to {MAX_ID_BYTES} bytes"
        raise InvalidContent("wrong_ids", f"The ids cannot be read: {text}.", errors=[
            Fault(message=text, location=f"body.{UNIQUE_ID}")
        ])  # fmt: skip
    X = np.empty((len(frame), len(names)))
    for p, name in enumerate(names):  # one by one: an expression of polars would take ten times as long
        X[:, p] = frame[name].cast(pl.Float64).to_numpy()
    yhat, status = predict_table(model, ids.to_list(), X)
    states = (
        _OK.new_from_index(0, len(ids)) if np.isfinite(yhat).all() else pl.Series("status", status, pl.String)
    )
    file = BytesIO()
    answer = pl.DataFrame([ids, pl.Series("yhat", yhat, nan_to_null=True), states])
    answer.write_ipc_stream(file, compat_level=pl.CompatLevel.oldest())
    return file.getvalue()


def _read(body: bytes) -> pl.DataFrame:
    try:
        if any(_is_compressed(body, *place) for place in _messages(body)):
            raise UnsupportedMediaType(
                "arrow_compressed", "Send the Arrow stream without compression of buffers."
            )
        return pl.read_ipc_stream(BytesIO(body))
    except (
        pl.exceptions.PolarsError,
        pl.exceptions.PanicException,
        OSError,
        struct.error,
        IndexError,
    ) as error:
        raise BadRequest("malformed_arrow", f"{_MALFORMED}: {str(error)[:200]}.") from None


def _messages(body: bytes) -> Iterator[tuple[int, int]]:
    """Yield where the header of each message begins and where its table is."""
    position = 0
    while position + 8 <= len(body):
        mark, size = struct.unpack_from("<ii", body, position)
        if mark != -1 or size < 0:
            raise BadRequest("malformed_arrow", f"{_MALFORMED}: a message begins wrongly at byte {position}.")
        if size == 0:
            return
        start = position + 8
        table = start + struct.unpack_from("<I", body, start)[0]
        yield start, table
        at = _field(body, table, 3)
        position = start + size + (struct.unpack_from("<q", body, at)[0] if at else 0)
        if not start < position <= len(body):
            raise BadRequest("malformed_arrow", f"{_MALFORMED}: a message is cut off at byte {len(body)}.")


def _is_compressed(body: bytes, start: int, table: int) -> bool:
    """Whether a message is a batch of compressed buffers, which a few bytes may blow up to gigabytes."""
    kind, header = _field(body, table, 1), _field(body, table, 2)
    if not kind or not header or body[kind] not in (2, 3):  # neither a dictionary nor rows
        return False
    batch = header + struct.unpack_from("<I", body, header)[0]
    if body[kind] == 2:
        inner = _field(body, batch, 1)
        batch = inner + struct.unpack_from("<I", body, inner)[0] if inner else batch
    return _field(body, batch, 3) != 0


def _field(body: bytes, table: int, number: int) -> int:
    """Where a field of a flatbuffers table is, 0 if it is not there."""
    fields = table - struct.unpack_from("<i", body, table)[0]
    if 4 + 2 * number >= struct.unpack_from("<H", body, fields)[0]:
        return 0
    offset = struct.unpack_from("<H", body, fields + 4 + 2 * number)[0]
    return table + offset if offset else 0
