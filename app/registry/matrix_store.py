"""Store matrices of numbers in the database, in chunks of 256 rows that each carry a SHA-256."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from app.http.errors import AppError
from app.persistence.models import MatrixChunk, MatrixName, TaskRow
from app.registry import id_files
from app.registry.matrix_files import MAPPED_FROM, MatrixFiles

ROWS_PER_CHUNK = 256
STORED_DTYPE = np.dtype("<f8")
CHUNKS_AT_A_TIME = 64
IDS_AT_A_TIME = 10_000


class CorruptModel(AppError):
    """What the database holds is not what was published, so this version must not be used."""

    status, title = 500, "Stored model is corrupt"


def save_matrix(
    session: Session, model_version_id: str, name: MatrixName, matrix: NDArray[np.float64]
) -> None:
    """Store ``matrix`` (T, C) without changing a bit of it."""
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ValueError(f"matrix {name!s} has shape {matrix.shape}; rows and columns are needed")
    chunks = []
    for first_row in range(0, len(matrix), ROWS_PER_CHUNK):
        block = np.ascontiguousarray(matrix[first_row : first_row + ROWS_PER_CHUNK], dtype=STORED_DTYPE)
        data = block.tobytes()
        chunks.append(
            {
                "model_version_id": model_version_id,
                "matrix": name,
                "first_row": first_row,
                "n_rows": block.shape[0],
                "n_columns": block.shape[1],
                "data": data,
                "sha256": hashlib.sha256(data).hexdigest(),
            }
        )
    session.execute(insert(MatrixChunk), chunks)


def load_matrix(
    session: Session,
    model_version_id: str,
    name: MatrixName,
    n_rows: int | None,
    n_columns: int | None,
    files: MatrixFiles | None = None,
) -> NDArray[np.float64]:
    """Return the stored matrix (n_rows, n_columns), read-only, after checking shapes and digests.

    None takes as many rows as there are, or as many columns as the first of them have. A large matrix is
    mapped from one of ``files``, if these are given.
    """
    own = MatrixChunk.model_version_id == model_version_id, MatrixChunk.matrix == name
    form = MatrixChunk.first_row, MatrixChunk.n_rows, MatrixChunk.n_columns, MatrixChunk.sha256
    parts: list[tuple[int, str]] = []
    next_row = 0
    for first_row, n, width, digest in session.execute(select(*form).where(*own).order_by(form[0])):
        n_columns = width if n_columns is None else n_columns
        if (first_row, width) != (next_row, n_columns):
            raise _corrupt(model_version_id, name, f"the chunk at row {first_row} has the wrong shape")
        parts.append((n * width * STORED_DTYPE.itemsize, digest))
        next_row += n
    if next_row != n_rows and (n_rows is not None or not next_row):
        raise _corrupt(model_version_id, name, f"{next_row} rows are stored instead of {n_rows}")

    def read() -> Iterator[bytes]:
        chunks = select(MatrixChunk.first_row, MatrixChunk.data).where(*own).order_by(MatrixChunk.first_row)
        stored = session.execute(chunks, execution_options={"yield_per": CHUNKS_AT_A_TIME})
        for (n_bytes, digest), (first_row, data) in zip(parts, stored, strict=True):
            if len(data) != n_bytes:
                raise _corrupt(model_version_id, name, f"the chunk at row {first_row} has the wrong shape")
            if hashlib.sha256(data).hexdigest() != digest:
                raise _corrupt(model_version_id, name, f"the chunk at row {first_row} fails its checksum")
            yield data

    numbers = None
    if files is not None and sum(n_bytes for n_bytes, _ in parts) >= MAPPED_FROM:
        numbers = files.mapped(parts, read)
    if numbers is None:
        numbers = np.frombuffer(b"".join(read()), dtype=STORED_DTYPE)
    return numbers.reshape(next_row, -1).astype(np.float64, copy=False)


def save_task_ids(session: Session, model_version_id: str, task_ids: Sequence[str]) -> None:
    """Store ``unique_id → row`` for the T rows of the version's matrices."""
    session.execute(
        insert(TaskRow),
        [
            {"model_version_id": model_version_id, "unique_id": unique_id, "row": row}
            for row, unique_id in enumerate(task_ids)
        ],
    )


def load_task_rows(
    session: Session, model_version_id: str, n_tasks: int, files: MatrixFiles | None = None
) -> Mapping[str, int]:
    """Return ``unique_id → row``, in row order, after checking that no row is missing.

    Those of many tasks are mapped from one of ``files``, if these are given.
    """
    ids = select(TaskRow.unique_id, TaskRow.row).where(TaskRow.model_version_id == model_version_id)

    def read() -> Iterator[str]:
        found = session.execute(ids.order_by(TaskRow.row), execution_options={"yield_per": IDS_AT_A_TIME})
        n_rows, is_whole = 0, True
        for unique_id, row in found:
            is_whole &= row == n_rows
            yield unique_id
            n_rows += 1
        if n_rows != n_tasks or not is_whole:
            raise _corrupt(model_version_id, "task ids", f"they do not number {n_tasks} rows")

    if files is not None and n_tasks >= id_files.MAPPED_FROM:
        rows = id_files.mapped_rows(files, model_version_id, n_tasks, read)
        if rows is not None:
            return rows
    return {unique_id: row for row, unique_id in enumerate(read())}


def _corrupt(version_id: str, what: str, problem: str) -> CorruptModel:
    return CorruptModel(
        "model_corrupt",
        f"The stored {what} of model version {version_id} are damaged: {problem}. "
        "Train the model again, or restore the database from a backup.",
    )
