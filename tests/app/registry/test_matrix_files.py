"""Large matrices are mapped from files that processes share; a file that was changed is never served."""

from __future__ import annotations

import logging
import os
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import update

from app.persistence.database import Database
from app.persistence.models import MatrixChunk
from app.registry import matrix_files, matrix_store, service
from app.registry.matrix_files import MatrixFiles
from app.registry.matrix_store import CorruptModel
from app.registry.publication import History
from app.registry.service import StoredModel
from app.settings import Settings
from tests.support.forked import forked_program
from tests.support.models import add_version, trained

WEIGHTS = np.random.default_rng(0).normal(size=(600, 3))
IDS = [str(t) for t in range(600)]
LOAD = """
import sys; from pathlib import Path
from app.persistence.database import Database; from app.registry import matrix_store, service
from app.registry.matrix_files import MatrixFiles; from app.settings import Settings
matrix_store.MAPPED_FROM = 1
with Database(Settings(data_dir=Path(sys.argv[1]), database_url=sys.argv[2])).of("default").read() as session:
    model = service.load(session, "sales", 1, MatrixFiles(Path(sys.argv[1])))
lines = [line for line in open("/proc/self/maps") if "/cache/matrices/" in line]
print(*[line.split()[4] for line in lines], model.weights.sum())
"""


@pytest.fixture(scope="module")
def database_kind() -> str:
    return "sqlite"


@pytest.fixture(autouse=True)
def _every_matrix_has_a_file(monkeypatch: pytest.MonkeyPatch, database: Database) -> None:
    monkeypatch.setattr(matrix_store, "MAPPED_FROM", 1)
    history = History(WEIGHTS + 1.0, np.arange(600))
    add_version(database, trained(WEIGHTS, IDS, history=history, frequency="D"))


def load(database: Database, folder: Path) -> StoredModel:
    with database.of("default").read() as session:
        return service.load(session, "sales", 1, MatrixFiles(folder))


def files_in(folder: Path) -> list[Path]:
    return sorted((folder / "cache" / "matrices").iterdir())


def test_a_mapped_model_is_as_it_was_published(database: Database, tmp_path: Path) -> None:
    for _ in range(2):
        model = load(database, tmp_path)
        assert model.weights.tobytes() == WEIGHTS.tobytes()
        assert model.history is not None
        assert model.history.lags.tolist() == (WEIGHTS + 1.0).tolist()
        assert not model.weights.flags.writeable
        assert len(files_in(tmp_path)) == 2


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_second_process_maps_the_same_file(database: Database, settings: Settings, tmp_path: Path) -> None:
    load(database, tmp_path)
    inodes = {str(path.stat().st_ino) for path in files_in(tmp_path)}
    *mapped, total = forked_program(LOAD, str(tmp_path), settings.resolved_database_url).stdout.split()
    assert set(mapped) == inodes
    assert float(total) == WEIGHTS.sum()


@pytest.mark.parametrize("damage", [b"", b"x", None])
def test_a_file_that_was_changed_is_made_anew(
    database: Database, tmp_path: Path, damage: bytes | None
) -> None:
    load(database, tmp_path)
    for path in files_in(tmp_path):
        content = path.read_bytes()
        path.unlink()
        path.write_bytes(content[:-1] + b"\1" if damage is None else damage)
    assert load(database, tmp_path).weights.tobytes() == WEIGHTS.tobytes()
    assert len(files_in(tmp_path)) == 2


def test_a_matrix_that_the_database_lost_is_not_served_from_its_file(
    database: Database, tmp_path: Path
) -> None:
    with database.write() as session:
        session.execute(update(MatrixChunk).values(sha256="0" * 64))
    with pytest.raises(CorruptModel, match="fails its checksum"):
        load(database, tmp_path)
    assert files_in(tmp_path) == []


def test_a_folder_that_cannot_be_written_costs_memory_alone(
    database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "cache").write_text("a file")
    with caplog.at_level(logging.WARNING):
        assert load(database, tmp_path).weights.tobytes() == WEIGHTS.tobytes()
    assert "cannot be used" in caplog.text


def test_a_small_matrix_has_no_file(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matrix_store, "MAPPED_FROM", matrix_files.MAPPED_FROM)
    assert load(database, tmp_path).weights.tobytes() == WEIGHTS.tobytes()
    assert not (tmp_path / "cache").exists()


def test_files_unused_for_a_week_are_swept(database: Database, tmp_path: Path) -> None:
    load(database, tmp_path)
    first, second = files_in(tmp_path)
    os.utime(first, (0.0, time.time() - matrix_files.UNUSED_SECONDS - 60))
    MatrixFiles(tmp_path).sweep()
    assert files_in(tmp_path) == [second]
    MatrixFiles(tmp_path / "none").sweep()
