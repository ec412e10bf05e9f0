"""Write the weights of a version as Parquet or as an Arrow stream, without a second copy in memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from typing import IO, Any

import polars as pl
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from app.http.arrow import arrow_pieces
from app.registry.service import StoredModel

ROWS_AT_A_TIME = 2**14
BYTES_AT_A_TIME = 2**18


def arrow_stream(model: StoredModel) -> Iterator[bytes]:
    """Return an Arrow stream of all tasks, some rows in each record batch."""
    return arrow_pieces(_frame(model, first) for first in range(0, len(model.rows), ROWS_AT_A_TIME))


def parquet_file(model: StoredModel) -> IO[bytes]:
    """Return a temporary file, to be read from its beginning, that holds all tasks as Parquet."""
    file = tempfile.TemporaryFile()  # noqa: SIM115 - it outlives this function
    parts = [_frame(model, first).lazy() for first in range(0, len(model.rows), ROWS_AT_A_TIME)]
    try:
        pl.concat(parts, rechunk=False).sink_parquet(file, row_group_size=ROWS_AT_A_TIME)
    except BaseException:
        file.close()
        raise
    file.seek(0)
    return file


class FileAnswer(StreamingResponse):
    """An answer of the rest of a file, which is closed then, also where the client goes away before."""

    def __init__(self, file: IO[bytes], **given: Any) -> None:
        super().__init__(iter(partial(file.read, BYTES_AT_A_TIME), b""), **given)
        self._file = file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the file."""
        with self._file:
            await super().__call__(scope, receive, send)


def _frame(model: StoredModel, first: int) -> pl.DataFrame:
    """Some tasks: the id, the intercept, and a column of weights for each feature."""
    part = slice(first, first + ROWS_AT_A_TIME)
    weights = {f"weight_{name}": model.weights[part, p] for p, name in enumerate(model.feature_names)}
    ids = pl.Series(model.unique_ids[part], dtype=pl.String)
    return pl.DataFrame({"unique_id": ids, "intercept": model.intercept[part], **weights})
