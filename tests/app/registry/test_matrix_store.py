"""Matrices come back from the database bit for bit, and a damaged one is refused, not served."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from sqlalchemy import delete, select, update

from app.persistence.database import Database
from app.persistence.models import MatrixChunk, MatrixName, ModelVersion, TaskRow
from app.registry.matrix_store import ROWS_PER_CHUNK, CorruptModel, load_matrix, load_task_rows, save_matrix
from tests.support.models import add_version, trained

EXTREMES = np.array([0.1 + 0.2, -0.0, 5e-324, 1.7976931348623157e308, -1e-300, np.pi])


def stored(database: Database, matrix: NDArray[np.float64], task_ids: list[str] | None = None) -> str:
    ids = task_ids or [f"{t:05d}" for t in range(len(matrix))]
    add_version(database, trained(matrix, ids))
    with database.read() as session:
        return session.scalars(select(ModelVersion.id)).one()


def load(database: Database, version_id: str, shape: tuple[int, int]) -> NDArray[np.float64]:
    with database.read() as session:
        return load_matrix(session, version_id, MatrixName.WEIGHTS, *shape)


@pytest.mark.parametrize("n_rows", [1, ROWS_PER_CHUNK, ROWS_PER_CHUNK + 1, 3 * ROWS_PER_CHUNK - 1])
def test_a_matrix_comes_back_bit_for_bit(database: Database, n_rows: int) -> None:
    matrix = np.resize(EXTREMES, (n_rows, 7))
    loaded = load(database, stored(database, matrix), matrix.shape)
    assert loaded.tobytes() == matrix.tobytes()
    assert not loaded.flags.writeable


def test_the_layout_of_the_input_does_not_matter(database: Database) -> None:
    matrix = np.asfortranarray(np.arange(600.0).reshape(300, 2))
    assert np.array_equal(load(database, stored(database, matrix), matrix.shape), matrix)


def test_chunks_are_little_endian_rows_with_their_digest(database: Database) -> None:
    version_id = stored(database, np.array([[1.0, 2.0]]))
    with database.read() as session:
        chunk = session.scalars(select(MatrixChunk).where(MatrixChunk.model_version_id == version_id)).one()
    assert chunk.data.hex() == "000000000000f03f0000000000000040"
    assert chunk.sha256 == "dc91ce9a50ddc828740aa26743716897fdb2bb64f1db662fe263a59be56145ae"


def test_one_changed_bit_is_found(database: Database) -> None:
    version_id = stored(database, np.ones((2, 2)))
    with database.write() as session:
        session.execute(update(MatrixChunk).values(data=np.array([1.0, 1.0, 1.0, 2.0]).tobytes()))
    with pytest.raises(CorruptModel, match="row 0 fails its checksum"):
        load(database, version_id, (2, 2))


def test_a_lost_chunk_is_found(database: Database) -> None:
    n_rows = 2 * ROWS_PER_CHUNK + 1
    version_id = stored(database, np.ones((n_rows, 1)))
    for first_row, message in [
        (2 * ROWS_PER_CHUNK, f"{2 * ROWS_PER_CHUNK} rows are stored instead of {n_rows}"),
        (0, f"chunk at row {ROWS_PER_CHUNK} has the wrong shape"),
    ]:
        with database.write() as session:
            session.execute(delete(MatrixChunk).where(MatrixChunk.first_row == first_row))
        with pytest.raises(CorruptModel, match=message):
            load(database, version_id, (n_rows, 1))


def test_another_number_of_columns_is_found(database: Database) -> None:
    version_id = stored(database, np.ones((2, 3)))
    with pytest.raises(CorruptModel, match="wrong shape"):
        load(database, version_id, (3, 2))


def test_an_empty_matrix_is_not_stored(database: Database) -> None:
    with database.write() as session, pytest.raises(ValueError, match=r"shape \(0, 2\)"):
        save_matrix(session, "mv", MatrixName.WEIGHTS, np.empty((0, 2)))


def test_task_ids_come_back_in_row_order_whatever_they_look_like(database: Database) -> None:
    ids = ["00471", "471", " 471", "a/b c?d#e%2F", "日本茶", "Ω" * 200, "é", "e\u0301", "'; --", "\t"]
    version_id = stored(database, np.ones((len(ids), 1)), ids)
    with database.read() as session:
        assert list(load_task_rows(session, version_id, len(ids)).items()) == list(
            zip(ids, range(10), strict=True)
        )


def test_a_lost_task_id_is_found(database: Database) -> None:
    version_id = stored(database, np.ones((3, 1)), ["a", "b", "c"])
    with database.write() as session:
        session.execute(delete(TaskRow).where(TaskRow.unique_id == "b"))
    with database.read() as session, pytest.raises(CorruptModel, match="do not number 3 rows"):
        load_task_rows(session, version_id, 3)
